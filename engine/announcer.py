"""What may be said of an entry, and when?

A stage is announced when it has happened. Projection tells of `extracted` in its own batch; what
comes after it waits until the indexes hold the entry, because `indexed` comes first (001 §18.2.3).
What waits is kept as one row a batch of the projection, so that a crash forgets none of it.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.courtesy import Courtesy, Way
from engine.lifecycle import Lifecycle, pack_note
from engine.rows import Due, Note, Waiting
from engine.state.kv import KV, Batch
from projectors.base import Put
from projectors.fold import Outcome, StageReport
from schemas.entry import Directive, Experience, Synthesize
from schemas.layers import Episode
from schemas.lifecycle import STAGE_ORDER

if TYPE_CHECKING:
    from engine.rows import Step

FAMILIES = ("due",)
_EXTRACTED: Final = ("facts", "entities", "beliefs", "episodes")
_AFTER_INDEX: Final = STAGE_ORDER[2:]
_LAYERS: Final = {
    "episodes": "episodes",
    "facts": "facts",
    "beliefs": "beliefs",
    "concepts": "understanding",
}
_pack = msgspec.msgpack.Encoder().encode


_unpack = msgspec.msgpack.Decoder(Waiting).decode


class Announcer:
    """Says what projection did: at once, or when the indexes have followed."""

    def __init__(
        self, kv: KV, lifecycle: Lifecycle, sync: Callable[[float], None], way: Way
    ) -> None:
        self._kv = kv
        self.lifecycle = lifecycle
        self._sync = sync
        self.patience_s = 0.0
        """How long an announcement may wait for somebody else's fsync."""
        self.way = way
        self._courtesy = Courtesy(way)
        self.waits_for_index = False
        self._lock = threading.Lock()
        self._due: deque[tuple[int, Waiting]] = deque()
        self._indexed = 0

    def load(self, announced: int) -> None:
        """At start: what still waits, and the marks that those who wait for a stage look at."""
        rows = self._kv.scan("due")
        self._due.extend((int.from_bytes(key, "big"), _unpack(value)) for key, value in rows)
        settled = self._due[0][1].first - 1 if self._due else announced
        self.lifecycle.reached(STAGE_ORDER[1], announced)
        for stage in _AFTER_INDEX:
            self.lifecycle.reached(stage, settled)

    def sync(self) -> None:
        """Return when what was announced is durable."""
        self._sync(self.patience_s)

    # ── with the projection's batch ──────────────────────────────────────────────────────────

    def ready(self, steps: Sequence["Step"]) -> list["Ready"]:
        """What may be said of these entries in the projection's batch; work for before the order.

        When the rest has to wait, that is `extracted`, of those that have it.
        """
        dues = [step.due for step in steps if step.due is not None]
        if self.waits_for_index:
            return [self._prepared(due, due.notes[:1]) for due in dues if _begins(due)]
        return [self._prepared(due, due.notes) for due in dues]

    def told(self, batch: Batch, steps: Sequence["Step"], ready: Sequence["Ready"]) -> Waiting:
        """Announce in this batch what is ready; what must wait is kept in it and returned.

        The caller holds the lifecycle's order until the batch is written.
        """
        said = self._say(batch, ready, is_last=not self.waits_for_index)
        due: list[Due] = []
        if self.waits_for_index:
            due = [_after(step.due, said) for step in steps if step.due is not None]
        waiting = Waiting(steps[0].offset, due)
        if self.waits_for_index:
            batch.put("due", _key(steps[-1].offset), _pack(waiting))
        return waiting

    def written(self, waiting: Waiting, checkpoint: int) -> None:
        """The batch that ends at this offset is durable."""
        if not self.waits_for_index:
            return
        with self._lock:
            self._due.append((checkpoint, waiting))
        self.settle()

    def marks(self, announced: int) -> dict[str, int]:
        """What the projection's batch makes true for those who wait."""
        stages = STAGE_ORDER[1:2] if self.waits_for_index else STAGE_ORDER[1:]
        return dict.fromkeys(stages, announced)

    @property
    def followed(self) -> int:
        """How far the indexes are."""
        return self._indexed

    # ── when the indexes have followed ───────────────────────────────────────────────────────

    def indexed(self, offset: int) -> None:
        """Every entry up to here can be found: say what waited for that."""
        with self._lock:
            self._indexed = max(self._indexed, offset)
        self.settle()

    def settle(self) -> None:
        """Announce what waited and need not wait any more.

        A batch of the projection at a time: captures wait for the order, and one commit of the
        indexes may bring thousands of entries.
        """
        with self._lock:
            token = reached = 0
            while self._due and self._due[0][0] <= self._indexed:
                reached, waiting = self._due.popleft()
                ready = []
                for due in waiting.due:
                    self._courtesy.give_way()
                    ready.append(self._prepared(due, due.notes))
                self._courtesy.give_way()
                batch = self._kv.batch()
                batch.delete("due", _key(reached))
                with self.lifecycle.order:
                    self._say(batch, ready, is_last=True)
                    token = self.lifecycle.seal(batch)
                    self._kv.write(batch)
            if not reached:
                return
            self.sync()
        self.lifecycle.release(token, dict.fromkeys(_AFTER_INDEX, reached))

    # ── notes ────────────────────────────────────────────────────────────────────────────────

    def _prepared(self, due: Due, notes: Sequence[tuple[str, dict[str, Any]]]) -> "Ready":
        packed = [(stage, _packed(due, stage, payload)) for stage, payload in notes]
        first = None if due.event is None else self.lifecycle.first_of(due.tenant_no, due.offset)
        return Ready(due, first, packed)

    def _say(
        self, batch: Batch, ready: Sequence["Ready"], *, is_last: bool
    ) -> dict[int, bytes | None]:
        """Announce it; the ids of `extracted`, by the entries' offsets."""
        told = [(one.due.tenant_no, packed) for one in ready for _, packed in one.notes]
        ids = iter(self.lifecycle.told(batch, told))
        rows: list[tuple[int, int, list[bytes | None]]] = []
        extracted: dict[int, bytes | None] = {}
        for one in ready:
            due = one.due
            raws: list[bytes | None] = [one.first, due.extracted, None, None, None]
            for stage, _ in one.notes:
                raw, place = next(ids), STAGE_ORDER.index(stage)
                # The first of a stage is the entry's own; further seals are told without an event.
                raws[place] = raws[place] or raw
            extracted[due.offset] = raws[1]
            if due.event is not None:
                rows.append((due.tenant_no, due.offset, raws))
        self.lifecycle.staged(batch, rows, is_last=is_last)
        return extracted


