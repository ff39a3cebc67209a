"""How does one recall go from a request to a pack?  Stage by stage, each timed and counted."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from engine.packs import Kept
from engine.recall import diagnose
from engine.recall.candidates import Question, Reach
from engine.recall.graph import subgraph
from engine.recall.load import INDEXED, Loader
from engine.recall.pack import (
    citations_of,
    context_block,
    evidence_of,
    layers_of,
    line_for,
    numbered,
    pricing_of,
    scores_of,
)
from engine.recall.plan import Plan
from engine.recall.render import excerpt_of
from engine.recall.search import Search
from engine.recall.select import Selection, select
from engine.recall.shapes import UNMARKED, Found, Ranked, Shown
from engine.recall.temporal import reach_of
from engine.state.index import Layer
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.pack import (
    LayerName,
    Provenance,
    RecallRequest,
    Spent,
    StratifiedPack,
    Traversed,
)
from schemas.times import from_us

if TYPE_CHECKING:
    from engine.engine import Engine

DEMOTED: Final = 0.5
"""What an item's score is multiplied by when the request has its mark ranked down."""

_BELOW: Final = 0.99
"""Just below: what was superseded, beside what took its place."""

_CHARS_A_TOKEN: Final = 3
_CHARS_A_TOKEN_MAX: Final = 8
_EXCERPT_TOKENS_MIN: Final = 48
_WIDER: Final = 4
_REACH_MAX: Final = 6400
_pack_evidence: Final = msgspec.msgpack.Encoder().encode
_encode_pack: Final = msgspec.json.Encoder().encode
_encode_request: Final = msgspec.json.Encoder(order="deterministic").encode


