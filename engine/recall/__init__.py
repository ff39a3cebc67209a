"""What do we know about this?  Plan, gather, temporal, rank, select, pack (DESIGN §6).

`recall` is a question and its pack, `recall_stream` the same pack piece by piece, `replay` the same
question to the engine as it was when a receipt was given out.
"""

import asyncio
import hmac
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from engine import policy
from engine.packs import Kept
from engine.recall import stream
from engine.recall.begin import begin, permit
from engine.recall.diagnose import signature
from engine.recall.run import Run, asked
from schemas.caller import Caller
from schemas.errors import InvalidParameter
from schemas.pack import RecallRequest, ReplayAnswer, ReplayDifference, ReplayRequest

if TYPE_CHECKING:
    from engine.engine import Engine

__all__ = ["Recalled", "find_pack", "recall", "recall_stream", "replay"]


@dataclass(frozen=True)
class Recalled:
    """A pack, and whether it is one from before."""

    kept: Kept
    is_replay: bool = False


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


def recall(engine: "Engine", caller: Caller, request: RecallRequest) -> Recalled:
    """The pack that answers a question; the same key gives the same pack for a minute."""
    decision = policy.require(engine, caller, "scope.read.local", request.scope)
    permit(engine, caller, request)
    kept = _by_key(engine, caller, request)
    if kept is not None:
        return Recalled(kept, is_replay=True)
    return Recalled(begin(engine, caller, request, decision).finish())


def recall_stream(
    engine: "Engine", caller: Caller, request: RecallRequest, last_event_id: str | None = None
) -> AsyncGenerator[bytes, None]:
    """The same pack as server-sent events; after a break, the rest of it (001 §10.4)."""
    decision = policy.require(engine, caller, "scope.read.local", request.scope)
    permit(engine, caller, request)
    if last_event_id is not None:
        heard = stream.last_heard(last_event_id)
        if heard is None:
            raise InvalidParameter(field="Last-Event-ID", reason="not the id of a recall's event")
        kept = engine.packs.find(caller, heard[0])
        if kept.asked != asked(request):
            raise InvalidParameter(field="Last-Event-ID", reason="of another request")
        return _sent(kept, heard[1])
    known = _by_key(engine, caller, request)
    if known is not None:
        return _sent(known, 0)
    return _streamed(begin(engine, caller, request, decision))


def find_pack(engine: "Engine", caller: Caller, pack_id: str) -> Kept:
    """A pack of the last minute, if its scopes may still be read."""
    policy.require(engine, caller, "scope.read.local")
    kept = engine.packs.find(caller, pack_id)
    policy.require_all(engine, caller, "scope.read.local", kept.scopes)
    return kept


def replay(engine: "Engine", caller: Caller, request: ReplayRequest) -> ReplayAnswer:
    """The receipt's question, asked of the engine as it was; whether the answer is the same."""
    decision = policy.require(engine, caller, "scope.read.local", request.receipt.request.scope)
    receipt = request.receipt
    signed = signature(receipt, engine, caller.tenant)
    if not hmac.compare_digest(signed.encode(), receipt.signature.encode()):
        raise InvalidParameter(field="receipt.signature", reason="not a receipt of this server's")
    question = msgspec.structs.replace(receipt.request, idempotency_key=None, stream=False)
    permit(engine, caller, question)
    again = begin(engine, caller, question, decision, receipt).finish()
    return ReplayAnswer(
        same=again.digest == receipt.digest,
        digest=again.digest,
        differences=_difference(receipt.items, list(again.items)),
        projectors=dict(engine.staged.versions),
        pack=again.pack(),
    )


def _difference(before: list[str], after: list[str]) -> ReplayDifference:
    gone, new = set(before) - set(after), set(after) - set(before)
    both_before = [name for name in before if name not in gone]
    both_after = [name for name in after if name not in new]
    pairs = zip(both_before, both_after, strict=True)
    return ReplayDifference(
        gone=[name for name in before if name in gone],
        new=[name for name in after if name in new],
        moved=[name for name, other in pairs if name != other],
    )


# ── packs of the last minute ─────────────────────────────────────────────────────────────────


def _by_key(engine: "Engine", caller: Caller, request: RecallRequest) -> Kept | None:
    if request.idempotency_key is None:
        return None
    return engine.packs.replayed(caller, request.idempotency_key, asked(request))


# ── streams ──────────────────────────────────────────────────────────────────────────────────


def _frames(kept: Kept) -> Iterator[stream.Frame]:
    """Everything of a pack but its plan."""
    tell = stream.narrative if kept.is_narrative else stream.granular
    return tell(kept.pack(), kept.total_ms)


async def _sent(kept: Kept, after: int) -> AsyncGenerator[bytes, None]:
    """The frames of a pack that is known, from the one after a number on."""
    if after == 0:
        yield stream.frame(None, "plan", kept.plan)
    for number, (event, data) in enumerate(_frames(kept), start=1):
        if number > after:
            yield stream.frame(f"{kept.pack_id}:{number}", event, data)


async def _streamed(run: Run) -> AsyncGenerator[bytes, None]:
    """The plan at once, and the rest when it is found: that is work, and not for the loop."""
    yield stream.frame(None, "plan", run.plan.said())
    kept = await asyncio.to_thread(run.finish)
    for number, (event, data) in enumerate(_frames(kept), start=1):
        yield stream.frame(f"{kept.pack_id}:{number}", event, data)