class Ready:
    """What may be said of an entry: its notes packed, and the id of what it began with."""

    __slots__ = ("due", "first", "notes")

    def __init__(self, due: Due, first: bytes | None, notes: list[tuple[str, bytes]]) -> None:
        self.due = due
        self.first = first
        self.notes = notes


def _begins(due: Due) -> bool:
    """Whether the first that is to be said of an entry is that it was extracted."""
    return bool(due.notes) and due.notes[0][0] == STAGE_ORDER[1]


def _after(due: Due, said: dict[int, bytes | None]) -> Due:
    """What is left to be said once `extracted` was, by the ids of those announcements."""
    if due.offset not in said:
        return due
    return msgspec.structs.replace(due, extracted=said[due.offset], notes=due.notes[1:])


def _packed(due: Due, stage: str, payload: dict[str, Any]) -> bytes:
    scope = payload.get("scope", due.scope)
    sequence = STAGE_ORDER.index(stage) + 1
    event = None if "scope" in payload else due.event
    payload = {name: value for name, value in payload.items() if name != "scope"}
    note = Note(stage, scope, event, sequence if event else None, due.batch_id, payload)
    return pack_note(note)


def _key(checkpoint: int) -> bytes:
    return checkpoint.to_bytes(8, "big")


# ── what a stage did, in the words of 001 §13 ────────────────────────────────────────────────


