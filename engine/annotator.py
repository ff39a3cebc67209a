"""Who asks the model about each event, and what if it does not answer?

A task on the event loop follows the log a round at a time. What the model says is appended as an
annotation under a key of the event's own, so it is asked for once whatever crashes (docs/adr/0005).
An event it fails on stays captured and indexed: it is listed, tried again further and further
apart, and given up in the end, visibly.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from engine.asking import frame_of, is_worth_asking
from engine.commit import Committer, Desk
from engine.entries import EntryReader
from engine.models import Model, ModelFailed
from engine.state.kv import KV, StoreError
from engine.state.vault import Vault, offset_key
from engine.work.board import Board, NobodyThere, TaskDead
from engine.work.computes import ANNOTATE, Refused, Said, ask_about_all
from engine.work.wire import model_queue
from schemas import limits
from schemas.caller import SYSTEM
from schemas.entry import Annotation, Entry
from schemas.errors import Unavailable
from schemas.health import AnnotatorHealth
from schemas.times import from_us

NAME: Final = "annotator"
_CHECKPOINT: Final = b"annotator.checkpoint"
_FAILED: Final = b"annotator.failed."
_ROWS_AT_ONCE: Final = 64
_SHOWN: Final = 20
_IDLE_S: Final = 1.0
_US: Final = 1_000_000
_pack = msgspec.msgpack.Encoder().encode

Outcome = ModelFailed | Unavailable | bool
Outlook = Literal["annotation_pending", "annotation_failed", "annotation_given_up"]


class Failed(msgspec.Struct, frozen=True, array_like=True):
    """An event that the model could not be asked about: how often, why, and when again."""

    tenant_no: int
    event_id: str
    tries: int
    own_tries: int
    error: str
    next_us: int
    given_up: bool = False


_unpack = msgspec.msgpack.Decoder(Failed).decode


class Annotator:
    """Follows the log for events that a model may read. Belongs to one event loop."""

    def __init__(
        self, model: Model, kv: KV, committer: Committer, vault: Vault, board: Board | None = None
    ) -> None:
        self.model = model
        self._board = board or Board(committer.clock)
        self._queue = model_queue(model.name)
        self._kv = kv
        self._committer = committer
        self._log = committer.log
        self._vault = vault
        self._clock = committer.clock
        self._read = EntryReader(committer.names).read
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: str | None = None
        self._pause_until_us = 0
        self._away_rounds = 0
        self.failure: str | None = None
        self.checkpoint = 0

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """Find where it was; turned on for the first time, it begins with what comes next."""
        row = self._kv.get("meta", _CHECKPOINT)
        if row is None:
            row = offset_key(self._log.head())
            batch = self._kv.batch()
            batch.put("meta", _CHECKPOINT, row)
            self._kv.write(batch)
        self.checkpoint = int.from_bytes(row, "big")

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Follow the log until `stop`."""
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        """Let go of what is being asked: it is asked again after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.model.close()

    async def _run(self) -> None:
        while True:
            try:
                moved = await self.step()
            except StoreError as error:
                self.failure = f"annotation stopped: {error}"
                return
            except Exception as error:  # the guard of the task: health shows it
                self.failure = f"annotation stopped: {error!r}"
                raise
            if not moved:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _IDLE_S)

    # ── one round ────────────────────────────────────────────────────────────────────────────

    async def step(self) -> bool:
        """Ask about the next few events, and about those whose time has come again."""
        if self._clock.now_us() < self._pause_until_us or self._committer.refusal is not None:
            return False
        checkpoint, entries, earlier = await asyncio.to_thread(self._next)
        if checkpoint == self.checkpoint and not entries:
            return False
        outcomes = await self._annotate(entries)
        if any(isinstance(outcome, Unavailable) for outcome in outcomes):
            return False  # the log takes nothing now: the round is done again
        failures = {
            entry.offset: self._failed(entry, outcome, earlier.get(entry.offset))
            for entry, outcome in zip(entries, outcomes, strict=True)
            if isinstance(outcome, ModelFailed)
        }
        batch = self._kv.batch()
        for offset in earlier.keys() - failures.keys():
            batch.delete("meta", _FAILED + offset_key(offset))
        for offset, failed in failures.items():
            batch.put("meta", _FAILED + offset_key(offset), _pack(failed))
        batch.put("meta", _CHECKPOINT, offset_key(checkpoint))
        self._kv.write(batch)
        self.checkpoint = checkpoint
        self._judge(outcomes)
        return True

    def _next(self) -> tuple[int, list[Entry], dict[int, Failed]]:
        """Where the round will have come to, whom it asks about, and those it failed on before."""
        now_us, at_once = self._clock.now_us(), self._at_once()
        due = [
            (offset, row)
            for offset, row in self._rows()
            if row.next_us <= now_us and not row.given_up
        ][:at_once]
        earlier = dict(due)
        rows = self._log.read_many([offset for offset, _ in due])
        entries = [self._read(row) for row in rows]
        checkpoint, head = self.checkpoint, self._log.head()
        while checkpoint < head and len(entries) < at_once:
            found = self._log.read(checkpoint + 1, min(_ROWS_AT_ONCE, head - checkpoint))
            for row in found:
                checkpoint = row.header.offset
                entry = self._read(row)
                if is_worth_asking(entry):
                    entries.append(entry)
                if len(entries) >= at_once:
                    break
        return checkpoint, entries, earlier

    def _at_once(self) -> int:
        """Events in a round: a few here; by workers some for each of their calls, since a round
        ends with its slowest.
        """
        calls = self._board.calls_of(self._queue) * limits.WORK_MODEL_EVENTS
        return min(calls, limits.WORK_MODEL_EVENTS_MAX) if calls else limits.ANNOTATE_AT_ONCE

    async def _annotate(self, entries: list[Entry]) -> list[Outcome]:
        """Ask about events and write down what is said; False where there was nothing to ask."""
        proposals = {entry.offset: _Proposal(self, entry) for entry in entries}
        asked = [
            entry
            for entry in entries
            if is_worth_asking(entry) and not self.is_settled(entry, proposals[entry.offset].idem)
        ]
        said = dict(zip((entry.offset for entry in asked), await self._ask(asked), strict=True))
        written = (self._write(proposals[offset], one) for offset, one in said.items())
        outcomes = dict(zip(said, await asyncio.gather(*written), strict=True))
        return [outcomes.get(entry.offset, False) for entry in entries]

    async def _ask(self, entries: list[Entry]) -> list[Said]:
        """What the model says, asked by workers where there are some, and else from here."""
        workers = max(1, self._board.workers_of(self._queue))
        size = max(1, -(-len(entries) // workers))
        parts = [entries[at : at + size] for at in range(0, len(entries), size)]
        answers = await asyncio.gather(*map(self._ask_part, parts))
        return [said for part in answers for said in part]

    async def _ask_part(self, entries: list[Entry]) -> list[Said]:
        try:
            said = await self._board.hand_out(
                ANNOTATE, entries, self._queue, limit_s=limits.TASK_MODEL_S_MAX
            )
            if len(said) != len(entries):
                raise Refused(f"{len(said)} answers about {len(entries)} events")
            return said
        except NobodyThere:
            return await ask_about_all(self.model, entries, self._clock)
        except (TaskDead, Refused) as error:
            return [Said(failure="unusable", reason=str(error)[:300])] * len(entries)

    async def _write(self, proposal: "_Proposal", said: Said) -> Outcome:
        if said.failure is not None:
            return ModelFailed(said.failure, said.reason, said.retry_after_s)
        if said.facts:
            proposal.said(self.model.name, said.version, said.facts)
            try:
                await self._committer.submit(proposal)
            except Unavailable as error:
                return error
        return True

    def mac(self, entry: Entry) -> bytes:
        """The key under which the annotation of an event is written once."""
        return self._vault.tenant(entry.tenant_no).mac(NAME.encode(), entry.id)

    def is_settled(self, entry: Entry, idem: bytes) -> bool:
        """Whether it is written down already, or nobody wants it any more."""
        place = entry.offset.to_bytes(8, "big")
        is_cancelled = self._committer.inline.get(entry.tenant_no, "cancelled", place) is not None
        is_erased = self._kv.get("erased", offset_key(entry.offset)) is not None
        is_known = self._log.directory.replayed(entry.tenant_no, idem) is not None
        return is_cancelled or is_erased or is_known

    # ── failures ─────────────────────────────────────────────────────────────────────────────

    def _failed(self, entry: Entry, failure: ModelFailed, before: Failed | None) -> Failed:
        tries = 1 + (before.tries if before is not None else 0)
        own = (before.own_tries if before is not None else 0) + (failure.kind != "away")
        wait_s = min(limits.ANNOTATE_RETRY_S * 2 ** (tries - 1), limits.ANNOTATE_RETRY_S_MAX)
        return Failed(
            tenant_no=entry.tenant_no,
            event_id=entry.event_id,
            tries=tries,
            own_tries=own,
            error=failure.reason,
            next_us=self._clock.now_us() + int(wait_s * _US),
            given_up=own >= limits.ANNOTATE_TRIES or tries >= limits.ANNOTATE_TRIES_AWAY,
        )

    def _judge(self, outcomes: Sequence[Outcome]) -> None:
        """When the endpoint is away for all, wait for it, instead of failing event by event."""
        failures = [outcome for outcome in outcomes if isinstance(outcome, ModelFailed)]
        away = [failure for failure in failures if failure.kind == "away"]
        has_answered = len(failures) > len(away) or any(outcome is True for outcome in outcomes)
        if has_answered:
            self._error = failures[0].reason if failures else None
            self._away_rounds = 0
        elif away:
            self._error = away[0].reason
            self._away_rounds += 1
            wanted_s = max(failure.retry_after_s or 0.0 for failure in away)
            pause_s = max(wanted_s, limits.MODEL_RETRY_S * 2**self._away_rounds)
            pause_s = min(pause_s, limits.MODEL_PAUSE_S_MAX)
            self._pause_until_us = self._clock.now_us() + int(pause_s * _US)

    def _rows(self) -> list[tuple[int, Failed]]:
        rows = self._kv.scan("meta", _FAILED, _FAILED + b"\xff" * 9)
        return [(int.from_bytes(key[len(_FAILED) :], "big"), _unpack(row)) for key, row in rows]

    def retry(self) -> list[str]:
        """Take every event it failed on as new; which they are."""
        rows = self._rows()
        batch = self._kv.batch()
        for offset, row in rows:
            fresh = msgspec.structs.replace(row, tries=0, own_tries=0, next_us=0, given_up=False)
            batch.put("meta", _FAILED + offset_key(offset), _pack(fresh))
        self._kv.write(batch)
        self._pause_until_us = self._away_rounds = 0
        self._wake.set()
        return [row.event_id for _, row in rows]

    # ── for those who look ───────────────────────────────────────────────────────────────────

    @property
    def is_troubled(self) -> bool:
        """Whether the model could not be asked when it last was, or never will be again."""
        return self.failure is not None or self._error is not None

    def health(self) -> AnnotatorHealth:
        """What waits, what failed, and when it goes on."""
        failed = [row for _, row in self._rows()]
        is_paused = self._pause_until_us > self._clock.now_us()
        times = [row.next_us for row in failed if not row.given_up]
        next_us = self._pause_until_us if is_paused else min(times, default=None)
        state: Literal["running", "paused", "stopped"] = "paused" if is_paused else "running"
        return AnnotatorHealth(
            model=self.model.name,
            state=state if self.failure is None else "stopped",
            waiting_entries=max(0, self._log.head() - self.checkpoint),
            failed=len(times),
            given_up=len(failed) - len(times),
            failed_events=[row.event_id for row in failed[:_SHOWN]],
            error=self.failure or self._error,
            next_retry_at=None if next_us is None else from_us(next_us),
        )

    def outlook(self, offset: int) -> tuple[Outlook, Failed | None] | None:
        """What is still to be heard of an event from the model; None when nothing is."""
        row = self._kv.get("meta", _FAILED + offset_key(offset))
        if row is not None:
            failed = _unpack(row)
            return ("annotation_given_up" if failed.given_up else "annotation_failed"), failed
        return ("annotation_pending", None) if offset > self.checkpoint else None


class _Proposal:
    """An annotation, written once whoever proposes it."""

    entry_count = 1
    byte_count = limits.KIB

    def __init__(self, annotator: Annotator, entry: Entry) -> None:
        self._annotator = annotator
        self._entry = entry
        self._body: Annotation | None = None
        self.idem = annotator.mac(entry)

    def said(self, model: str, version: str, facts: list[dict[str, object]]) -> None:
        """What is to be written down."""
        envelope = self._entry.envelope
        assert envelope is not None, "only experiences have words"
        self._body = Annotation(
            about=self._entry.event_id,
            model=model,
            version=version,
            output={"facts": facts},
            scope=self._entry.scope,
            frame=frame_of(self._entry),
        )
        self.byte_count = limits.KIB * (1 + len(facts))

    def decide(self, desk: Desk) -> None:
        """Write it, unless it is there, or its event was erased while the model thought of it."""
        assert self._body is not None, "nothing was said"
        is_new = desk.replayed(self._entry.tenant_no, self.idem) is None
        if is_new and not self._annotator.is_settled(self._entry, self.idem):
            caller = msgspec.structs.replace(SYSTEM, tenant=self._entry.tenant)
            desk.add(caller, self._body, idem=self.idem)
