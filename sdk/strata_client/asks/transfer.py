"""Written by scripts/client: asks of transfer."""

from datetime import datetime
from typing import Any, Literal, TypedDict


class ImportSource(TypedDict, total=False):
    """Where the rows are: exactly one of inline, blob_id, path and url."""

    format: str | None
    inline: Any
    blob_id: str | None
    path: str | None
    url: str | None
    credentials_ref: str | None


class ImportOptions(TypedDict, total=False):
    """How rows are mapped; those of other systems are ignored by a system's own importer."""

    ordering: Literal["strict_temporal", "batch_throughput"]
    preserve_timestamps: bool
    map_categories_to: Literal["understanding", "labels", "none"]
    map_core_blocks_to: Literal["understanding", "events"]
    map_archival_to: Literal["events", "none"]
    preserve_bi_temporal: bool
    ontology_mapping: dict[str, str]
    extract: list[str] | None
    embed: Literal["lazy", "eager", "none"] | None
    skip_on_conflict: bool


class ImportRequest(TypedDict, total=False):
    """Bring memories over from another system."""

    scope_template: str
    options: ImportOptions


class Destination(TypedDict, total=False):
    """Where the file goes: it stays on the server and is fetched from there."""

    kind: Literal["server"]


class ExportRequest(TypedDict, total=False):
    """Take a scope and all below it out, as of a moment."""

    scope: str
    format: Literal["jsonl", "mem0", "zep", "letta"]
    layers: list[Literal["events", "episodes", "facts", "beliefs", "understanding"]]
    as_of: str | datetime | None
    destination: Destination
