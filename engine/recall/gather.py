"""Who may know?  Candidates by words, by meaning, by what stood beside and by what was derived.

The only stage of recall that asks the indexes: it takes the best of each channel and has them laid
out as columns, with what was said just before and after.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from engine.recall.candidates import Candidates, Question, Reach, Sources, Window
from engine.recall.columns import Asked, Place, Scored, pool_of
from engine.recall.late import words_of
from engine.recall.question import addressed
from engine.state.index import Block, EmbedderUnavailable, Hit, Layer

_WIDER: Final = 4
_HITS_MAX: Final = 6400
"""A filter may leave out most hits: the search is made wider, up to this many."""

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
    """Everything that may answer, layer by layer."""
    search = _Search(sources, tenant_no, scope_nos, window, reach)
    question = search.addressed(question)
    vector = search.vector_of(question)
    hits: dict[Layer, _Hits] = {}
    derived: list[Layer] = [layer for layer in layers if layer != "events"]
    lent: Mapping[bytes, float] = {}
    # Derived sentences are many and alike: events have a search of their own. Facts are asked in
    # any case, for they are further keys of the events behind them.
    if "events" in layers:
        derived = list(dict.fromkeys(("facts", *derived)))
        hits |= search.ask(question, vector, ["events"])
    hits |= search.ask(question, vector, derived)
    if "events" in layers:
        lent = search.lent(hits["facts"])
    asked = Asked(
        vector=vector,
        words=words_of(question.terms, sources.embedder),
        expected=words_of(sorted(question.expects), sources.embedder),
        embedder=sources.embedder,
    )
    near = replace(asked, near=reach.neighbours)
    pools = {}
    for layer in layers:
        is_event = layer == "events"
        scored = search.scored(layer, hits[layer], lent if is_event else {})
        pools[layer] = pool_of(layer, search.places(layer), scored, near if is_event else asked)
    counts = {
        "words": sum(len(some.words) for some in hits.values()),
        "meaning": sum(len(some.meaning) for some in hits.values()),
        "facts": len(lent),
    }
    return Candidates(question=question, pools=pools, hits=counts)


@dataclass(frozen=True)
class _Hits:
    """What the two channels said of a layer, best first."""

    words: list[Hit]
    meaning: list[Hit]


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
        self._window = window
        self._reach = reach
        self._opened: dict[Layer, list[Place]] = {}

    def places(self, layer: Layer) -> list[Place]:
        """The blocks of a layer, one a scope that has any."""
        if layer not in self._opened:
            vectors, tenant_no = self._sources.vectors, self._tenant_no
            blocks = ((no, vectors.block(tenant_no, no, layer)) for no in self._scope_nos)
            self._opened[layer] = [
                Place(no, block, self._admitted(layer, block))
                for no, block in blocks
                if block is not None
            ]
        return self._opened[layer]

    def _admitted(self, layer: Layer, block: Block) -> Any:
        window = self._window
        admitted = None if window.admits is None else window.admits(layer, block)
        if window.recorded_until_us is None:
            return admitted
        known = block.recorded_us < window.recorded_until_us
        return known if admitted is None else known & admitted

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def addressed(self, question: Question) -> Question:
        """The question among those who take part in what is searched."""
        actors = (actor for place in self.places("events") for actor in place.block.actors)
        return addressed(question, actors)

    def vector_of(self, question: Question) -> Any:
        """The question as a vector; None when there is no model now, and words must do."""
        try:
            return self._sources.embedder.embed_query(question.gist)
        except EmbedderUnavailable:
            return None

    def ask(self, question: Question, vector: Any, layers: Sequence[Layer]) -> dict[Layer, _Hits]:
        """The best of both channels, over these layers together; one that is empty is not asked."""
        asked, layers = layers, [layer for layer in layers if self.places(layer)]
        if not layers:
            return {layer: _Hits([], []) for layer in asked}
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

        def by_meaning(limit: int) -> list[Hit]:
            return sources.vectors.search(
                self._tenant_no,
                self._scope_nos,
                vector,
                layers=layers,
                limit=limit,
                recorded_until_us=until_us,
            )

        words = self._wide_enough(by_words, self._reach.words)
        meaning = [] if vector is None else self._wide_enough(by_meaning, self._reach.meaning)
        return {
            layer: _Hits(
                [hit for hit in words if hit.layer == layer],
                [hit for hit in meaning if hit.layer == layer],
            )
            for layer in asked
        }

    def _wide_enough(self, search: Callable[[int], list[Hit]], wanted: int) -> list[Hit]:
        """The best that may be found; the search is made again, wider, when too few of them may."""
        limit = wanted
        hits = search(limit)
        if self._window.admits is None:
            return hits
        while True:
            kept = [hit for hit in hits if self._find(hit.layer, hit.raw) is not None]
            if len(kept) >= wanted or len(hits) < limit or limit >= _HITS_MAX:
                return kept[:wanted]
            limit *= _WIDER
            hits = search(limit)

    def lent(self, facts: _Hits) -> dict[bytes, float]:
        """What facts that were found lend to the events they rest on: a derived key of the event.

        The event is what is served, so a fact adds to its score and never takes its place.
        """
        most = max((hit.score for hit in facts.words), default=1.0)
        strength = {hit.raw: hit.score / most for hit in facts.words}
        for hit in facts.meaning:
            strength[hit.raw] = strength.get(hit.raw, 0.0) + hit.score
        best = sorted(strength, key=lambda raw: (-strength[raw], raw))[:_LENDERS]
        lent: dict[bytes, float] = {}
        for fact, events in self._sources.events_behind(self._tenant_no, "facts", best).items():
            for event in events:
                lent[event] = max(lent.get(event, 0.0), strength[fact])
        return lent

    # ── finding rows ─────────────────────────────────────────────────────────────────────────

    def scored(self, layer: Layer, hits: _Hits, lent: Mapping[bytes, float]) -> list[Scored]:
        """The scores of each channel by row, place by place."""
        words = self._by_place(layer, ((hit.raw, hit.score) for hit in hits.words))
        meaning = self._by_place(layer, ((hit.raw, hit.score) for hit in hits.meaning))
        borrowed = self._by_place(layer, lent.items())
        return [Scored(*some) for some in zip(words, meaning, borrowed, strict=True)]

    def _by_place(
        self, layer: Layer, scores: Iterable[tuple[bytes, float]]
    ) -> list[dict[int, float]]:
        places = self.places(layer)
        if len(places) == 1:
            rows = ((places[0].row_of(raw), score) for raw, score in scores)
            return [{row: score for row, score in rows if row is not None}]
        found: list[dict[int, float]] = [{} for _ in places]
        for raw, score in scores:
            place = self._find(layer, raw)
            if place is not None:
                found[place[0]][place[1]] = score
        return found

    def _find(self, layer: Layer, raw: bytes) -> tuple[int, int] | None:
        """(which place, which row) a document is at, if it may be found."""
        for at, place in enumerate(self.places(layer)):
            row = place.row_of(raw)
            if row is not None:
                return at, row
        return None
