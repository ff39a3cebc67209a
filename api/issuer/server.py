"""What does the issuer publish?  Its public keys, for programs and for people. It mints nothing."""

import socket
import sys
from html import escape
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.issuer.signing import public_half
from api.issuer.store import StoreRefused, opened

_HEADERS: Final = {
    "Cache-Control": "max-age=300",
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Keys of {issuer}</title>
<h1>Keys of {issuer}</h1>
<p>A server that has one of these keys in its issuers file takes the tokens it signed.</p>
<table>
<thead><tr><th>fingerprint<th>public key<th>state</thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""
_ROW: Final = "<tr><td><code>{kid}</code><td><code>{paserk}</code><td>{state}"


def make_app(database: Path) -> Starlette:
    """The three pages, read from the file on each request: a rotation shows at once."""

    def jwks(_request: Request) -> Response:
        with opened(database, read_only=True) as store:
            keys = [public_half(key).jwk for key in store.list_keys()]
        return JSONResponse({"keys": keys}, headers=_HEADERS)

    def page(_request: Request) -> Response:
        with opened(database, read_only=True) as store:
            issuer, keys = store.issuer(), store.list_keys()
        rows = [
            _ROW.format(
                kid=escape(key.kid),
                paserk=escape(public_half(key).paserk),
                state="signs" if key.retired_at is None else "verifies only",
            )
            for key in keys
        ]
        return HTMLResponse(
            _PAGE.format(issuer=escape(issuer), rows="\n".join(rows)), headers=_HEADERS
        )

    def health(_request: Request) -> Response:
        try:
            with opened(database, read_only=True) as store:
                store.list_keys()
        except StoreRefused:
            return JSONResponse({"status": "down"}, status_code=503)
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/.well-known/jwks.json", jwks),
            Route("/keys", page),
            Route("/health", health),
        ]
    )


class Server(uvicorn.Server):
    """uvicorn, which says where it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say the address on standard output, also for scripts that asked port 0."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                sys.stdout.write(f"listening on http://{host}:{port}\n")
        sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain and end."""
        super().handle_exit(sig, frame)
        # uvicorn would raise the signal again after draining, and the exit code would say we died.
        self._captured_signals.clear()


def serve(database: Path, host: str, port: int) -> bool:
    """Run until a signal; whether it started at all."""
    config = uvicorn.Config(
        make_app(database),
        host=host,
        port=port,
        lifespan="off",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
    )
    server = Server(config)
    server.run()
    return server.started
