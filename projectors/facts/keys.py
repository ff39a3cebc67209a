"""Where do facts and their lines lie, and what does an object say, however it is spelt?"""

from typing import Final

import msgspec

from projectors.records import name_key
from schemas.ids import format_id, parse_id
from schemas.layers import EntityRef, LiteralValue, Node


def fact_id(raw: bytes) -> str:
    """The id of a fact by its sixteen bytes."""
    return format_id("fact", raw)


def raw_of(fact: str) -> bytes:
    """The sixteen bytes of a fact's id."""
    raw = parse_id("fact", fact)
    assert raw is not None, f"{fact} is not the id of a fact"
    return raw


def line_key(scope_no: int, *what: str) -> bytes:
    """The line of something in a scope."""
    return scope_no.to_bytes(4, "big") + name_key(*what)


def value_of(what: str) -> bytes:
    """Eight bytes that tell one object from another on the same line."""
    return name_key(what)[:8]


_json: Final = msgspec.json.Encoder(order="deterministic").encode


def said(node: Node, root: str | None) -> str:
    """What an object says, however it is spelt: 200 is 200.0, and Paris is paris."""
    if not isinstance(node, LiteralValue):
        return f"{'e' if isinstance(node, EntityRef) else 'c'}:{root or node.id}"
    value = node.value
    if isinstance(value, str):
        return f"s:{' '.join(value.split()).casefold()}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        is_whole = isinstance(value, int) or value.is_integer()
        return f"n:{int(value) if is_whole else repr(value)}"
    return f"j:{_json(value).decode()}"
