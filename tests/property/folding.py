"""What does a small log of our own leave?  Run by itself: a digest of every table's rows.

`python folding.py ROOT` folds the diary of the benchmarks, and what words are not: exact content, a
model's reading, a vocabulary, a cancellation. It imports the packages that stand first on the path,
compiled or not, and says in its first line which.
"""

import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from projectors import INLINE, STAGES, fold
from projectors.overlay import Overlay
from schemas.checking import checked
from schemas.entry import KINDS, Body, Entry
from schemas.ids import format_id, uuid7
from schemas.times import to_us

TURNS = 240
SCOPE = "org:acme/user:ana"
_pack = msgspec.msgpack.Encoder().encode


class Rows:
    """Rows as a store keeps them: bytes, and in the order of their keys."""

    def __init__(self) -> None:
        self.shapes = {t: s for p in PROJECTORS for t, s in p.tables.items()}
        self.rows: dict[tuple[int, str, bytes], bytes] = {}

    def get(self, tenant_no: int, table: str, key: bytes) -> Any | None:
        value = self.rows.get((tenant_no, table, key))
        return None if value is None else msgspec.msgpack.decode(value, type=self.shapes[table])

    def scan(self, tenant_no: int, table: str, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
        for place in sorted(self.rows):
            if place[:2] == (tenant_no, table) and place[2].startswith(prefix):
                yield place[2], self.get(*place)

    def take(self, overlay: Overlay) -> None:
        for place, value in overlay.pending.items():
            self.rows.pop(place, None)
            if value is not None:
                self.rows[place] = _pack(value)


PROJECTORS = (*INLINE, *(one for stage in STAGES for one in stage.projectors))


def bodies(root: Path) -> Iterator[dict[str, Any]]:
    """What happened, as the log would hold it."""
    spec = importlib.util.spec_from_file_location("diary", root / "bench" / "diary.py")
    assert spec is not None
    assert spec.loader is not None
    diary = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(diary)
    terms = [{"id": "employer", "aliases": ["works_at"]}, {"id": "seats", "datatype": "integer"}]
    vocabulary = {"name": "deals", "predicates": terms}
    yield directive("set_vocabulary", vocabulary=vocabulary)
    for number, turn in enumerate(diary.turns(TURNS)):
        envelope = {"scope": SCOPE, **turn}
        yield {"type": "experience", "envelope": envelope}
        if number % 20 == 0:
            yield from beside(number, envelope)
    yield directive("synthesize", force=True)


def beside(number: int, envelope: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Exact content and a model's reading, with numbers that are whole and numbers that are not."""
    triples = ({"subject": "Acme", "predicate": "seat_count", "object": n} for n in (number, 0.5))
    data = {"status": "signed", "amount": number, "is_late": number % 40 == 0, "rate": 1.0}
    contents = [*({"kind": "triple", "triple": one} for one in triples)]
    for at, content in enumerate((*contents, {"kind": "json", "data": data})):
        told = envelope | {"content": content, "idempotency_key": f"exact-{number}-{at}"}
        yield {"type": "experience", "envelope": told}
    facts = [
        {"subject": "Ana", "predicate": "lives_in", "object": "Oslo", "confidence": 1},
        {"subject": "Ana", "predicate": "age", "object": 30 + number, "confidence": 0.75},
        {"subject": "Ana", "predicate": "same_as", "object": "Anna", "confidence": 1},
    ]
    about = format_id("evt", bytes(16))
    read = {"about": about, "model": "m", "version": "1", "output": {"facts": facts}}
    yield {"type": "annotation", "scope": SCOPE, "frame": envelope, **read}
    yield directive("cancel", event_id=about, offset=number + 2, stages=[])


def directive(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "directive", "scope": SCOPE, "command": {"type": name, **fields}}


def entries(root: Path) -> Iterator[Entry]:
    """The log: an entry every minute."""
    at = None
    for offset, said in enumerate(bodies(root), start=1):
        body: Any = msgspec.convert(said, Body)
        envelope = getattr(body, "envelope", None)
        if envelope is not None:
            at = max(filter(None, (at, checked(envelope).context.observed_at)))
        at = (at or START) + timedelta(minutes=1)
        raw = uuid7(to_us(at), offset)
        yield Entry(
            offset=offset,
            id=raw,
            event_id=format_id("evt", raw),
            tenant="acme",
            tenant_no=1,
            scope=SCOPE,
            scope_no=4,
            caller="service:diary",
            recorded_at=at,
            kind=KINDS[type(body)],
            body=body,
        )


START = datetime(2024, 1, 1, tzinfo=UTC)


def main(root: Path) -> None:
    store = Rows()
    for entry in entries(root):
        overlay = Overlay(store)
        fold.fold_inline(entry, INLINE, overlay)
        fold.fold_stages([entry], STAGES, overlay, frozenset())
        store.take(overlay)
    tables = defaultdict(list)
    for (_, table, key), value in sorted(store.rows.items()):
        tables[table].append(key + value)
    print("compiled" if fold.__file__.endswith(".so") else "plain")
    for table, rows in tables.items():
        print(table, len(rows), sha256(b"\0".join(rows)).hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
