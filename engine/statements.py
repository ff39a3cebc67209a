"""How does a triple read as a sentence?"""

from typing import Any, Final

import msgspec
from msgspec import UNSET

_plain_json: Final = msgspec.json.Encoder().encode


def statement(subject: Any, predicate: str, thing: Any, polarity: str = "positive") -> str:
    """A triple as a sentence."""
    words = predicate.replace("_", " ").replace(".", " ")
    middle = words if polarity == "positive" else f"not {words}"
    return f"{name_of(subject)} {middle} {name_of(thing)}"


def name_of(node: Any) -> str:
    """What something is called."""
    for part in ("name", "value", "id"):
        found = getattr(node, part, None)
        if found is not None and found is not UNSET:
            return found if isinstance(found, str) else _plain_json(found).decode()
    return node if isinstance(node, str) else _plain_json(node).decode()
