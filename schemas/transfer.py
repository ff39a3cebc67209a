"""How is a move in or out asked for, and what does it answer?  (001 §8.11, §8.12)"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.envelope import Name
from schemas.jobs import Problem
from schemas.scope import ScopePath
from schemas.times import Instant

Template = Annotated[str, Meta(max_length=limits.SCOPE_CHARS_MAX)]
Ordering = Literal["strict_temporal", "batch_throughput"]
ExportLayer = Literal["events", "episodes", "facts", "beliefs", "understanding"]
ExportFormat = Literal["jsonl", "mem0", "zep", "letta"]


class ImportSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the rows are: exactly one of inline, blob_id, path and url."""

    format: Name | None = None
    inline: Any = None
    blob_id: Name | None = None
    path: Annotated[str, Meta(max_length=4096)] | None = None
    url: Annotated[str, Meta(max_length=4096)] | None = None
    credentials_ref: Name | None = None


class ImportOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How rows are mapped; those of other systems are ignored by a system's own importer."""

    ordering: Ordering = "batch_throughput"
    preserve_timestamps: bool = True
    map_categories_to: Literal["understanding", "labels", "none"] = "understanding"
    map_core_blocks_to: Literal["understanding", "events"] = "understanding"
    map_archival_to: Literal["events", "none"] = "events"
    preserve_bi_temporal: bool = True
    ontology_mapping: dict[str, Name] = {}
    extract: list[str] | None = None
    embed: Literal["lazy", "eager", "none"] | None = None
    skip_on_conflict: bool = False


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bring memories over from another system."""

    source: ImportSource
    scope_template: Template = ""
    options: ImportOptions = ImportOptions()


class ImportReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """An import has begun."""

    import_id: str
    status: str
    estimated_items: int
    lifecycle_stream: str


class ImportState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an import is (001 §8.11.6)."""

    import_id: str
    status: str
    fraction_complete: float
    processed: int
    total: int
    errors: list[Problem]
    error_count: int
    summary: dict[str, Any]
    created_at: Instant
    updated_at: Instant | None


class Destination(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the file goes: it stays on the server and is fetched from there."""

    kind: Literal["server"] = "server"


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a scope and all below it out, as of a moment."""

    scope: ScopePath
    format: ExportFormat = "jsonl"
    layers: Annotated[tuple[ExportLayer, ...], Meta(min_length=1)] = ("events",)
    as_of: Instant | None = None
    destination: Destination = Destination()


class ExportReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """An export has begun."""

    export_id: str
    status: str
    estimated_size_bytes: int
    lifecycle_stream: str


class ExportState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an export is; with its file once it is done."""

    export_id: str
    status: str
    fraction_complete: float
    processed: int
    total: int
    url: str | None
    size_bytes: int | None
    sha256: str | None
    summary: dict[str, Any]
    created_at: Instant
    updated_at: Instant | None
