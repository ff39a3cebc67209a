"""Written by scripts/client: models of transfer."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from strata_client.models.jobs import JobProblem


class ImportReceipt(Struct, frozen=True, kw_only=True):
    """An import has begun."""

    import_id: str
    status: str
    estimated_items: int
    lifecycle_stream: str


class ImportState(Struct, frozen=True, kw_only=True):
    """How far an import is."""

    import_id: str
    status: str
    fraction_complete: float
    processed: int
    total: int
    errors: list[JobProblem]
    error_count: int
    summary: dict[str, Any]
    created_at: datetime
    updated_at: datetime | None


class ExportReceipt(Struct, frozen=True, kw_only=True):
    """An export has begun."""

    export_id: str
    status: str
    estimated_size_bytes: int
    lifecycle_stream: str


class ExportState(Struct, frozen=True, kw_only=True):
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
    created_at: datetime
    updated_at: datetime | None
