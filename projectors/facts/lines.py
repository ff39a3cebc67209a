"""In which order in time were things so?  A line: segments by the moment each begins.

A line is one row until it is long, then a tree of rows, so that the thousandth value of a busy
subject costs what the tenth did. No two segments of a line begin together.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

from projectors.base import Change, Drop, Put, View
from projectors.facts.rows import Segment, Twig
from schemas import limits

_ROOT: Final = 0
replace: Final = msgspec.structs.replace


class Line:
    """One line as it was, with what an entry changes of it."""

    def __init__(self, view: View, key: bytes) -> None:
        self._view = view
        self._twigs: dict[int, Twig | None] = {}
        self._touched: dict[int, None] = {}
        self.key = key

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    @property
    def is_blank(self) -> bool:
        """Whether the line has neither segments nor marks."""
        root = self._twig(_ROOT)
        return not root.starts and not root.marks

    def has(self, mark: int) -> bool:
        """Whether the line carries a mark."""
        return bool(self._twig(_ROOT).marks & mark)

    def at_or_before(self, moment_us: int) -> Segment | None:
        """The last segment that begins no later than this."""
        return self._last(_ROOT, moment_us)

    def after(self, moment_us: int) -> Segment | None:
        """The first segment that begins later than this."""
        return self._first(_ROOT, moment_us)

    def _last(self, no: int, moment_us: int) -> Segment | None:
        twig = self._twig(no)
        at = bisect_right(twig.starts, moment_us)
        if twig.level == 0:
            return twig.segments[at - 1] if at else None
        while at:
            at -= 1
            found = self._last(twig.rows[at], moment_us)
            if found is not None:
                return found
        return None

    def _first(self, no: int, moment_us: int) -> Segment | None:
        twig = self._twig(no)
        at = bisect_right(twig.starts, moment_us)
        if twig.level == 0:
            return twig.segments[at] if at < len(twig.segments) else None
        for row in twig.rows[max(at - 1, 0) :]:
            found = self._first(row, moment_us)
            if found is not None:
                return found
        return None

    # ── changing ─────────────────────────────────────────────────────────────────────────────

    def mark(self, mark: int) -> None:
        """Put a mark on the line."""
        root = self._twig(_ROOT)
        if not root.marks & mark:
            self._keep(_ROOT, replace(root, marks=root.marks | mark))

    def put(self, segment: Segment) -> None:
        """Lay a segment down; one that began at the same moment is taken up."""
        self._put(_ROOT, segment)

    def take(self, start_us: int) -> None:
        """Take up the segment that begins here, if there is one."""
        self._take(_ROOT, start_us)

    def _put(self, no: int, segment: Segment) -> tuple[int, int] | None:
        """Lay it down below this row; (start, number) of a new row if it had to be split."""
        twig = self._twig(no)
        start_us = segment.start_us
        if twig.level == 0:
            at = bisect_left(twig.starts, start_us)
            is_there = at < len(twig.starts) and twig.starts[at] == start_us
            if is_there and twig.segments[at] == segment:
                return None  # told again: it lies there as it did
            starts, segments = list(twig.starts), list(twig.segments)
            if is_there:
                segments[at] = segment
            else:
                starts.insert(at, start_us)
                segments.insert(at, segment)
            twig = replace(twig, starts=starts, segments=segments)
        else:
            at = max(bisect_right(twig.starts, start_us) - 1, 0)
            split = self._put(twig.rows[at], segment)
            twig = self._twig(no)
            if split is None and twig.starts[at] <= start_us:
                return None
            starts, rows = list(twig.starts), list(twig.rows)
            starts[at] = min(starts[at], start_us)
            if split is not None:
                starts.insert(at + 1, split[0])
                rows.insert(at + 1, split[1])
            twig = replace(twig, starts=starts, rows=rows)
        self._keep(no, twig)
        return self._split(no) if len(twig.starts) > limits.FACT_LINE_SEGMENTS else None

    def _split(self, no: int) -> tuple[int, int] | None:
        twig = self._twig(no)
        half = len(twig.starts) // 2
        right = Twig(twig.level, 0, 0, twig.starts[half:], twig.segments[half:], twig.rows[half:])
        left = replace(
            twig, starts=twig.starts[:half], segments=twig.segments[:half], rows=twig.rows[:half]
        )
        right_no = self._next_no()
        self._keep(right_no, right)
        if no != _ROOT:
            self._keep(no, left)
            return right.starts[0], right_no
        left_no = self._next_no()
        self._keep(left_no, replace(left, marks=0, last_no=0))
        starts = [left.starts[0], right.starts[0]]
        root = self._twig(_ROOT)
        grown = Twig(twig.level + 1, root.marks, root.last_no, starts, [], [left_no, right_no])
        self._keep(_ROOT, grown)
        return None

    def _next_no(self) -> int:
        root = self._twig(_ROOT)
        self._keep(_ROOT, replace(root, last_no=root.last_no + 1))
        return root.last_no + 1

    def _take(self, no: int, start_us: int) -> None:
        twig = self._twig(no)
        if twig.level == 0:
            at = bisect_left(twig.starts, start_us)
            if at == len(twig.starts) or twig.starts[at] != start_us:
                return
            segments = [*twig.segments[:at], *twig.segments[at + 1 :]]
        else:
            at = bisect_right(twig.starts, start_us) - 1
            if at < 0:
                return
            self._take(twig.rows[at], start_us)
            if self._twig(twig.rows[at]).starts:
                return
            self._twigs[twig.rows[at]] = None
            self._touched[twig.rows[at]] = None
            segments = []
        starts = [*twig.starts[:at], *twig.starts[at + 1 :]]
        rows = [*twig.rows[:at], *twig.rows[at + 1 :]]
        level = twig.level if starts else 0
        self._keep(no, replace(twig, level=level, starts=starts, segments=segments, rows=rows))

    # ── rows ─────────────────────────────────────────────────────────────────────────────────

    def _twig(self, no: int) -> Twig:
        if no not in self._twigs:
            self._twigs[no] = self._view.get("facts_lines", self._row_key(no))
        return self._twigs[no] or Twig()

    def _keep(self, no: int, twig: Twig) -> None:
        self._twigs[no] = twig
        self._touched[no] = None

    def _row_key(self, no: int) -> bytes:
        return self.key + (no.to_bytes(4, "big") if no else b"")

    def changes(self) -> Iterator[Change]:
        """The rows that are not as they were."""
        for no in self._touched:
            twig = self._twigs[no]
            if twig is None:
                if self._view.get("facts_lines", self._row_key(no)) is not None:
                    yield Drop(table="facts_lines", key=self._row_key(no))
            else:
                yield Put(table="facts_lines", key=self._row_key(no), value=twig)
