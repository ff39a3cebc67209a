"""Written by scripts/client: asks of identity."""

from typing import Required, TypedDict


class RevokeRequest(TypedDict, total=False):
    """Which token, and why."""

    jti: Required[str]
    reason: str | None
