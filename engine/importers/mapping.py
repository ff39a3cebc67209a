"""How does a file become checked experiences?  Parsed once, mapped a part at a time; no store.

Pure, but for reading the bytes, which is the caller's: so the same code runs beside the log and in
a worker on another machine.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from engine.importers import IMPORTERS, Importer, Options, Row
from engine.importers.rows import CUT_OFF, BadRow, Broken
from schemas import limits
from schemas.checking import checked
from schemas.envelope import Envelope
from schemas.errors import EngineError, unquoted
from schemas.jobs import Problem
from schemas.times import Instant
from schemas.transfer import ImportOptions


class MapPart(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of which file to map: everything that decides what comes of them."""

    job_id: str
    system: str
    scope_template: str
    imported_at: Instant
    options: dict[str, Any]
    source: dict[str, str]
    start: int
    count: int

    def map_options(self) -> Options:
        """What the request says about how to map."""
        given = msgspec.convert(self.options, ImportOptions)
        names = set(Options.__struct_fields__) & set(ImportOptions.__struct_fields__)
        return Options(
            scope_template=self.scope_template,
            imported_at=self.imported_at,
            **{name: getattr(given, name) for name in names},
        )


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """One experience of a row, checked; `follows` is the one of the same row it comes after."""

    envelope: Envelope
    follows: int | None = None


class MappedRow(msgspec.Struct, frozen=True, array_like=True):
    """What a row came to: experiences, none of them, or what is wrong with it."""

    line: int
    ready: list[Ready] = []
    problem: Problem | None = None


class Mapped(msgspec.Struct, frozen=True):
    """A part of a file, and how many rows the whole has."""

    total: int
    rows: list[MappedRow]


class Mapper:
    """One file, parsed when its first part is asked for."""

    def __init__(self) -> None:
        self._rows: list[Row] | None = None

    def part(self, asked: MapPart, read: Callable[[], bytes]) -> Mapped:
        """Map some rows; one that cannot be mapped says why, and the others go on."""
        importer, options = IMPORTERS[asked.system], asked.map_options()
        if self._rows is None:
            ordering = asked.options.get("ordering")
            self._rows = _rows(importer, read(), options, ordering)
        part = self._rows[asked.start : asked.start + asked.count]
        return Mapped(len(self._rows), [_mapped(importer, row, options) for row in part])


def problem_of(line: int, error: Exception) -> Problem:
    """What is wrong with a row, as its job tells it: in our words, for they stay in the log."""
    if isinstance(error, EngineError):
        code, said = error.code.lower(), error.message
    else:
        code, said = "invalid_envelope", str(error)
    return Problem(line=line, error=code, detail=unquoted(said)[:500])


def _mapped(importer: Importer, row: Row, options: Options) -> MappedRow:
    try:
        if isinstance(row.value, Broken):
            raise BadRow(row.value)
        drafts = importer.drafts(row, options)
        ready = [Ready(_checked(draft.envelope), draft.follows) for draft in drafts]
    except (BadRow, EngineError) as error:
        return MappedRow(row.line, problem=problem_of(row.line, error))
    return MappedRow(row.line, ready)


def _checked(envelope: dict[str, Any]) -> Envelope:
    """An envelope like any that is posted."""
    try:
        return checked(msgspec.convert(envelope, Envelope))
    except msgspec.ValidationError as error:
        raise BadRow(str(error)) from error


def _rows(importer: Importer, data: bytes, options: Options, ordering: str | None) -> list[Row]:
    found = list(importer.rows(_parsed(importer, data)))
    if ordering != "strict_temporal":
        return found
    return sorted(found, key=lambda row: _time_of(importer, row, options))


def _time_of(importer: Importer, row: Row, options: Options) -> str:
    """When a row happened, for sorting; one that cannot be mapped comes first, and says why."""
    try:
        drafts = importer.drafts(row, options)
        at: str | datetime = drafts[0].envelope["context"]["observed_at"] if drafts else ""
        return str(at)
    except (BadRow, KeyError, TypeError):
        return ""


def _parsed(importer: Importer, data: bytes) -> Any:
    """One JSON value, or lines of JSON; a line that is none of it becomes its own problem."""
    if importer.by_line:
        return _lines(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [value for _, value in _lines(data)]


def _lines(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        if line == CUT_OFF:
            yield number, Broken("the packed file is damaged or cut off from here on")
            continue
        if len(line) > limits.EXPERIENCE_BODY_BYTES_MAX:
            yield number, Broken(f"line {number} is longer than an experience may be")
            continue
        try:
            yield number, msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            yield number, Broken(f"line {number} is not JSON: {error}")
