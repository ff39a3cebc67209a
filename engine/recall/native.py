"""How is the same chosen, matched and ranked where there is a compiler?  By kernel.c (ADR 0045).

The twin of `columns.py` and `rank.py`: the same parts, pools and rankings, put together by a few
calls instead of some hundred of numpy's. Where nothing is compiled, those do it.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.recall import columns, shapes
from engine.recall.columns import SAMPLE_ROWS, Asked, Channel, Place, Scored
from engine.recall.question import MACHINES
from engine.recall.shapes import Ranked
from engine.state.block import Block
from engine.state.index import LAYERS, Hit, Layer

if TYPE_CHECKING:
    from engine.recall.candidates import Question
    from engine.recall.rank import Weights

_PEOPLE: Final = "people"
_ROLES: Final = {"user": 1, "assistant": 2}
_FEATURES: Final = (
    "words",
    "words_beside",
    "meaning",
    "meaning_beside",
    "words_session",
    "exchange",
    "exchange_session",
    "lent",
    "late",
    "late_around",
    "speaker",
    "role",
    "dated",
    "expected",
    "length",
    "asks",
    "current",
)
"""By the number that the kernel has for each."""


class Part:
    """The chosen rows of one block, and what the channels said of them."""

    __slots__ = ("block", "count", "place", "rows", "scores")

    def __init__(self, kernel: Any, place: Place, scored: Scored, near: int) -> None:
        block = self.block = place.block
        self.place = place
        self.rows, self.scores = kernel.choose(
            *scored, near, block.session, block.role, block.observed_us, place.admitted
        )
        self.count = len(self.rows) // 8


class Native:
    """Lays candidates out by the kernel; `columns` is the same without one."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def strongest(
        self,
        hits: list[Hit],
        layer: Layer,
        near: list[tuple[bytes, bytes, list[bytes]]],
        most: int,
    ) -> list[tuple[bytes, float]]:
        """The documents of a layer that words and meaning together speak for most, best first."""
        found: list[tuple[bytes, float]] = self._kernel.strongest(hits, layer, near, most)
        return found

    def found(self, hits: list[Hit], places: Sequence[Place]) -> list[Channel]:
        """What was said of documents, by where each lies: in the first place that has it."""
        given = [
            (place.layer, place.block.rows, len(place.block.raws), place.admitted)
            for place in places
        ]
        said: list[Channel] = self._kernel.found(hits, given)
        return said

    def parts_of(
        self, places: Sequence[Place], scored: Sequence[Scored], near: int = 0
    ) -> list[Part]:
        """What was chosen of these places; `near` of the best of a channel bring neighbours."""
        pairs = zip(places, scored, strict=True)
        return [Part(self._kernel, place, some, near) for place, some in pairs]

    def pools_of(self, groups: Sequence[Sequence[Part]], asked: Asked) -> list["Pool"]:
        """A pool a group. Most words stand in all of them, so they are matched at once."""
        kernel, words = self._kernel, asked.words.and_also(asked.expected)
        every = [part for parts in groups for part in parts]
        given = [(part.rows, part.block.starts, part.block.tokens) for part in every]
        pieces, places, lengths = kernel.pieces(given)
        if pieces and len(words):
            distinct = np.frombuffer(pieces, np.int32)
            vectors = asked.embedder.token_vectors(distinct)
            begins = asked.embedder.begins_word(distinct)
            met = kernel.meet(vectors @ words.vectors.T, vectors, begins, places, lengths)
        else:
            met = bytes(len(lengths) // 2 * len(words))
        pools, first = [], 0
        for parts in groups:
            last = first + sum(part.count for part in parts)
            own = memoryview(met)[first * len(words) * 4 : last * len(words) * 4]
            pools.append(Pool(kernel, parts, own, memoryview(lengths)[first * 8 : last * 8], asked))
            first = last
        return pools


def arithmetic() -> Any:
    """Who lays candidates out here: the kernel, or numpy where nothing is compiled."""
    try:
        from engine.recall import kernel  # noqa: PLC0415 - it may not be there
    except ImportError:
        return columns
    return Native(kernel)


class Pool:
    """Candidates, part after part, each in the order of the log."""

    def __init__(
        self, kernel: Any, parts: Sequence[Part], met: Any, lengths: Any, asked: Asked
    ) -> None:
        self.kernel = kernel
        self.parts = parts
        self.met = met
        self.lengths = lengths
        self.asked = asked

    def __len__(self) -> int:
        return len(self.lengths) // 8

    def importance(self) -> bytes:
        """How much each word counts, by how rare it is where the search goes on: float32[q]."""
        words, samples, texts = self.asked.words, [], 0
        for part in self.parts if len(words) else ():
            count, starts = len(part.block.raws), part.block.starts
            first = max(0, count - SAMPLE_ROWS)
            samples.append((part.block.tokens, int(starts[first]), int(starts[count])))
            texts += count - first
        found: bytes = self.kernel.weigh(words.pieces, words.starts, samples, texts)
        return found


# ── people ───────────────────────────────────────────────────────────────────────────────────


class _People(NamedTuple):
    """Who speaks in a block."""

    numbers: Mapping[str, int]
    is_human: bytes
    nobody: bytes
    roles: bytes


def _people_of(block: Block) -> _People:
    """Worked out when somebody new speaks."""
    known: _People | None = block.worked_out.get(_PEOPLE)
    actors, roles = block.actors, block.roles
    if known is None or len(known.is_human) < len(actors) or len(known.roles) < len(roles):
        names = list(actors)
        known = block.worked_out[_PEOPLE] = _People(
            {name: number for number, name in enumerate(names)},
            bytes(bool(name) and name.partition(":")[0] not in MACHINES for name in names),
            b"\xff" * 4 * len(names),
            bytes(_ROLES.get(role, 0) for role in roles),
        )
    return known


def _named(people: _People, about: Sequence[str]) -> Any:
    """int32[a]: which of those who are asked about an actor is; -1 is none."""
    places = [(people.numbers[name], at) for at, name in enumerate(about) if name in people.numbers]
    if not places:
        return people.nobody
    found = array("i", people.nobody)
    for number, at in places:
        found[number] = at
    return found


def _persons(parts: Sequence[Part]) -> list[Any]:
    """Numbers of actors that are the same in all parts; None where there is one part."""
    if len(parts) == 1:
        return [None]
    numbers: dict[str, int] = {}
    people = [_people_of(part.block) for part in parts]
    return [
        array("i", [numbers.setdefault(name, len(numbers)) for name in one.numbers])
        for one in people
    ]


# ── ranking ──────────────────────────────────────────────────────────────────────────────────


class Ranking(shapes.Ranking):
    """A pool in its order."""

    def __init__(
        self, pool: Pool, question: "Question", weights: "Weights", constants: tuple[float, ...]
    ) -> None:
        parts = [part for part in pool.parts if part.count]
        is_told = parts[0].place.layer == "events"
        self._parts = parts
        self._layers, known, self._features, twins = pool.kernel.rank(
            is_told,
            [
                _given(part, persons, question.about)
                for part, persons in zip(
                    parts, _persons(parts) if is_told else [None] * len(parts), strict=True
                )
            ],
            pool.asked.vector,
            pool.met,
            pool.importance(),
            len(pool.asked.expected),
            pool.lengths,
            array("q", [moment for span in question.spans for moment in span]),
            len(question.about),
            bool(question.expects),
            question.asks_assistant,
            question.wants_current,
            _numbers(weights, constants),
        )
        self._raws: list[bytes] = known[0]
        self._offsets, self._scores = array("q", known[1]), array("d", known[2])
        self._twins: dict[int, list[int]] = {}
        for better, worse in twins:
            self._twins.setdefault(better, []).append(worse)

    def order(self, layer: Layer) -> Sequence[int]:
        """The candidates of one layer, best first."""
        found: list[int] = self._layers[LAYERS.index(layer)]
        return found

    def items(self, layer: Layer, places: Sequence[int]) -> list[Ranked]:
        """Some of them, put together."""
        found, twins, raws = [], self._twins, self._raws
        scores, offsets = self._scores, self._offsets
        for place in places:
            one = Ranked(
                layer, raws[place], offsets[place], scores[place], ranking=self, place=place
            )
            if place in twins:
                one.duplicates = tuple([raws[other] for other in twins[place]])
            found.append(one)
        return found

    def parts(self, place: int) -> Mapping[str, float]:
        """What each feature added to a candidate."""
        columns = zip(_FEATURES, self._features, strict=True)
        return {
            name: memoryview(column).cast("f")[place]
            for name, column in columns
            if column is not None
        }

    def vector(self, place: int) -> Any:
        """float32[d], unit length."""
        for part in self._parts:
            if place < part.count:
                return part.block.vectors[memoryview(part.rows).cast("q")[place]]
            place -= part.count
        raise IndexError(place)


def _given(part: Part, persons: Any, about: Sequence[str]) -> tuple[Any, ...]:
    """A part as the kernel reads it."""
    block, people = part.block, _people_of(part.block)
    return (
        LAYERS.index(part.place.layer),
        block.raws,
        part.rows,
        part.scores,
        block.offsets,
        block.observed_us,
        block.session,
        block.actor,
        block.words,
        block.is_question,
        block.role,
        block.vectors,
        block.vectors.shape[1],
        people.is_human,
        _named(people, about) if about else people.nobody,
        people.roles,
        persons,
    )


@cache
def _numbers(weights: "Weights", constants: tuple[float, ...]) -> "array[float]":
    """All that the kernel weighs by, in its order."""
    found = array("d")
    for value in (*astuple(weights), *constants):
        found.extend(value if isinstance(value, tuple) else (value,))
    return found
