"""/v1/discovery, /v1/manifest: what is there, and what does it take?  From the table of routes."""

from typing import Final

from api.cognirelay.errors import DIALECT, refuse
from api.cognirelay.translate.catalogue import catalogue, manifest
from api.endpoint import Call, Endpoint, Handler, Reply
from schemas.surfaces.cognirelay.catalogue import NOT_OFFERED
from schemas.surfaces.shapes import Table


def _tools(call: Call) -> Reply:
    return Reply(catalogue(call.table))


def _manifest(call: Call) -> Reply:
    return Reply(manifest(call.table))


def _not_offered(call: Call) -> Reply:
    del call
    raise refuse(404, "This server keeps no plans: nothing here has to be refreshed or moved.")


def _open(path: str, handler: Handler, summary: str) -> Endpoint:
    return Endpoint(
        "GET", path, handler, summary, query_shape=Table(), is_open=True, dialect=DIALECT
    )


ENDPOINTS: Final = (
    _open("/v1/manifest", _manifest, "Every route, and who may call it."),
    _open("/v1/discovery/tools", _tools, "Every tool, with the schema of what it takes."),
    *(
        Endpoint("POST", path, _not_offered, "Not offered here.", takes_raw=True, dialect=DIALECT)
        for path in NOT_OFFERED
    ),
)
