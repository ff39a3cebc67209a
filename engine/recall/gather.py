"""Who may know?  Candidates by words, by meaning, by what stood beside and by what was derived.

The only stage of recall that asks the indexes: it takes the best of each channel and has them laid
out as columns, with what was said just before and after.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np

from engine.recall.candidates import Candidates, Question, Reach, Sources, Window
from engine.recall.columns import NOTHING, Asked, Channel, Place, Scored
from engine.recall.late import Words, words_of
from engine.recall.question import addressed, capitalised
from engine.state.block import Block
from engine.state.index import (
    Apart,
    Embedder,
    EmbedderUnavailable,
    Hit,
    Layer,
    Near,
    by_block,
)

_Hit = TypeVar("_Hit", Hit, Apart)
_WIDER: Final = 4
_HITS_MAX: Final = 6400
"""A filter may leave out most hits: the search is made wider, up to this many."""

_ROW_BYTES: Final = 8
_LENDERS: Final = 20
"""Facts whose events are looked up: each costs a read."""


def gather(
    sources: Sources,
    tenant_no: int,
    scope_nos: Sequence[int],
    question: Question,
    *,
    layers: Sequence[Layer],
    window: Window,
    reach: Reach,
) -> Candidates:
    """Everything that may answer, layer by layer; a layer that no scope has is not asked."""
    search = _Search(sources, tenant_no, scope_nos, window, reach)
    layers = [layer for layer in layers if search.places(layer)]
    question = search.addressed(question)
    vector = search.vector_of(question)
    asked = Asked(
        vector=vector,
        words=words_of(question.terms, sources.embedder),
        expected=_expected(question.expects, sources.embedder),
        embedder=sources.embedder,
    )
    derived: list[Layer] = [layer for layer in layers if layer != "events"]
    parts: dict[Literal["events", "derived"], list[Any]] = {}
    counts = dict.fromkeys(("words", "meaning", "facts"), 0)
    # Derived sentences are many and alike: events have a search of their own. Facts are asked in
    # any case, for they are further keys of the events behind them.
    told = search.ask(question, vector, ["facts", *derived] if "events" in layers else derived)
    if "events" in layers:
        hits = search.ask(question, vector, ["events"])
        lent = search.lent(told)
        parts["events"] = search.parts(["events"], hits, lent, near=reach.neighbours)
        counts = {"words": len(hits.words), "meaning": _count(hits), "facts": len(lent)}
    if derived:
        parts["derived"] = search.parts(derived, told, {})
        counts["words"] += len(told.words)
        counts["meaning"] += _count(told)
    pools = zip(parts, sources.arithmetic.pools_of(list(parts.values()), asked), strict=True)
    return Candidates(question=question, layers=layers, pools=dict(pools), hits=counts)


_known_sorts: Final[dict[tuple[str, frozenset[str]], Words]] = {}


def _expected(sort: frozenset[str], embedder: Embedder) -> Words:
    """The words of a sort of answer, by a model: there are two sorts, read once each."""
    found = _known_sorts.get((embedder.name, sort))
    if found is None:
        found = _known_sorts[embedder.name, sort] = words_of(sorted(sort), embedder)
    return found


class _Hits(NamedTuple):
    """What the two channels said: words best first, meaning block by block."""

    words: list[Hit]
    meaning: list[Near]


def _count(hits: _Hits) -> int:
    return sum(len(near.rows) // _ROW_BYTES for near in hits.meaning)


class _Search:
    """The indexes during one recall, and the blocks that were opened."""

    def __init__(
        self,
        sources: Sources,
        tenant_no: int,
        scope_nos: Sequence[int],
        window: Window,
        reach: Reach,
    ) -> None:
        self._sources = sources
        self._tenant_no = tenant_no
        self._scope_nos = list(scope_nos)
        self._blocks = sources.vectors.open(tenant_no, self._scope_nos)
        self._window = window
        self._reach = reach
        self._opened: dict[Layer, list[Place]] = {}

    def places(self, layer: Layer) -> list[Place]:
        """The blocks of a layer, one a scope that has any."""
        found = self._opened.get(layer)
        if found is None:
            blocks = ((no, self._blocks.block(no, layer)) for no in self._scope_nos)
            found = self._opened[layer] = [
                Place(layer, no, block, self._admitted(layer, block), self._blocks)
                for no, block in blocks
                if block is not None
            ]
        return found

    def _admitted(self, layer: Layer, block: Block) -> Any:
        window = self._window
        admitted = None if window.admits is None else window.admits(layer, block)
        if window.recorded_until_us is None:
            return admitted
        known = block.recorded_us < window.recorded_until_us
        return known if admitted is None else known & admitted

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def addressed(self, question: Question) -> Question:
        """The question among those who take part in what is searched, whatever they are called."""
        places = self.places("events")
        actors = {actor for place in places for actor in place.block.actors}
        found = addressed(question, actors)
        if found.about:
            return found
        called = {
            name.lower(): actor
            for place in places
            for name in capitalised(question)
            if (actor := self._sources.actor_called(self._tenant_no, place.scope_no, name))
        }
        present = {name: actor for name, actor in called.items() if actor in actors}
        return addressed(question, actors, present) if present else found

    def vector_of(self, question: Question) -> Any:
        """The question as a vector; None when there is no model now, and words must do."""
        try:
            return self._sources.embedder.embed_query(question.gist)
        except EmbedderUnavailable:
            return None

    def ask(self, question: Question, vector: Any, layers: Sequence[Layer]) -> _Hits:
        """The best of both channels, over these layers together; an empty one is not asked."""
        layers = [layer for layer in dict.fromkeys(layers) if self.places(layer)]
        if not layers:
            return _Hits([], [])
        sources, until_us = self._sources, self._window.recorded_until_us
        query = " ".join(question.terms)

        def by_words(limit: int) -> list[Hit]:
            return sources.text.search(
                self._tenant_no,
                self._scope_nos,
                query,
                layers=layers,
                limit=limit,
                recorded_until_us=until_us,
            )

        def by_meaning(limit: int) -> list[Near]:
            return self._blocks.search(
                vector, layers=layers, limit=limit, recorded_until_us=until_us
            )

        words = self._wide_enough(by_words, self._reach.words, self._has_words)
        return _Hits(words, [] if vector is None else self._meant(by_meaning))

    def _wide_enough(
        self, search: Callable[[int], list[_Hit]], wanted: int, may_be_found: Callable[[_Hit], bool]
    ) -> list[_Hit]:
        """The best that may be found; the search is made again, wider, when too few of them may."""
        limit = wanted
        hits = search(limit)
        if self._window.admits is None:
            return hits
        while True:
            kept = [hit for hit in hits if may_be_found(hit)]
            if len(kept) >= wanted or len(hits) < limit or limit >= _HITS_MAX:
                return kept[:wanted]
            limit *= _WIDER
            hits = search(limit)

    def _has_words(self, hit: Hit) -> bool:
        _, layer, raw, _ = hit
        return any(place.row_of(raw) is not None for place in self.places(layer))

    def _meant(self, search: Callable[[int], list[Near]]) -> list[Near]:
        """The same by meaning; only where there is a filter are they looked at one by one."""
        if self._window.admits is None:
            return search(self._reach.meaning)

        def one_by_one(limit: int) -> list[Apart]:
            return sorted([one for near in search(limit) for one in self._apart(near)])

        kept = self._wide_enough(one_by_one, self._reach.meaning, self._has_meaning)
        return by_block(kept)

    def _raws(self, near: Near) -> list[bytes]:
        block = self._blocks.block(near.scope_no, near.layer)
        assert block is not None, "something was found there"
        return block.raws

    def _apart(self, near: Near) -> list[Apart]:
        layer, scope_no, raws = near.layer, near.scope_no, self._raws(near)
        return [(-score, layer, raws[row], scope_no, row) for row, score in near.pairs()]

    def _has_meaning(self, one: Apart) -> bool:
        _, layer, _, scope_no, row = one
        return any(p.scope_no == scope_no and p.may_show(row) for p in self.places(layer))

    def lent(self, told: _Hits) -> dict[bytes, float]:
        """What facts that were found lend to the events they rest on: a derived key of the event.

        The event is what is served, so a fact adds to its score and never takes its place.
        """
        near = [
            (near.rows, near.scores, self._raws(near))
            for near in told.meaning
            if near.layer == "facts"
        ]
        strength: dict[bytes, float] = dict(
            self._sources.arithmetic.strongest(told.words, "facts", near, _LENDERS)
        )
        lent: dict[bytes, float] = {}
        behind = self._sources.events_behind(self._tenant_no, "facts", list(strength))
        for fact, events in behind.items():
            much = strength[fact]
            for event in events:
                lent[event] = max(lent.get(event, 0.0), much)
        return lent

    # ── finding rows ─────────────────────────────────────────────────────────────────────────

    def parts(
        self, layers: Sequence[Layer], hits: _Hits, lent: Mapping[bytes, float], near: int = 0
    ) -> list[Any]:
        """The candidates of these layers, where they lie."""
        places = [place for layer in layers for place in self.places(layer)]
        meant = {(near.layer, near.scope_no): near for near in hits.meaning}
        arithmetic = self._sources.arithmetic
        words: list[Channel] = arithmetic.found(hits.words, places)
        behind: list[Hit] = [(-strength, "events", raw, 0) for raw, strength in lent.items()]
        told: list[Channel] = arithmetic.found(behind, places)
        scored = [
            Scored(words[at], _shown(meant.get((place.layer, place.scope_no)), place), told[at])
            for at, place in enumerate(places)
        ]
        found_parts: list[Any] = arithmetic.parts_of(places, scored, near)
        return found_parts


def _shown(near: Near | None, place: Place) -> Channel:
    """What was found in a place by meaning, where it may be found."""
    if near is None:
        return NOTHING
    if place.admitted is None:
        return near.rows, near.scores
    rows, scores = np.frombuffer(near.rows, np.int64), np.frombuffer(near.scores, np.float32)
    keep = place.admitted[rows]
    return rows[keep], scores[keep]
