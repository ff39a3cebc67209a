"""What becomes of the facts that one entry touches?

A sheet holds the facts and lines of one entry as they were and as they will be, so that a fact
touched twice gets one new version. A fact made and withdrawn in the same breath is superseded from
the start: known to those who ask for what was, and to nobody else.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from projectors.base import Change, Put, View
from projectors.facts.keys import fact_id, raw_of
from projectors.facts.lines import Line
from projectors.facts.rows import (
    CORRECTED,
    OPPOSED,
    Basis,
    Contrary,
    Heard,
    HeardRow,
    Segment,
    Telling,
)
from projectors.records import create, fact_about_key, moved, put, revise
from projectors.rows import Mark
from schemas import limits
from schemas.layers import Conflict, Fact
from schemas.times import from_us, to_us

replace: Final = msgspec.structs.replace


class Draft:
    """A fact as it was, and as the entry leaves it."""

    __slots__ = ("after", "basis", "before", "is_closed", "raw", "was")

    def __init__(self, raw: bytes, before: Fact | None, after: Fact, basis: Basis) -> None:
        self.raw = raw
        self.before = before
        self.after = after
        self.basis = basis
        self.was: Basis | None = None if before is None else basis
        self.is_closed = False

    def is_known(self, at: datetime) -> bool:
        """Whether it is known now: neither closed nor lapsed."""
        ended = self.after.recorded_to
        return not self.is_closed and (ended is None or at < ended)


class Sheet:
    """The facts and lines of one entry."""

    def __init__(self, view: View, at: datetime) -> None:
        self.view = view
        self.at = at
        self.now_us = to_us(at)
        self.drafts: dict[bytes, Draft] = {}
        self.lines: dict[bytes, Line] = {}
        self.conflicts: dict[bytes, Conflict] = {}
        self.heard: dict[str, float] = {}
        self.roots: dict[bytes, str] = {}

    # ── what there is ────────────────────────────────────────────────────────────────────────

    def line(self, key: bytes) -> Line:
        """A line, as the entry leaves it so far."""
        found = self.lines.get(key)
        if found is None:
            found = self.lines[key] = Line(self.view, key)
        return found

    def draft(self, raw: bytes) -> Draft:
        """A fact, as the entry leaves it so far."""
        found = self.drafts.get(raw)
        if found is None:
            before, basis = self.view.get("facts", raw), self.view.get("facts_basis", raw)
            assert before is not None, f"no fact {raw.hex()}"
            assert basis is not None, f"nothing that {raw.hex()} rests on"
            found = self.drafts[raw] = Draft(raw, before, before, basis)
        return found

    def is_live(self, segment: Segment | None) -> bool:
        """Whether a segment's fact is still known: with its last event a fact may have lapsed."""
        if segment is None:
            return False
        return segment.expires_us is None or self.now_us < segment.expires_us

    # ── what changes ─────────────────────────────────────────────────────────────────────────

    def add(self, fact: Fact, basis: Basis, root: str) -> Draft:
        """A fact known for the first time."""
        raw = raw_of(fact.id)
        self.roots[raw] = root
        draft = self.drafts[raw] = Draft(raw, None, fact, basis)
        return draft

    def lay_first(self, draft: Draft) -> None:
        """Lay a new fact on a line where nothing ends, and nothing ends it."""
        line = self.line(draft.basis.line)
        assert line.is_blank, "a line on which there is something"
        line.put(segment_of(draft))

    def lay(self, draft: Draft) -> None:
        """Lay a fact on its line, as what it rests on says, and see what ends where."""
        line = self.line(draft.basis.line)
        segment = segment_of(draft)
        there = line.at_or_before(segment.start_us)
        if there is not None and there.start_us == segment.start_us and there.fact != segment.fact:
            self.lift(self.draft(there.fact))  # it lapsed, and only held the place
        line.put(segment)
        self.settle(line, segment)
        self._settle_before(line, draft.basis, segment.start_us - 1)

    def lift(self, draft: Draft) -> None:
        """Take a fact from its line; what lay before it goes on as if it had not been."""
        line = self.line(draft.basis.line)
        there = line.at_or_before(draft.basis.start_us)
        if there is not None and there.fact == draft.raw:
            line.take(there.start_us)
            self._settle_before(line, draft.basis, there.start_us)

    def move(self, draft: Draft, start_us: int) -> None:
        """Let a fact begin at another moment."""
        self.lift(draft)
        draft.basis = replace(draft.basis, start_us=start_us)
        self.lay(draft)

    def close(self, draft: Draft, by: str | None) -> None:
        """A fact was never so after all, or nothing supports it any more."""
        self.lift(draft)
        # Until now it was known as it was: whatever else the entry said of it does not count.
        known = draft.before or draft.after
        draft.is_closed = True
        if known.recorded_to is None or self.at < known.recorded_to or draft.before is None:
            by = by or known.superseded_by
            known = replace(known, recorded_to=self.at, superseded_by=by)
        draft.after = known

    # ── what ends where ──────────────────────────────────────────────────────────────────────

    def covering(self, line: Line, moment_us: int) -> Segment | None:
        """The segment of a line that holds at a moment."""
        found = line.at_or_before(moment_us)
        if found is None:
            return None
        ends_us = self.end_of(line, found)
        return found if ends_us is None or moment_us < ends_us else None

    def holding(self, basis: Basis, moment_us: int) -> list[Segment]:
        """What holds at a moment where a fact would lie, and its contrary."""
        found = [self.covering(self.line(basis.line), moment_us)]
        if basis.contrary is not None:
            contrary = self.covering(self.line(basis.contrary.line), moment_us)
            is_it = contrary is not None and contrary.value == basis.contrary.value
            found.append(contrary if is_it else None)
        return [segment for segment in found if segment is not None]

    def end_of(self, line: Line, segment: Segment) -> int | None:
        """When a segment ends."""
        return self._end(line, segment)[0]

    def _end(self, line: Line, segment: Segment) -> tuple[int | None, bytes | None]:
        """A fact holds until it ended by itself, or the next or its contrary began: and which."""
        ends_us, by = segment.own_to_us, None
        contrary = None
        if line.has(OPPOSED):
            where = self.draft(segment.fact).basis.contrary
            contrary = None if where is None else self.next_of(where, segment.start_us)
        for other in (line.after(segment.start_us), contrary):
            if other is not None and (ends_us is None or other.start_us <= ends_us):
                ends_us, by = other.start_us, other.fact
        return ends_us, by

    def next_of(self, where: Contrary, moment_us: int) -> Segment | None:
        """The first segment after a moment with a value, among the nearest; it may have lapsed."""
        line = self.line(where.line)
        found = line.after(moment_us)
        for _ in range(limits.FACT_LINE_SEGMENTS):
            if found is None or found.value == where.value:
                return found
            found = line.after(found.start_us)
        return None

    def last_of(self, where: Contrary, moment_us: int) -> Segment | None:
        """The last live segment up to a moment with a value, among the nearest."""
        line = self.line(where.line)
        found = line.at_or_before(moment_us)
        for _ in range(limits.FACT_LINE_SEGMENTS):
            if found is None or (found.value == where.value and self.is_live(found)):
                return found
            found = line.at_or_before(found.start_us - 1)
        return None

    def settle(self, line: Line, segment: Segment) -> None:
        """Let a fact's record say how long it holds, and what it gave way to."""
        draft = self.draft(segment.fact)
        if not draft.is_known(self.at):
            return
        ends_us, by = self._end(line, segment)
        draft.after = replace(
            draft.after,
            valid_from=from_us(segment.start_us),
            valid_to=None if ends_us is None else from_us(ends_us),
            superseded_by=None if by is None else fact_id(by),
        )

    def _settle_before(self, line: Line, basis: Basis, moment_us: int) -> None:
        before = line.at_or_before(moment_us)
        if before is not None:
            self.settle(line, before)
        if basis.contrary is not None and line.has(OPPOSED):
            contrary = self.last_of(basis.contrary, moment_us)
            if contrary is not None:
                self.settle(self.line(basis.contrary.line), contrary)

    # ── what else is said ────────────────────────────────────────────────────────────────────

    def conflict(self, raw: bytes) -> Conflict:
        """A conflict, as the entry leaves it so far."""
        found = self.conflicts.get(raw)
        if found is None:
            found = self.view.get("conflicts", raw)
        assert found is not None, f"no conflict {raw.hex()}"
        return found

    def hear(self, draft: Draft, confidence: float) -> None:
        """The entry spoke of this fact."""
        known = self.heard.get(draft.after.id, 0.0)
        self.heard[draft.after.id] = max(known, confidence)

    # ── what follows ─────────────────────────────────────────────────────────────────────────

    def changes(self, offset: int) -> Iterator[Change]:
        """The rows that the entry leaves behind."""
        ids: list[str] = []
        superseded: list[str] = []
        for raw, draft in self.drafts.items():
            rows = list(self._record(draft))
            if rows:
                ids.append(draft.after.id)
                yield from rows
            if draft.before is not None and _gave_way(draft.before, draft.after):
                superseded.append(draft.after.id)
            if draft.basis is not draft.was:
                yield Put(table="facts_basis", key=raw, value=draft.basis)
        for line in self.lines.values():
            yield from line.changes()
        for raw, conflict in self.conflicts.items():
            yield Put(table="conflicts", key=raw, value=conflict)
            if conflict.at == self.at:
                stands = self.draft(raw_of(conflict.standing)).basis.line
                yield Put(table="conflicts_in", key=stands[:4] + raw, value=Mark())
        if ids:
            yield moved("facts", offset, ids, superseded)
        if self.heard:
            facts = [Heard(fact, confidence) for fact, confidence in self.heard.items()]
            yield Put(table="facts_heard", key=b"", value=HeardRow(offset, facts))

    def _record(self, draft: Draft) -> Iterator[Change]:
        before, after = draft.before, draft.after
        if before is None:
            scope_no = int.from_bytes(draft.basis.line[:4], "big")
            yield from create("facts", scope_no, after, after.supports)
            key = fact_about_key(scope_no, self.roots[draft.raw], after.predicate, draft.raw)
            yield Put(table="facts_about", key=key, value=Mark())
        elif before != after:
            if draft.is_closed:
                yield put("facts", after, [])
                return
            cited = [event for event in after.supports if event not in before.supports]
            after = replace(after, version=before.version + 1, recorded_from=self.at)
            # The version that gave way says to whom, as the one that follows it does (001 §7.3).
            was_known = before.recorded_to is None or self.at < before.recorded_to
            if was_known and before.superseded_by is None:
                before = replace(before, superseded_by=after.superseded_by)
            yield from revise("facts", before, after, self.at, cited)


