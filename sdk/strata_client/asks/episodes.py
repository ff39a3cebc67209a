"""Written by scripts/client: asks of episodes."""

from datetime import datetime
from typing import Literal, TypedDict


class EpisodesQuery(TypedDict, total=False):
    """Filters of a page of episodes."""

    as_of: str | datetime | None
    valid_during: str | tuple[str | datetime | None, str | datetime | None] | None
    recorded_during: str | tuple[str | datetime | None, str | datetime | None] | None
    natural: str | None
    reference_date: str | datetime | None
    timezone: str | None
    natural_mode: Literal["strict", "lenient"]
    include_superseded: bool
    scope: str
    view: Literal["local", "holistic", "descend", "raw", "granular", "narrative", "structured"]
    order: Literal["newest", "oldest"]
    limit: int
    cursor: str | None
    actor: str | None
    session: str | None
    overlapping: str | tuple[str | datetime | None, str | datetime | None] | None
    with_causal_chain: bool
