"""Written by scripts/client: models of blobs."""

from datetime import datetime

from msgspec import Struct


class BlobRecord(Struct, frozen=True, kw_only=True):
    """A blob of the tenant. The same bytes uploaded again are the same blob."""

    blob_id: str
    size_bytes: int
    content_type: str
    sha256: str
    created_at: datetime
    filename: str | None = None
    perceptual_hash: str | None = None
