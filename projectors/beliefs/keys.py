"""Where do beliefs lie, and all that is weighed for them?"""

from hashlib import blake2b
from typing import Final

import msgspec

from projectors.records import name_key
from schemas.layers import Claim, LiteralValue, Node

DIGEST_BYTES: Final = 16
_encode: Final = msgspec.msgpack.Encoder(order="sorted").encode


def claim_key(scope_no: int, claim: Claim, roots: tuple[str, str], *, refused: bool) -> bytes:
    """A claim in a scope, by what its two ends are the same as: however spelt, it is one claim.

    One that was refused is kept apart: it is not about the time for which the same is known.
    """
    what = (roots[0], claim.predicate, _said(claim.object, roots[1]), refused)
    return scope_no.to_bytes(4, "big") + digest(what)


def value_key(scope_no: int, predicate: str, root: str) -> bytes:
    """What a claim is about: a subject and a predicate in a scope."""
    return scope_no.to_bytes(4, "big") + digest((root, predicate))


def about_key(scope_no: int, thing: bytes, belief: bytes) -> bytes:
    """The beliefs that speak of a thing (`thing_of`), by scope."""
    return scope_no.to_bytes(4, "big") + thing + belief


def identity_key(scope_no: int, root: str) -> bytes:
    """A thing in a scope that may be another (`belief_identity`)."""
    return scope_no.to_bytes(4, "big") + name_key(root)


def term_key(vocabulary: str, belief: bytes = b"") -> bytes:
    """The beliefs whose predicate is a vocabulary's (`belief_terms`): a prefix, or one row."""
    return name_key(vocabulary) + belief


def due_key(due_s: int, belief: bytes) -> bytes:
    """Beliefs whose evidence waits, by the second until which it does."""
    return due_s.to_bytes(8, "big") + belief


def due_before(now_us: int) -> bytes:
    """The end of the rows of `belief_due` whose time has come."""
    return (now_us // 1_000_000 + 1).to_bytes(8, "big")


def due_belief(key: bytes) -> bytes:
    """Whose row of `belief_due` this is."""
    return key[8:]


def thing_of(node: Node, root: str) -> bytes | None:
    """Sixteen bytes for a thing of its own; a literal is none."""
    return None if isinstance(node, LiteralValue) else name_key(root)


def digest(value: object) -> bytes:
    """Sixteen bytes for any value that MessagePack can write."""
    return blake2b(_encode(value), digest_size=DIGEST_BYTES).digest()


def _said(node: Node, root: str) -> object:
    """What an object says: 200 is 200.0, and Paris is paris."""
    if not isinstance(node, LiteralValue):
        return root
    value = node.value
    if isinstance(value, str):
        return ("s", " ".join(value.split()).casefold())
    if isinstance(value, float) and value.is_integer():
        return ("n", int(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ("n" if is_number else "j", value)