def _gave_way(before: Fact, after: Fact) -> bool:
    return after.superseded_by is not None and after.superseded_by != before.superseded_by


# ── what a fact rests on ─────────────────────────────────────────────────────────────────────


def weigh(draft: Draft) -> None:
    """Let a fact's record say what its tellings come to: supports, confidence, how long known."""
    told = draft.basis.tellings
    expiries = [telling.expires_us for telling in told]
    lapses = None if None in expiries else max(e for e in expiries if e is not None)
    draft.after = replace(
        draft.after,
        supports=list(dict.fromkeys(telling.event for telling in told)),
        confidence=_confidence(told),
        recorded_to=None if lapses is None else from_us(lapses),
        trust="high" if any(telling.trust for telling in told) else "low",
    )


def _confidence(told: list[Telling]) -> float:
    """What one speaker repeats is as sure as at its surest; what another says too is surer."""
    own = [telling.confidence for telling in told if telling.is_first_speaker]
    doubt = 1.0 - max(own, default=0.0)
    for telling in told:
        if not telling.is_first_speaker:
            doubt *= 1.0 - telling.confidence
    surest = max(telling.confidence for telling in told)
    return round(max(surest, min(1.0 - doubt, 0.99)), 4)


def segment_of(draft: Draft) -> Segment:
    """Where a fact lies on its line, from what it rests on."""
    told = draft.basis.tellings
    lapses = draft.after.recorded_to
    return Segment(
        start_us=draft.basis.start_us,
        own_to_us=own_end(draft.basis.tellings),
        fact=draft.raw,
        value=draft.basis.value,
        strength=max(telling.confidence for telling in told),
        trust=max(telling.trust for telling in told),
        expires_us=None if lapses is None else to_us(lapses),
    )


def own_end(tellings: list[Telling]) -> int | None:
    """When a fact was over, as it was told last."""
    ends = [telling.to_us for telling in tellings if telling.to_us is not None]
    return ends[-1] if ends else None


def own_start(tellings: list[Telling]) -> int:
    """When a fact began: as corrected last, or as early as it was ever told."""
    fixed = [telling.from_us for telling in tellings if telling.role == CORRECTED]
    return fixed[-1] if fixed else min(telling.from_us for telling in tellings)
