"""How does a record read?  A triple as a sentence, a thing by its name, an instant as a date."""

from datetime import datetime
from typing import Final

import msgspec

from schemas.layers import LiteralValue, Node, Polarity

_plain_json: Final = msgspec.json.Encoder().encode
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""Whatever the language of the machine is: questions are read in English."""


def statement(subject: Node, predicate: str, value: Node, polarity: Polarity = "positive") -> str:
    """A triple as a sentence."""
    return f"{name_of(subject)} {words_of(predicate, polarity)} {name_of(value)}"


def words_of(predicate: str, polarity: Polarity = "positive") -> str:
    """A predicate as words."""
    words = predicate.replace("_", " ").replace(".", " ")
    return words if polarity == "positive" else f"not {words}"


def name_of(node: Node) -> str:
    """What something is called; a value is written as it is."""
    if not isinstance(node, LiteralValue):
        return node.name or node.id
    return node.value if isinstance(node.value, str) else _plain_json(node.value).decode()


def day(instant: datetime) -> str:
    """A date as people write it."""
    return f"{instant.day} {month(instant)}"


def month(instant: datetime) -> str:
    """A month as people write it; without the C library, which takes longer than all the rest."""
    return f"{_MONTHS[instant.month - 1]} {instant.year}"