class Run:
    """One recall: planned when it is made, carried out by `finish`."""

    def __init__(
        self,
        engine: "Engine",
        caller: Caller,
        request: RecallRequest,
        *,
        plan: Plan,
        question: Question,
        watch: diagnose.Stopwatch,
        decision: Decision,
    ) -> None:
        self.engine = engine
        self.caller = caller
        self.request = request
        self.plan = plan
        self.question = question
        self.watch = watch
        self.decision = decision
        self._tenant_no = engine.tenant_no(caller) or 0
        self._search = Search(engine, self._tenant_no)
        self.pricing = pricing_of(self._search.embedder)
        blocks = self._search.event_blocks(plan.scope_numbers)
        self._loader = Loader(engine, caller, self._tenant_no, plan, blocks)
        self._asked = asked(request)

    def finish(self) -> Kept:
        """Everything after the plan; those who derive give way meanwhile."""
        with self.engine.committer.way.taken():
            return self._finish()

    def _finish(self) -> Kept:
        found = self._find()
        shown = self._shown(found)
        selection = self._select(shown)
        if len(selection.chosen) < len(shown):
            chosen = {offer.id for offer in selection.chosen}
            shown = [one for one in shown if one.id in chosen]
        return self._pack(numbered(self.plan, shown), selection)

    # ── finding ──────────────────────────────────────────────────────────────────────────────

    def _find(self) -> list[Found]:
        """The candidates that are there, lie in the window and pass the filters, layer by layer.

        A filter that the columns of the indexes do not know takes candidates out only now: when too
        few are left, the search is made again, wider.
        """
        caps = {layer: cap for layer, cap in self.plan.caps.items() if cap > 0}
        if not self._tenant_no or not self.plan.scope_numbers or not caps:
            self.watch.phase("gather", hits={})
            return []
        reach = Reach()
        while True:
            ranked = self._ranked(caps, reach)
            found = [one for layer in caps for one in self._loader.collect(layer, ranked[layer])]
            is_short = self.plan.filters.condition is not None and any(
                len(ranked[layer]) >= reach.words and sum(one.layer == layer for one in found) < cap
                for layer, cap in caps.items()
            )
            if not is_short or reach.words >= _REACH_MAX:
                self.watch.phase("temporal", looked_at=self._loader.looked, left=len(found))
                return found
            reach = replace(reach, words=reach.words * _WIDER, meaning=reach.meaning * _WIDER)

    def _ranked(
        self, caps: Mapping[LayerName, int], reach: Reach
    ) -> Mapping[LayerName, Sequence[Ranked]]:
        window = reach_of(self.plan)
        layers: dict[Layer, LayerName] = {INDEXED[layer]: layer for layer in caps}
        search, scopes = self._search, self.plan.scope_numbers
        if not self.question.text:
            wanted = {own: max(caps[layer], reach.words) for own, layer in layers.items()}
            found = search.newest(scopes, wanted, window)
            self.watch.phase("gather", hits={"recency": sum(map(len, found.values()))})
        else:
            candidates = search.gather(scopes, self.question, list(layers), window, reach)
            self.question = candidates.question
            self.watch.phase("gather", hits=dict(candidates.hits))
            found = search.rank(candidates)
            self.watch.phase("rank", ranked=sum(map(len, found.values())))
        return {layer: found.get(own, ()) for own, layer in layers.items()}

    # ── presenting ───────────────────────────────────────────────────────────────────────────

    def _shown(self, found: Sequence[Found]) -> list[Shown]:
        share = max(self.plan.max_tokens // limits.PACK_ITEM_SHARE, _EXCERPT_TOKENS_MIN)
        citing = self.pricing.citing(self.plan, len(found))
        shown = [self._present(one, citing, share) for one in found]
        if any(one.marks.is_superseded for one in shown):
            self._lower(shown)
        return shown

    def _lower(self, shown: Sequence[Shown]) -> None:
        """What was superseded, and is to be ranked down, stands below what took its place."""
        scores = {one.id: one.score for one in shown}
        said = self.plan.treatments
        for one in shown:
            how = said.superseded_events if one.layer == "events" else said.superseded
            if one.marks.is_superseded and how == "demote":
                later = self._loader.successors(one.thing, one.marks)
                ceiling = max((scores[name] for name in later if name in scores), default=1.0)
                one.score = min(one.score, ceiling * _BELOW)

    def _present(self, one: Found, citing: Callable[[str], int], share: int) -> Shown:
        """A record with its line and its price; a long text is cut to the part that matters."""
        plan, thing, sheet, marks = self.plan, one.thing, one.sheet, one.marks
        is_told, excerpt = one.layer == "events", None
        if is_told and len(sheet.words) > share * _CHARS_A_TOKEN_MAX:
            line, tokens = "", share + 1
        else:
            line, tokens = self.pricing.whole(plan, thing, marks, sheet)
        if is_told and tokens > share and sheet.words:
            line, tokens, excerpt = self._cut(one, share)
        score = one.ranked.score if marks is UNMARKED else self._score(one)
        return Shown(one, score, tokens + citing(thing.id), line, excerpt)

    def _cut(self, one: Found, share: int) -> tuple[str, int, tuple[int, int]]:
        """The line of a part of a text, what it costs and where the part lies.

        The part is made shorter until it fits.
        """
        words, chars = one.sheet.words, share * _CHARS_A_TOKEN
        while True:
            excerpt = excerpt_of(words, self.question.terms, chars)
            line = line_for(self.plan, one.thing, one.marks, words[slice(*excerpt)])
            tokens = self.pricing.line(line)
            chars = chars * 2 // 3
            if tokens <= share or chars <= _CHARS_A_TOKEN:
                return line, tokens, excerpt

    def _score(self, one: Found) -> float:
        """The rank's score, less for what the request has ranked down."""
        said, marks, score = self.plan.treatments, one.marks, one.ranked.score
        # An event still proves what was: it only has to stand below what came in its place.
        is_over = marks.is_superseded and one.layer != "events"
        for holds, treatment in (
            (is_over, said.superseded),
            (marks.is_stale, said.stale),
            (marks.is_low_trust, said.low_trust),
        ):
            if holds and treatment == "demote":
                score *= DEMOTED
        return score

    def _select(self, shown: Sequence[Shown]) -> Selection:
        plan = self.plan
        frame = self.pricing.frame(plan)
        selection = select(shown, plan.caps, plan.max_tokens, frame, plan.mmr_lambda)
        applied = {"lambda": plan.mmr_lambda} if selection.is_binding else {}
        self.watch.phase(
            "select",
            chosen=len(selection.chosen),
            evicted=len(selection.evicted),
            tokens=selection.used_tokens,
            **applied,
        )
        return selection

    # ── packing ──────────────────────────────────────────────────────────────────────────────

    def _pack(self, told: list[Shown], selection: Selection) -> Kept:
        plan, engine, caller = self.plan, self.engine, self.caller
        citations, withheld = self._loader.citations(told)
        for one in told if withheld else ():
            one.withheld = withheld.get(one.id, 0)
        watermark = self._search.watermark()
        decided = (caller.tenant.encode(), caller.actor.encode(), self._asked, _number(watermark))
        block = context_block(plan, told, engine.packs.nonce(*decided))
        digest, scores = _digest(told), scores_of(told)
        self.watch.phase("pack", items=len(told), citations=len(citations))
        expires_us = engine.packs.expiry_us()
        pack = StratifiedPack(
            request_id="" if caller.origin is None else caller.origin.request_id,
            scope=self.request.scope,
            view=plan.view,
            context_block=block,
            layers=layers_of(plan, told, scores),
            provenance=Provenance(trail=self.watch.trail, citations=citations),
            pack_id=engine.packs.new_id(engine.log.last_recorded_us, *decided, digest.encode()),
            as_of=plan.window.known_at,
            expires_at=from_us(expires_us),
            watermark=watermark,
            citations=citations_of(plan, told, scores),
            scopes_traversed=self._traversed(told),
            budget=Spent(
                max_tokens=plan.max_tokens,
                used_tokens=selection.used_tokens,
                counted_by=self.pricing.name,
            ),
            knowledge_subgraph=subgraph(told, citations) if plan.shape.shows_graph else None,
            partial=engine.indexer.failure is not None,
            partial_reason=None if engine.indexer.failure is None else "indexing_stopped",
        )
        pack = diagnose.with_diagnostics(self, pack, selection, told, digest)
        kept = Kept(
            pack_id=str(pack.pack_id),
            raw=_encode_pack(pack),
            evidence=_pack_evidence(evidence_of(told)),
            plan=plan.said(),
            is_narrative=plan.shape.rendering == "narrative",
            items=tuple([one.id for one in told]),
            scopes=tuple(place.path for place in plan.places),
            warnings=plan.warnings,
            digest=digest,
            asked=self._asked,
            total_ms=self.watch.total_ms(),
            expires_us=expires_us,
        )
        engine.packs.keep(caller, kept, self.request.idempotency_key)
        return kept

    def _traversed(self, told: Sequence[Shown]) -> list[Traversed]:
        """Every scope on the way: what it gave, or that it is closed and how much is there."""
        gave = Counter([one.thing.scope for one in told])
        read = [Traversed(scope=place.path, items=gave[place.path]) for place in self.plan.places]
        until = self._loader.last_known() if self.plan.barred and self.plan.is_past else None
        closed = [
            Traversed(
                scope=one.path,
                denied=True,
                item_count=self._search.count_events(one.number, until),
                denied_reason=one.reason,
            )
            for one in self.plan.barred
        ]
        return read + closed


def asked(request: RecallRequest) -> bytes:
    """What a request asks, whichever way it wants to be told."""
    plain = structs.replace(request, stream=False, idempotency_key=None)
    return sha256(_encode_request(plain)).digest()


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _digest(told: Sequence[Shown]) -> str:
    """What the pack says, apart from when it was asked: the lines, in their order."""
    said: list[str] = []
    for one in told:
        said += (one.layer, one.id, one.line)
    said.append("")
    return sha256("\0".join(said).encode()).hexdigest()
