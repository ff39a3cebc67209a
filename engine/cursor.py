"""Where does the next page begin, and was this cursor made for this question?"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from schemas import limits
from schemas.errors import InvalidCursor

_MAC_BYTES = 12
Item = TypeVar("Item")


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which page of a listing without filters."""

    limit: int = limits.PAGE_ITEMS_DEFAULT
    cursor: str | None = None


class Cursors:
    """Opaque positions, bound to the tenant and the query they were made for."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"strata cursors", "sha256")

    def make(self, position: bytes, *question: object) -> str:
        """A cursor for a position within one question."""
        return base64.urlsafe_b64encode(position + self._mac(position, question)).decode()

    def read(self, cursor: str, *question: object) -> bytes:
        """The position; InvalidCursor when it was made for another question, or not by us."""
        try:
            raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError, ValueError) as error:
            raise InvalidCursor(field="cursor", reason="not a cursor") from error
        position, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(position, question)):
            raise InvalidCursor(field="cursor", reason="made for another listing")
        return position

    def _mac(self, position: bytes, question: tuple[object, ...]) -> bytes:
        asked = repr(question).encode()
        framed = len(position).to_bytes(4, "big") + position + asked
        return hmac.digest(self._secret, framed, "sha256")[:_MAC_BYTES]

    def page(
        self, request: PageRequest, named: Mapping[str, Item], *question: object
    ) -> tuple[list[Item], str | None]:
        """A page of few things in the order of their names, and the cursor of the next."""
        after = "" if request.cursor is None else self.read(request.cursor, *question).decode()
        left = sorted(name for name in named if name > after)
        names = left[: request.limit]
        is_last = len(names) == len(left)
        cursor = None if is_last else self.make(names[-1].encode(), *question)
        return [named[name] for name in names], cursor
