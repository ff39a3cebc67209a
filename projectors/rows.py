"""What do the rows look like that every layer has beside its records?"""

import msgspec


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A row whose key says all."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Which records of a layer the last entry of this tenant created, revised or closed.

    Kept as one row a layer and tenant (`<layer>_moved`, empty key): later stages read there what
    earlier ones did with the same entry, for projectors meet only in the view.
    """

    offset: int
    ids: list[str]
    superseded: list[str] = []