def said(outcome: Outcome, *, indexed: bool) -> Due | None:
    """The stages that ran, in order, and nothing that did not."""
    entry = outcome.entry
    experience = entry.body if isinstance(entry.body, Experience) else None
    notes: list[tuple[str, dict[str, Any]]] = []
    for report in outcome.reports:
        if report.stage == "compressed":
            notes += _compressed(report, owned=experience is not None)
        elif experience is not None:
            payload = _payload(report, outcome)
            if report.stage == "indexed":
                payload["layers_indexed"] = _layers(outcome) if indexed else []
            notes.append((report.stage, payload))
    if not notes:
        return None
    if isinstance(entry.body, Directive) and isinstance(entry.body.command, Synthesize):
        job = {"job_id": entry.body.command.job_id}
        notes = [(stage, payload | job) for stage, payload in notes]
    return Due(
        tenant_no=entry.tenant_no,
        offset=entry.offset,
        scope=entry.scope,
        event=entry.id if experience is not None else None,
        batch_id=experience.batch_id if experience is not None else None,
        extracted=None,
        notes=notes,
    )


def _compressed(report: StageReport, *, owned: bool) -> list[tuple[str, dict[str, Any]]]:
    """One note an episode sealed; concepts with the first. Nothing happened: nothing is said."""
    puts = [change for change in report.changes if isinstance(change, Put)]
    concepts = [c.record_id for c in puts if c.table == "concepts" and c.record_id is not None]
    # Sealed here, and not only given a link: the version before was open.
    episodes = [c.value for c in puts if isinstance(c.value, Episode)]
    opened = {episode.id for episode in episodes if not episode.sealed}
    sealed = [episode for episode in episodes if episode.sealed and episode.id in opened]
    if not sealed:
        nothing_sealed = {"episode_id": None, "understanding_ids": concepts}
        return [("compressed", nothing_sealed)] if concepts else []
    notes: list[tuple[str, dict[str, Any]]] = []
    for at, episode in enumerate(sealed):
        payload: dict[str, Any] = {"episode_id": episode.id, "understanding_ids": []}
        if at == 0:
            payload["understanding_ids"] = concepts
        if at > 0 or not owned:
            payload["scope"] = episode.scope
        notes.append(("compressed", payload))
    return notes


def _payload(report: StageReport, outcome: Outcome) -> dict[str, Any]:
    if report.stage == "indexed":
        payload: dict[str, Any] = {}
    elif report.stage == "extracted":
        payload = {"derived": {table: _derived(report, outcome, table) for table in _EXTRACTED}}
    else:
        payload = {
            "beliefs_updated": report.count("beliefs"),
            "conflicts_resolved": sum(
                row.resolution != "unresolved" for row in _rows(outcome, "conflicts")
            ),
            "superseded_facts": sum(len(row.superseded) for row in _rows(outcome, "facts_moved")),
        }
    if report.parked:
        payload |= {"_partial": True, "_partial_reason": "projector_parked"}
    return payload


def _derived(report: StageReport, outcome: Outcome, table: str) -> int:
    """The records that this event made or supports: not those that gave way to them."""
    puts = report.puts(table)
    if table != "facts":
        return len(puts)
    return sum(outcome.entry.event_id in put.supports for put in puts)


def _rows(outcome: Outcome, table: str) -> list[Any]:
    """The rows of a table that the entry left."""
    return [put.value for report in outcome.reports for put in report.puts(table)]


def _layers(outcome: Outcome) -> list[str]:
    """The layers in which this entry left something to be found."""
    tables = {c.table for r in outcome.reports for c in r.changes if isinstance(c, Put)}
    return ["events", *(name for table, name in _LAYERS.items() if table in tables)]
