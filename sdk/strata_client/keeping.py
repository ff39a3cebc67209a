"""Bytes, and memories that move in and out or go for good (001 §8.5, §8.6, §8.11 to §8.13)."""

from pathlib import Path
from typing import Any, Unpack

import msgspec

from strata_client import asks
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, NoContent, listing, method, waiting
from strata_client.models import (
    BlobRecord,
    ErasureCancel,
    ErasurePreview,
    ErasureReceipt,
    ErasureState,
    ExportReceipt,
    ExportState,
    ForgetPreview,
    ImportReceipt,
    ImportState,
    Manifest,
    RevertReceipt,
)

Rows = asks.ImportSource | list[Any] | str
"""Where an import comes from: a source, or the rows themselves."""


class Blobs(Group[M_co]):
    """Bytes that are no text."""

    @method("POST /v1/blobs", BlobRecord, is_safe=True)
    def upload(self, content: bytes | Path, content_type: str = "application/octet-stream") -> Ask:
        """Keep bytes, or a file; the same bytes are kept once."""
        data = content.read_bytes() if isinstance(content, Path) else content
        return Ask(content=data, headers={"Content-Type": content_type})

    @method("GET /v1/blobs/{blob_id}", bytes)
    def download(self, blob_id: str) -> Ask:
        """The bytes; an address that the server gave will do for an id."""
        return Ask((blob_id.rpartition("/")[2],))

    @method("DELETE /v1/blobs/{blob_id}", NoContent)
    def delete(self, blob_id: str) -> Ask:
        """Take away a blob that no event cites."""
        return Ask((blob_id,))


class Imports(Group[M_co]):
    """Memories of other systems, brought over by a job."""

    def _source(self, source: Rows, given: asks.ImportRequest) -> Ask:
        said = {"scope_template": self.speaker.session.scope, **given}
        return Ask(body={**said, "source": {"inline": source} if _is_rows(source) else source})

    @method("POST /v1/import/mem0", ImportReceipt)
    def mem0(self, source: Rows, **given: Unpack[asks.ImportRequest]) -> Ask:
        """Memories of Mem0."""
        return self._source(source, given)

    @method("POST /v1/import/zep", ImportReceipt)
    def zep(self, source: Rows, **given: Unpack[asks.ImportRequest]) -> Ask:
        """Memories of Zep."""
        return self._source(source, given)

    @method("POST /v1/import/letta", ImportReceipt)
    def letta(self, source: Rows, **given: Unpack[asks.ImportRequest]) -> Ask:
        """Memories of Letta."""
        return self._source(source, given)

    @method("POST /v1/import/openai", ImportReceipt)
    def openai(self, source: Rows, **given: Unpack[asks.ImportRequest]) -> Ask:
        """Conversations of ChatGPT."""
        return self._source(source, given)

    @method("POST /v1/import/jsonl", ImportReceipt)
    def jsonl(self, source: Rows, **given: Unpack[asks.ImportRequest]) -> Ask:
        """Experiences a line each, as an export writes them; rows in a list are made lines."""
        if isinstance(source, list):
            source = "\n".join(msgspec.json.encode(row).decode() for row in source)
        return self._source(source, given)

    @method("GET /v1/import/{import_id}", ImportState)
    def get(self, import_id: str) -> Ask:
        """How far it is."""
        return Ask((import_id,))

    @waiting("GET /v1/import/{import_id}", ImportState)
    def wait(self, import_id: str, patience_s: float = 600.0) -> Ask:
        """How it ended, once it has."""
        return Ask((import_id,), patience_s=patience_s)

    @method("POST /v1/import/{import_id}/cancel", ImportState, is_safe=True)
    def cancel(self, import_id: str) -> Ask:
        """Stop it where it can stop."""
        return Ask((import_id,))


def _is_rows(source: Rows) -> bool:
    return isinstance(source, list | str)


class Exports(Group[M_co]):
    """A scope and all below it, taken out by a job."""

    @method("POST /v1/export", ExportReceipt)
    def start(self, **given: Unpack[asks.ExportRequest]) -> Ask:
        """Begin one."""
        return Ask(body=present(self._scoped(given)))

    @method("GET /v1/export/{export_id}", ExportState)
    def get(self, export_id: str) -> Ask:
        """How far it is, and where its file lies: `blobs.download(state.url)`."""
        return Ask((export_id,))

    @waiting("GET /v1/export/{export_id}", ExportState)
    def wait(self, export_id: str, patience_s: float = 600.0) -> Ask:
        """How it ended, once it has."""
        return Ask((export_id,), patience_s=patience_s)


class Forgets(Group[M_co]):
    """Before and after a `forget`."""

    @method("POST /v1/forget/preview", ForgetPreview, is_safe=True)
    def preview(self, **given: Unpack[asks.ForgetRequest]) -> Ask:
        """What a forget would do now."""
        return Ask(body=present(self._scoped(given)))

    @method("POST /v1/forget/{audit_id}/revert", RevertReceipt)
    def revert(self, audit_id: str) -> Ask:
        """Derive again what was forgotten, while that can be done."""
        return Ask((audit_id,))


class Erasures(Group[M_co]):
    """Erasing for good, and showing what would go and what has gone."""

    @method("POST /v1/erasures/preview", ErasurePreview, is_safe=True)
    def preview(self, **given: Unpack[asks.ErasureRequest]) -> Ask:
        """What an erasure would do now."""
        return Ask(body=present(self._scoped(given)))

    @listing("GET /v1/erasures/preview/{preview_id}/manifest", Manifest)
    def preview_manifest(self, preview_id: str, **query: Unpack[asks.ManifestQuery]) -> Ask:
        """The plan, line by line."""
        return Ask((preview_id,), query)

    @method("POST /v1/erasures", ErasureReceipt, is_safe=True)
    def start(self, **given: Unpack[asks.ErasureRequest]) -> Ask:
        """Erase: from a preview, or a whole scope with `confirm_all`."""
        return Ask(body=present(self._keyed(given)))

    @method("GET /v1/erasures/{erasure_id}", ErasureState)
    def get(self, erasure_id: str) -> Ask:
        """How far it is."""
        return Ask((erasure_id,))

    @waiting("GET /v1/erasures/{erasure_id}", ErasureState)
    def wait(self, erasure_id: str, patience_s: float = 600.0) -> Ask:
        """How it ended, once it has."""
        return Ask((erasure_id,), patience_s=patience_s)

    @listing("GET /v1/erasures/{erasure_id}/manifest", Manifest)
    def manifest(self, erasure_id: str, **query: Unpack[asks.ManifestQuery]) -> Ask:
        """What became of each line of the plan."""
        return Ask((erasure_id,), query)

    @method("POST /v1/erasures/{erasure_id}/cancel", ErasureCancel, is_safe=True)
    def cancel(self, erasure_id: str) -> Ask:
        """Stop at the next boundary; what is gone is gone."""
        return Ask((erasure_id,))
