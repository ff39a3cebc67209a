"""How was this found?  Times, choices, scores and a receipt, for those who may ask (001 §9)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.recall.select import Selection
from engine.recall.shapes import Shown
from schemas.pack import RecallReceipt, StratifiedPack

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.recall.run import Run

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Stopwatch:
    """The trail: what each stage did, and how long it took when that is asked for.

    Times stand only where diagnostics do: without them the same request gives the same bytes.
    """

    def __init__(self, elapsed_s: Callable[[], float], *, is_timed: bool) -> None:
        self._elapsed_s = elapsed_s
        self._is_timed = is_timed
        self._began = self._last = elapsed_s()
        self.trail: list[dict[str, Any]] = []
        self.times: dict[str, float] = {}

    def phase(self, name: str, **counts: Any) -> None:
        """A stage is done."""
        if self._is_timed:
            now = self._elapsed_s()
            counts["elapsed_ms"] = took = round((now - self._last) * 1000, 3)
            self._last = now
            self.times[name] = round(self.times.get(name, 0.0) + took, 3)
        self.trail.append({"phase": name, **counts})

    def total_ms(self) -> float:
        """Since the beginning."""
        return round((self._elapsed_s() - self._began) * 1000, 3)


def with_diagnostics(
    run: "Run", pack: StratifiedPack, selection: Selection, told: Sequence[Shown], digest: str
) -> StratifiedPack:
    """The pack, with as much about itself as was asked for."""
    if run.plan.diagnostics == "none":
        return pack
    said = _summary(run, selection, int(pack.watermark or 0))
    if run.plan.diagnostics == "full":
        said |= _full(run, selection, told)
        said["receipt"] = receipt(run, pack, told, digest)
    return msgspec.structs.replace(pack, diagnostics=said)


def _summary(run: "Run", selection: Selection, watermark: int) -> dict[str, Any]:
    plan = run.plan
    said: dict[str, Any] = {
        "plan": plan.name,
        "kind": plan.kind,
        "filters_applied": plan.filters.applied(),
        "scopes_traversed": [place.path for place in plan.places],
        "time_ms": {**run.watch.times, "total": run.watch.total_ms()},
        "tokenizer": run.pricing.name,
        "lag_entries": max(0, run.engine.log.head() - watermark),
        "indexes_degraded": run.engine.indexer.is_degraded,
        "_partial": run.engine.indexer.failure is not None,
    }
    if selection.is_binding:
        said["knapsack_evictions"] = len(selection.evicted)
        said["mmr"] = {"lambda": plan.mmr_lambda, "score_given_up": round(selection.given_up, 4)}
    return said


def _full(run: "Run", selection: Selection, told: Sequence[Shown]) -> dict[str, Any]:
    """Also: what made each score, what did not fit and its price, who decided, which models."""
    question = run.question
    return {
        "policy": {
            "capability": run.decision.capability,
            "tier_attribution": run.decision.tier,
            "preset": run.decision.preset,
            "denied_scopes": [one.path for one in run.plan.barred],
        },
        "question": {
            "kind": question.kind,
            "terms": list(question.terms),
            "gist": question.gist,
            "about": sorted(question.about),
            "spans_us": [list(span) for span in question.spans],
        },
        "models": {"embedder": run.pricing.name, "reranker": None},
        "scores": {
            one.id: {name: round(part, 4) for name, part in one.parts.items()} for one in told
        },
        "evictions": [
            {"id": offer.id, "layer": offer.layer, "tokens": offer.tokens, "score": offer.score}
            for offer in selection.evicted
        ],
    }


def receipt(run: "Run", pack: StratifiedPack, told: Sequence[Shown], digest: str) -> RecallReceipt:
    """All it takes to ask again; signed, so that what comes back is what was given out."""
    unsigned = RecallReceipt(
        request=run.request,
        plan=run.plan.name,
        as_of=run.plan.window.known_at,
        watermark=int(pack.watermark or 0),
        projectors=dict(run.engine.staged.versions),
        embedder=run.pricing.name,
        items=[one.id for one in told],
        digest=digest,
        signature="",
    )
    return msgspec.structs.replace(
        unsigned, signature=signature(unsigned, run.engine, run.caller.tenant)
    )


def signature(receipt: RecallReceipt, engine: "Engine", tenant: str) -> str:
    """Over everything a receipt says, and the tenant it was given to."""
    plain = msgspec.structs.replace(receipt, signature="")
    return engine.packs.mac("receipt", tenant.encode(), _encode(plain)).hex()
