"""What is remembered of what followed from an event?"""

import msgspec


class DerivesRow(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of the records that an event supports, in the order they came."""

    ids: list[str]
