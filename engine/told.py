"""Which events were read lately?  Experiences kept decoded for readers, until their words must go.

And the open episodes that they make, which are put together for whoever reads one.

An entry never changes but by losing its body, so a decoded event can be shown again. What does
change around it, its back-pointers and whether it was cancelled, is not kept: `event_of` adds it.
An event is kept only if nothing was erased since before it was read: when an erasure has written
that a body is gone, none of its words are here (I8).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.state.log import KvLog
from engine.state.rows import Row, UnitState
from projectors.episodes import Member, compose
from schemas import limits
from schemas.entry import Entry
from schemas.envelope import Actor, Envelope
from schemas.layers import Episode, Event, EventContext

_OVERHEAD_BYTES: Final = 2048


class _Kept(NamedTuple):
    event: Event
    size: int


class _Composed(NamedTuple):
    opened: Episode
    members: list[Member]
    episode: Episode
    state: UnitState | None


class Told:
    """The events that were read last, by their offset; those asked for the longest ago go first."""

    def __init__(
        self,
        log: KvLog,
        entry_of: Callable[[Row], Entry],
        bytes_max: int = limits.TOLD_BYTES_MAX,
    ) -> None:
        self._log = log
        self._entry_of = entry_of
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._bytes = 0
        self._episodes: dict[str, _Composed] = {}
        self._erasures = 0
        log.on_erased.append(self.clear)

    def read(self, offsets: Sequence[int]) -> list[Event | None]:
        """The experiences at these offsets, as they were told; None where none is left."""
        with self._lock:
            erasures, known = self._erasures, [self._known(offset) for offset in offsets]
        missing = [offsets[at] for at, event in enumerate(known) if event is None]
        if not missing:
            return known
        found = dict(zip(offsets, known, strict=True))
        rows = self._log.read_many(missing)
        for offset, row in zip(missing, rows, strict=True):
            found[offset] = told_by(self._entry_of(row))
        with self._lock:
            if erasures == self._erasures:
                for offset, row in zip(missing, rows, strict=True):
                    self._keep(offset, found[offset], row.header.body_bytes + _OVERHEAD_BYTES)
        return [found[offset] for offset in offsets]

    def clear(self) -> None:
        """Something was erased: nothing is kept, nor is what is being read just now."""
        with self._lock:
            self._erasures += 1
            self._kept.clear()
            self._episodes.clear()
            self._bytes = 0

    def composed(self, opened: Episode, state: UnitState) -> Episode | None:
        """An open episode as it was put together for a state of the views; None if it was not."""
        with self._lock:
            kept = self._episodes.get(opened.id)
        is_same = kept is not None and kept.state is state and kept.opened is opened
        return kept.episode if is_same and kept is not None else None

    def episode(
        self, opened: Episode, members: list[Member], state: UnitState | None = None
    ) -> Episode:
        """An open episode as its members make it; as long as they are the same, the same one.

        `state` is that of the views in which these are all of its members.
        """
        with self._lock:
            erasures, kept = self._erasures, self._episodes.get(opened.id)
        is_same = kept is not None and kept.opened == opened and kept.members == members
        episode = kept.episode if kept is not None and is_same else compose(opened, members)
        with self._lock:
            if erasures == self._erasures:
                if len(self._episodes) >= limits.OPEN_EPISODES_KEPT_MAX:
                    self._episodes.clear()
                self._episodes[opened.id] = _Composed(opened, members, episode, state)
        return episode

    def size_bytes(self) -> int:
        """About how much is kept."""
        return self._bytes

    def _known(self, offset: int) -> Event | None:
        kept = self._kept.get(offset)
        if kept is None:
            return None
        self._kept.move_to_end(offset)
        return kept.event

    def _keep(self, offset: int, event: Event | None, size: int) -> None:
        if event is None or offset in self._kept:
            return
        self._kept[offset] = _Kept(event, size)
        self._bytes += size
        while self._bytes > self._bytes_max:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.size


def told_by(entry: Entry) -> Event | None:
    """The record of an experience (001 §7.1) as it was submitted, and nothing that came later."""
    envelope = entry.envelope
    if envelope is None:
        return None
    context = envelope.context
    actor = actor_of(entry, envelope)
    return Event(
        id=entry.event_id,
        scope=entry.scope,
        actor=actor.id,
        modality=envelope.modality,
        content=envelope.content,
        context=EventContext(
            observed_at=context.observed_at,
            recorded_at=entry.recorded_at,
            source_recorded_at=context.source_recorded_at,
            location=context.location,
            preceded_by=context.preceded_by,
            intent=context.intent,
            labels=context.labels,
            timezone=context.timezone,
            refers_to=context.refers_to,
        ),
        derives=[],
        wal_offset=entry.offset,
        tenant_id=entry.tenant,
        caller=entry.caller,
        observed_actor=actor,
        subject=subject_of(entry, envelope),
        directives=envelope.directives,
        idempotency_key=envelope.idempotency_key,
        batch_id=getattr(entry.body, "batch_id", None),
        language=envelope.language,
        scripts=envelope.scripts,
        source=envelope.source,
    )


def actor_of(entry: Entry, envelope: Envelope) -> Actor:
    """Who did what is told: the caller, unless somebody else is named."""
    return envelope.observed_actor or Actor(id=entry.caller, type=entry.caller.partition(":")[0])


def subject_of(entry: Entry, envelope: Envelope) -> Actor:
    """Whom it is about: who did it, unless somebody else is named."""
    return envelope.subject or actor_of(entry, envelope)
