"""What single hash vouches for every row, in its place?  The Merkle tree of RFC 6962 (pure).

A tree over n leaves is kept as its peaks, the roots of its complete subtrees, and as the interior
nodes of complete subtrees by (level, index): none of them ever changes, so a tree only grows. The
head follows from the peaks alone, and a proof that a leaf is in it from about log₂ n nodes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

NOTHING: Final = sha256(b"").digest()
"""The head of a tree without leaves."""

# Hashes that have taken in their prefix: to copy one costs less than to ask the library for it.
_leaf: Final = sha256(b"\0").copy
_node: Final = sha256(b"\1").copy

Node = tuple[int, int]
"""(level, index): over the leaves from index << level to (index + 1) << level; level 0 is one."""


@dataclass(frozen=True, slots=True)
class Tree:
    """How many leaves there are, and the roots of the complete subtrees, widest first."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()


def leaf_hash(content: bytes) -> bytes:
    """The hash of a leaf; the prefix keeps a node from passing for one."""
    made = _leaf()
    made.update(content)
    return made.digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an interior node."""
    made = _node()
    made.update(left + right)
    return made.digest()


def grow(tree: Tree, leaves: Iterable[bytes]) -> tuple[Tree, list[tuple[Node, bytes]]]:
    """The tree with more leaves, and the interior nodes that they complete, in that order."""
    size, peaks = tree.size, list(tree.peaks)
    made: list[tuple[Node, bytes]] = []
    for leaf in leaves:
        level, index, top = 0, size, leaf
        while index & 1:
            top = node_hash(peaks.pop(), top)
            level, index = level + 1, index >> 1
            made.append(((level, index), top))
        peaks.append(top)
        size += 1
    return Tree(size, tuple(peaks)), made


def head_of(tree: Tree) -> bytes:
    """The root over all leaves: the peaks, joined from the narrowest to the widest."""
    if not tree.peaks:
        return NOTHING
    *wider, head = tree.peaks
    for peak in wider[::-1]:
        head = node_hash(peak, head)
    return head


def peaks_of(size: int) -> Iterator[Node]:
    """Where the peaks of a tree of this size are, widest first."""
    start = 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            yield level, start >> level
            start += 1 << level


def inclusion_path(index: int, size: int, node: Callable[[Node], bytes]) -> list[bytes]:
    """The siblings of one leaf from the bottom up: with them, leaf and size give the head."""
    assert 0 <= index < size, "only a leaf of the tree is in it"
    peaks = list(peaks_of(size))
    at = next(at for at, (level, place) in enumerate(peaks) if index >> level == place)
    path = [node((level, index >> level ^ 1)) for level in range(peaks[at][0])]
    narrower = tuple(node(peak) for peak in peaks[at + 1 :])
    if narrower:
        # What stands right of our peak is one node to the head, however many peaks it has.
        path.append(head_of(Tree(0, narrower)))
    path.extend(node(peak) for peak in reversed(peaks[:at]))
    return path


def head_by_path(index: int, size: int, leaf: bytes, path: list[bytes]) -> bytes | None:
    """The head that a leaf and its path lead to, None when the path has the wrong length.

    The verification of RFC 9162 §2.1.3.2: `last` walks up beside the leaf, on the right edge.
    """
    if not 0 <= index < size:
        return None
    last, head = size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            head = node_hash(sibling, head)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            head = node_hash(head, sibling)
        index, last = index >> 1, last >> 1
    return head if last == 0 else None
