"""Is what was erased really gone?  Every file, every row and every index, looked through.

The files of the stores are compressed and payloads are encrypted, so a search for bytes in files
proves little by itself: rows are read through the store, payloads opened with their keys, and the
text index asked for words, removed documents included.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.redaction import command_of
from engine.settings import Settings
from engine.state.kv import KV
from engine.state.names import TENANT
from engine.state.text_index import documents_with
from engine.upkeep import inspected
from schemas.ids import parse_id

if TYPE_CHECKING:
    from engine.engine import Engine

_READ = 256
_CHUNK = 1 << 20


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and where something was found."""

    erasure_id: str
    status: str
    events: int
    payloads_left: list[str]
    keys_left: list[str]
    records_left: list[str]
    files: int
    rows: int
    payloads: int
    phrase_in: list[str]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not (self.payloads_left or self.keys_left or self.records_left or self.phrase_in)


def prove(settings: Settings, erasure_id: str, phrases: list[str]) -> Proof | None:
    """Look through a data directory, beside a server or without one; None: no such erasure."""
    with inspected(settings) as engine:
        found = _erasure(engine, erasure_id)
        if found is None:
            return None
        tenant_no, status, offsets = found
        commands = [command_of(engine.entry_of(row)) for row in engine.log.read_many(list(offsets))]
        events = [event for command in commands for event in command.events]
        gone = [offset for event in events for offset in event.offsets]
        places = list(look_through(engine, settings.data, [text.encode() for text in phrases]))
        counted = places.pop()
        return Proof(
            erasure_id=erasure_id,
            status=status,
            events=len(events),
            payloads_left=[
                f"entry {offset}"
                for offset in gone
                if engine.kv.get("payload", offset.to_bytes(8, "big")) is not None
            ],
            keys_left=[f"entry {at}" for at in gone if engine.vault.slot(at) is not None],
            records_left=[
                record.id
                for command in commands
                for record in command.records
                if _is_there(engine, tenant_no, record.id)
            ],
            files=int(counted[0]),
            rows=int(counted[1]),
            payloads=int(counted[2]),
            phrase_in=[str(place) for place in places],
        )


def _erasure(engine: "Engine", erasure_id: str) -> tuple[int, str, list[int]] | None:
    raw = parse_id("erasure", erasure_id)
    for tenant_no, _ in engine.names.all(TENANT, 0) if raw is not None else ():
        job = engine.inline.get(tenant_no, "jobs", raw or b"")
        if job is not None:
            row = engine.inline.get(tenant_no, "forgets", raw or b"")
            return tenant_no, job.status, [] if row is None else row.offsets
    return None


def _is_there(engine: "Engine", tenant_no: int, record_id: str) -> bool:
    tables = {"ep": "episodes", "fact": "facts", "belief": "beliefs", "concept": "concepts"}
    prefix = record_id.partition("_")[0]
    raw = parse_id(prefix, record_id)
    return raw is not None and engine.staged.get(tenant_no, tables[prefix], raw) is not None


def look_through(
    engine: "Engine", data: Path, phrases: list[bytes]
) -> Iterator[str | tuple[int, int, int]]:
    """The places where a phrase is found; at the end how many files, rows and payloads there are.

    Also in lower case: indexes keep words so.
    """
    sought = [form for phrase in phrases for form in {phrase, phrase.lower()}]
    files = rows = payloads = 0
    for path in sorted(data.rglob("*")):
        if path.is_file():
            files += 1
            if _in_file(path, sought):
                yield f"file {path.relative_to(data)}"
    for name, kv in (("store", engine.kv), ("vault", engine.stores.vault_kv)):
        for family, key, value in _rows(kv):
            rows += 1
            if any(form in key or form in value for form in sought):
                yield f"{name}: {family} {key.hex()[:40]}"
    head = engine.log.head()
    for start in range(engine.log.base_offset + 1, head + 1, _READ):
        for row in engine.log.read(start, _READ):
            payloads += 1
            if row.body is not None and any(form in row.body for form in sought):
                yield f"payload of entry {row.header.offset}"
    for phrase in phrases:
        found = documents_with(data / "index", phrase.decode(errors="replace"))
        if found:
            yield f"text index: {found} documents"
    yield (files, rows, payloads)


def _in_file(path: Path, sought: list[bytes]) -> bool:
    longest = max((len(form) for form in sought), default=0)
    if not longest:
        return False
    with path.open("rb") as file:
        tail = b""
        while chunk := file.read(_CHUNK):
            held = tail + chunk
            if any(form in held for form in sought):
                return True
            tail = held[-longest:]
    return False


def _rows(kv: KV) -> Iterator[tuple[str, bytes, bytes]]:
    for family in kv.families():
        for key, value in kv.scan(family):
            yield family, key, value
