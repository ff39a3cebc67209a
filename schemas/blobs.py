"""What does an upload answer?  (001 §8.13)"""

import msgspec

from schemas.times import Instant


class BlobRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A blob of the tenant. The same bytes uploaded again are the same blob."""

    blob_id: str
    size_bytes: int
    content_type: str
    sha256: str
    created_at: Instant
    filename: str | None = None
    perceptual_hash: str | None = None
