"""Written by scripts/client: asks of reads."""

from typing import TypedDict


class SynthesizeRequest(TypedDict, total=False):
    """Make the concepts of a scope anew; those of some topics only, or all of them."""

    scope: str
    topics: list[str]
    force: bool
    idempotency_key: str | None
