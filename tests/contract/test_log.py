"""Does a log keep its six promises, whoever keeps its rows?"""

import asyncio
import random
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from engine.state.anchors import Anchor, Anchors
from engine.state.drafts import Draft, Numbers
from engine.state.integrity import LogReport, check_tail, verify_log
from engine.state.kv import KV, Batch, CorruptStore, StoreWriteFailed
from engine.state.log import FAMILIES, GENESIS, Fenced, KvLog, Reads, chain_link, split_row
from engine.state.memory import MemoryKV
from engine.state.rocks import RocksKV
from engine.state.vault import FAMILIES as VAULT_FAMILIES
from engine.state.vault import Vault, offset_key
from schemas import limits
from schemas.ids import uuid7

MASTER = bytes(range(32))
SIGNING = bytes(range(32, 64))
TENANT, SCOPE, ACTOR = 7, 3, 5
FIRST_US = 1_770_000_000_000_000
EXTRA = "extra"

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@dataclass
class Place:
    """Where a log lives, so that it can be left and come back to."""

    kind: str
    folder: Path
    laid: Path
    logs: list[KvLog] = field(default_factory=list)
    stores: list[KV] = field(default_factory=list)
    homes: Iterator[int] = field(default_factory=count)
    kv: Any = None
    vault_kv: Any = None
    home: Path = Path()

    def open(self, **options: Any) -> KvLog:
        """The log, ready for appends; the first call makes the stores."""
        if self.kv is None:
            if self.kind == "rocks":
                shutil.copytree(self.laid, self.folder / "first" / "vault")
            twins = (MemoryKV(), MemoryKV.load(self.laid.with_suffix(".twin")))
            self._found(self.folder / "first", twins)
        log = KvLog(self.kv, Vault(self.vault_kv, MASTER), **options)
        self.logs.append(log)
        log.prepare()
        return log

    def reopen(self, **options: Any) -> KvLog:
        """The log after a clean stop."""
        self.close()
        self._found(self.home, (self.kv, self.vault_kv))
        return self.open(**options)

    def after_a_crash(self, **options: Any) -> KvLog:
        """The log as the disk has it now, opened elsewhere; the open one is not asked."""
        home = self.folder / f"copy{next(self.homes)}"
        if self.kind == "rocks":
            shutil.copytree(self.home, home)
            self._found(home, (self.kv, self.vault_kv))
        else:
            self._found(home, (self.kv.crash(), self.vault_kv.crash()))
        return self.open(**options)

    def _found(self, home: Path, twins: tuple[MemoryKV, MemoryKV]) -> None:
        self.home = home
        self.kv, self.vault_kv = twins
        if self.kind == "rocks":
            self.kv = RocksKV.open(home / "store", [*FAMILIES, EXTRA])
            self.vault_kv = RocksKV.open(home / "vault", VAULT_FAMILIES)
        for family in (*FAMILIES, EXTRA):
            self.kv.create_family(family)
        for family in VAULT_FAMILIES:
            self.vault_kv.create_family(family)
        self.stores += [self.kv, self.vault_kv]

    def close(self) -> None:
        """Stop the logs' threads; on disk, also let the stores go."""
        for log in self.logs:
            log.close()
        if self.kind == "rocks":
            for store in self.stores:
                store.close()


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault with keys laid ahead of an empty log, made once: on disk, and beside it its twin."""
    path = tmp_path_factory.mktemp("laid") / "vault"
    twin = MemoryKV(VAULT_FAMILIES)
    Vault(twin, MASTER).lay_ahead(0)
    twin.checkpoint(path.with_suffix(".twin"))
    kv = RocksKV.open(path, VAULT_FAMILIES)
    Vault(kv, MASTER).lay_ahead(0)
    kv.close()
    return path


@pytest.fixture(params=["memory", "rocks"])
def place(request: pytest.FixtureRequest, tmp_path: Path, laid: Path) -> Iterator[Place]:
    """An empty place, in memory or on disk."""
    made = Place(request.param, tmp_path, laid)
    yield made
    made.close()


@pytest.fixture
def memory_place(tmp_path: Path, laid: Path) -> Iterator[Place]:
    """An empty place in memory, where a power cut is one call."""
    made = Place("memory", tmp_path, laid)
    yield made
    made.close()


@pytest.fixture
def disk_place(tmp_path: Path, laid: Path) -> Iterator[Place]:
    """An empty place on disk, with files to look into."""
    made = Place("rocks", tmp_path, laid)
    yield made
    made.close()


@pytest.fixture
def run() -> Iterator[Run]:
    """One event loop for the whole test."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def anchors(tmp_path: Path) -> Anchors:
    """An empty file of anchors."""
    return Anchors(tmp_path / "anchors.log", SIGNING)


def draft(number: int, body: bytes | None = None, **changes: Any) -> Draft:
    """The n-th entry of a test: everything in it follows from the number."""
    recorded_us = FIRST_US + number
    fields: dict[str, Any] = {
        "id": uuid7(recorded_us, number),
        "tenant_no": TENANT,
        "scope_no": SCOPE,
        "actor_no": ACTOR,
        "kind": 1,
        "schema_version": 1,
        "recorded_us": recorded_us,
        "body": b"body %d" % number if body is None else body,
        "idem": b"key %d" % number,
        "body_mac": b"mac %d" % number,
    } | changes
    return Draft(
        (fields["id"], fields["recorded_us"]),
        Numbers(fields["tenant_no"], fields["scope_no"], fields["actor_no"]),
        (fields["kind"], fields["schema_version"]),
        fields["body"],
        idem=fields["idem"],
        body_mac=fields["body_mac"],
    )


def drafts(first: int, last: int) -> list[Draft]:
    return [draft(number) for number in range(first, last + 1)]


def fill(run: Run, log: KvLog, last: int) -> None:
    """Append so that the log holds entries 1 to `last`, in uneven batches."""
    while log.head() < last:
        first = log.head() + 1
        run(log.append(drafts(first, min(last, first + first % 3)), expect=log.head()))


def bodies(log: KvLog) -> list[bytes | None]:
    return [row.body for row in log.read(1, 1000)]


def offsets(log: KvLog) -> list[int]:
    return [row.header.offset for row in log.read(1, 1000)]


def anchor(anchors: Anchors, log: KvLog) -> None:
    size, chain = log.anchor_point()
    anchors.write(Anchor(size=size, chain=chain, at_us=FIRST_US))


def verify(place: Place, log: KvLog, anchors: Anchors | None = None) -> LogReport:
    return verify_log(log, place.kv, anchors, lambda done, total: None)


def write(kv: KV, family: str, key: bytes, value: bytes | None) -> None:
    """Change one row behind the log's back."""
    batch = kv.batch()
    if value is None:
        batch.delete(family, key)
    else:
        batch.put(family, key, value)
    kv.write(batch)
    kv.sync()


class Gate:
    """A store whose syncs wait until the gate is opened."""

    def __init__(self, kv: KV) -> None:
        self._kv = kv
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kv, name)

    def sync(self) -> None:
        self.reached.set()
        assert self.opened.wait(30), "nobody opened the gate"
        self._kv.sync()


# Appending


def test_an_empty_log(place: Place) -> None:
    """Nothing yet is 0, without a special value."""
    log = place.open()

    assert 0 == log.head()
    assert [] == log.read(1, 10)


def test_offsets_are_dense_from_one(place: Place, run: Run) -> None:
    """Every append goes on where the last one ended; its answer is its first offset."""
    log = place.open()
    firsts = [
        run(log.append(drafts(1, 1), expect=0)),
        run(log.append(drafts(2, 4), expect=1)),
        run(log.append(drafts(5, 5), expect=4)),
    ]

    assert [1, 2, 5] == firsts
    assert 5 == log.head()
    assert [1, 2, 3, 4, 5] == offsets(log)


def test_an_entry_is_read_as_it_was_written(place: Place, run: Run) -> None:
    """Header fields and body come back, from memory and from the store."""
    log = place.open()
    wanted = draft(1, b"what happened", kind=2, scope_no=0, idem=b"", body_mac=b"")
    run(log.append([wanted], expect=0))
    for _ in range(2):
        (row,) = log.read(1, 10)

        assert b"what happened" == row.body
        assert (wanted.id, TENANT, 0, ACTOR, 2, 1) == (
            row.header.id,
            row.header.tenant_no,
            row.header.scope_no,
            row.header.actor_no,
            row.header.kind,
            row.header.schema_version,
        )
        assert (wanted.recorded_us, 13) == (row.header.recorded_us, row.header.body_bytes)
        log = place.reopen()


SIZES = (0, 1, 15, 16, 1023, 1024, 1025, 65_536, 300 * 1024)


@pytest.mark.parametrize("kind", ["compressible", "random", "zeros"])
def test_bodies_of_every_size(place: Place, run: Run, kind: str) -> None:
    """A body comes back byte for byte, whether or not it was worth compressing."""
    make = {
        "compressible": lambda size: (b"the same words again " * (size // 20 + 1))[:size],
        "random": lambda size: random.Random(size).randbytes(size),
        "zeros": bytes,
    }[kind]
    written = [make(size) for size in SIZES]
    log = place.open()
    run(log.append([draft(at, body) for at, body in enumerate(written, 1)], expect=0))

    assert written == bodies(place.reopen())


def test_an_append_is_all_or_nothing(memory_place: Place, run: Run) -> None:
    """A batch that the store refuses leaves no part of itself: no entry, no index row, no hook."""

    def hook(batch: Batch, first: int) -> None:
        batch.put(EXTRA, b"k", b"v")
        raise RuntimeError("a rider fell off")

    log = memory_place.open()
    run(log.append(drafts(1, 2), expect=0))
    before = {family: list(memory_place.kv.scan(family)) for family in memory_place.kv.families()}
    with pytest.raises(RuntimeError, match="fell off"):
        run(log.append(drafts(3, 9), expect=2, rows=hook))

    after = {family: list(memory_place.kv.scan(family)) for family in memory_place.kv.families()}
    assert before == after
    assert 2 == log.head()
    assert 3 == run(log.append(drafts(3, 4), expect=2))
    assert [b"body 1", b"body 2", b"body 3", b"body 4"] == bodies(memory_place.reopen())


@pytest.mark.parametrize("expect", [0, 1, 3, 99])
def test_a_stale_expectation_is_fenced(place: Place, run: Run, expect: int) -> None:
    """The head is not where the writer thought: it hears where it is, and nothing changes."""
    log = place.open()
    fill(run, log, 2)
    asked: list[int] = []
    with pytest.raises(Fenced) as fenced:
        run(log.append(drafts(3, 3), expect=expect, rows=lambda batch, first: asked.append(first)))

    assert 2 == fenced.value.head
    assert [] == asked
    assert [b"body 1", b"body 2"] == bodies(place.reopen())


def test_two_writers_with_one_expectation(place: Place, run: Run) -> None:
    """Both decided on the same head: one is in, the other must decide again."""

    async def race(log: KvLog) -> list[Any]:
        rivals = [log.append([draft(n)], expect=0) for n in (1, 2)]
        return await asyncio.gather(*rivals, return_exceptions=True)

    log = place.open()
    first, second = run(race(log))

    assert 1 == first
    assert isinstance(second, Fenced)
    assert [b"body 1"] == bodies(log)


def test_rows_ride_with_their_entries(place: Place, run: Run) -> None:
    """What the hook adds is in the batch of the entries: both are there, or neither."""
    log = place.open()
    run(log.append(drafts(1, 2), expect=0))
    run(log.append(drafts(3, 4), expect=2, rows=lambda b, first: b.put(EXTRA, b"k", b"%d" % first)))

    log = place.after_a_crash()
    assert b"3" == place.kv.get(EXTRA, b"k")
    assert 4 == log.head()


def test_rows_alone_move_no_offset(place: Place, run: Run) -> None:
    """An append of no entries still carries rows, durably."""
    log = place.open()
    run(log.append([], expect=0, rows=lambda batch, first: batch.put(EXTRA, b"k", b"v")))

    assert 0 == log.head()
    place.after_a_crash()
    assert b"v" == place.kv.get(EXTRA, b"k")


def test_an_append_is_durable_on_return(place: Place, run: Run) -> None:
    """A power cut right after the answer takes nothing back."""
    log = place.open()
    fill(run, log, 7)

    again = place.after_a_crash()
    assert 7 == again.head()
    assert [b"body %d" % number for number in range(1, 8)] == bodies(again)


def test_nothing_is_visible_before_it_is_durable(place: Place, run: Run) -> None:
    """head, read and tail know only what a power cut cannot take back."""

    async def look() -> tuple[int, list[Any], int]:
        append = asyncio.create_task(log.append(drafts(2, 3), expect=1))
        await asyncio.to_thread(gate.reached.wait, 30)
        seen = (log.head(), [row.header.offset for row in log.read(1, 10)])
        gate.opened.set()
        await append
        return *seen, log.head()

    log = place.open()
    fill(run, log, 1)
    log.close()
    gate = Gate(place.kv)
    place.kv = gate
    log = place.open()

    assert (1, [1], 3) == run(look())


def test_running_out_of_keys_waits_for_more(memory_place: Place, run: Run) -> None:
    """A capture that reaches the end of the keys laid ahead waits for more (docs/adr/0011)."""

    async def flood() -> list[int]:
        while log.head() < limits.VAULT_SLOTS_AHEAD:
            first, last = log.head() + 1, log.head() + limits.COMMIT_ENTRIES_MAX
            batch = drafts(first, min(last, limits.VAULT_SLOTS_AHEAD))
            await log.append(batch, expect=log.head())
        late = asyncio.create_task(log.append([draft(log.head() + 1)], expect=log.head()))
        # The keys are on their way to the disk and no further: to use one now would be to lose it.
        early, _ = await asyncio.wait([late], timeout=0.1)
        gate.opened.set()
        return [len(early), await late]

    log = memory_place.open()
    fill(run, log, 1)
    gate = Gate(memory_place.vault_kv)
    memory_place.vault_kv = gate
    log = memory_place.open()

    assert [0, limits.VAULT_SLOTS_AHEAD + 1] == run(flood())
    assert b"body 8193" == log.read(8193, 1)[0].body


# Reading


READS = {(1, 3): [1, 2, 3], (0, 2): [1, 2], (4, 100): [4, 5], (5, 1): [5], (6, 9): [], (2, 0): []}


def test_read_takes_a_start_and_a_limit(place: Place, run: Run) -> None:
    """At most `limit` rows, from `start` on, from memory as from the store."""
    log = place.open()
    fill(run, log, 5)
    for _ in range(2):
        found = {asked: [row.header.offset for row in log.read(*asked)] for asked in READS}
        assert READS == found
        log = place.reopen()


def test_an_entry_is_found_by_what_its_header_says(place: Place, run: Run) -> None:
    """By its id, by its idempotency key, and within its scope; only by its own tenant."""
    log = place.open()
    run(log.append([draft(1), draft(2, scope_no=9), draft(3)], expect=0))

    assert 2 == log.directory.find(TENANT, draft(2).id)
    assert None is log.directory.find(TENANT + 1, draft(2).id)
    assert (3, b"mac 3") == log.directory.replayed(TENANT, b"key 3")
    assert None is log.directory.replayed(TENANT + 1, b"key 3")
    walk = {"after": 0, "newest_first": False, "limit": 10}
    assert [1, 3] == log.directory.scope_offsets(TENANT, SCOPE, **walk)


def test_every_way_of_reading_follows_from_read(place: Place, run: Run) -> None:
    """What a log does better than by `read` alone says the same: six methods are enough."""
    log = place.open()
    fill(run, log, 7)
    log.erase([3])
    for bounds in ((1,), (4,), (2, 6), (8,), (5, 5)):
        assert list(Reads.headers(log, *bounds)) == list(log.headers(*bounds))
    for offsets in ([], [7], [5, 1, 3]):
        assert Reads.read_many(log, offsets) == log.read_many(offsets)


def test_tail_yields_old_and_new(place: Place, run: Run) -> None:
    """First what is there, then each entry as it becomes durable; none twice."""

    async def follow() -> list[int]:
        seen: list[int] = []
        arrived = asyncio.Event()

        async def watch() -> None:
            async for row in log.tail(2):
                seen.append(row.header.offset)
                arrived.set()
                if len(seen) == 6:
                    return

        watching = asyncio.create_task(watch())
        await arrived.wait()
        await log.append(drafts(4, 6), expect=3)
        await log.append(drafts(7, 7), expect=6)
        await watching
        return seen

    log = place.open()
    fill(run, log, 3)

    assert [2, 3, 4, 5, 6, 7] == run(follow())


def test_tail_after_a_truncation(place: Place, run: Run) -> None:
    """A tail that asks for what is gone begins with what is left, and repeats nothing."""

    async def follow() -> list[int]:
        seen = []
        async for row in log.tail(1):
            seen.append(row.header.offset)
            if row.header.offset == 7:
                await log.append(drafts(8, 8), expect=7)
            if row.header.offset == 8:
                break
        return seen

    log = place.open()
    fill(run, log, 7)
    log.truncate(5)

    assert [5, 6, 7, 8] == run(follow())


# Erasing


def test_an_erased_entry_keeps_its_header(place: Place, run: Run) -> None:
    """The body is gone; offset, header and chain stay, and the log still verifies (I5)."""
    log = place.open()
    fill(run, log, 6)
    before = log.read(1, 10)
    log.erase([2, 5])

    for _ in range(2):
        after = log.read(1, 10)
        assert [b"body 1", None, b"body 3", b"body 4", None, b"body 6"] == bodies(log)
        assert [row.header for row in before] == [row.header for row in after]
        assert [row.chain for row in before] == [row.chain for row in after]
        assert 2 == verify(place, log).erased
        log = place.reopen()


def test_erasing_is_repeatable(place: Place, run: Run) -> None:
    """Erasing again, or what is not there, changes nothing and is no error."""
    log = place.open()
    fill(run, log, 3)
    log.erase([2])
    log.erase([2])
    log.erase([])
    log.erase([0, 4, 99])

    assert [b"body 1", None, b"body 3"] == bodies(log)
    assert 1 == verify(place, place.reopen()).erased


def test_a_log_goes_on_after_an_erasure(place: Place, run: Run) -> None:
    """New entries chain onto what was erased, also when the last entry was."""
    log = place.open()
    fill(run, log, 3)
    log.erase([3])
    log = place.reopen()
    run(log.append(drafts(4, 5), expect=3))

    assert [b"body 1", b"body 2", None, b"body 4", b"body 5"] == bodies(log)
    assert 5 == verify(place, place.reopen()).entries


class Fuse:
    """A store that stops for good when the fuse it shares with another is used up."""

    def __init__(self, kv: MemoryKV, left: list[int]) -> None:
        self._kv = kv
        self._left = left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kv, name)

    def write(self, batch: Batch) -> None:
        self._burn()
        self._kv.write(batch)

    def sync(self) -> None:
        self._burn()
        self._kv.sync()

    def _burn(self) -> None:
        if not self._left:
            raise StoreWriteFailed("the fuse has blown")
        self._left.pop()


@pytest.mark.parametrize("power_cut", [True, False])
@pytest.mark.parametrize("call", ["erase", "truncate"])
def test_a_crash_between_any_two_writes(
    memory_place: Place, run: Run, call: str, power_cut: bool
) -> None:
    """Cut off anywhere, an entry is whole, erased or gone, never damaged; asking again ends it."""
    fill(run, memory_place.open(), 5)
    stores = (memory_place.kv, memory_place.vault_kv)
    seen = set()
    for lasts in range(10):
        fuse = [1] * lasts
        copies = [store.crash() for store in stores]
        memory_place.kv, memory_place.vault_kv = (Fuse(kv, fuse) for kv in copies)
        log = memory_place.open()
        try:
            log.erase([2]) if call == "erase" else log.truncate(3)
            finished = True
        except StoreWriteFailed:
            finished = False
        if power_cut:
            copies = [kv.crash() for kv in copies]
        memory_place.kv, memory_place.vault_kv = copies
        log = memory_place.open()
        seen.add(tuple(bodies(log)[:2]))
        verify(memory_place, log)
        log.erase([2]) if call == "erase" else log.truncate(3)
        verify(memory_place, memory_place.open())
        if finished:
            assert None is memory_place.vault_kv.get("slots", offset_key(2))
            break

    assert finished
    after = (b"body 1", None) if call == "erase" else (b"body 3", b"body 4")
    assert {(b"body 1", b"body 2"), after} == seen


def test_erased_bytes_are_in_no_file(disk_place: Place, run: Run) -> None:
    """Ciphertext and wrapped key leave every file of both stores; the neighbours' stay (I8)."""

    def found(needle: bytes) -> bool:
        files = [path for path in disk_place.home.rglob("*") if path.is_file()]
        return any(needle in path.read_bytes() for path in files)

    log = disk_place.open()
    run(log.append([draft(n, random.Random(n).randbytes(600)) for n in range(1, 9)], expect=0))
    secrets = {
        number: (
            disk_place.kv.get("payload", offset_key(number))[40:80],
            disk_place.vault_kv.get("slots", offset_key(number))[16:],
        )
        for number in (3, 4)
    }
    assert [True] * 4 == [found(part) for number in (3, 4) for part in secrets[number]]
    log.erase([4])

    assert [True, True] == [found(part) for part in secrets[3]]
    assert [False, False] == [found(part) for part in secrets[4]]


# Truncating


def test_truncation_keeps_the_chain(place: Place, run: Run, anchors: Anchors) -> None:
    """Entries below are gone, the rest verifies from the base, with and without anchors."""
    log = place.open()
    fill(run, log, 4)
    anchor(anchors, log)
    fill(run, log, 9)
    anchor(anchors, log)
    log.truncate(6)

    for _ in range(2):
        assert [6, 7, 8, 9] == offsets(log)
        assert [b"body 6", b"body 7"] == [row.body for row in log.read(1, 2)]
        check_tail(log, anchors)
        report = verify(place, log, anchors)
        assert (4, 9) == (report.entries, report.head)
        log = place.reopen()
    assert None is log.directory.find(TENANT, draft(5).id)
    assert 6 == log.directory.find(TENANT, draft(6).id)


def test_truncation_is_bounded_by_the_head(place: Place, run: Run) -> None:
    """At most everything goes; below the base there is nothing left to take."""
    log = place.open()
    fill(run, log, 4)
    log.truncate(3)
    log.truncate(2)
    log.truncate(0)
    assert [3, 4] == offsets(log)
    log.truncate(99)

    assert [] == log.read(1, 10)
    assert 4 == log.head()


def test_a_log_truncated_whole_goes_on(place: Place, run: Run) -> None:
    """Offsets, chain and the last time recorded outlive the last entry that had them."""
    log = place.open()
    fill(run, log, 5)
    chain, recorded_us = log.chain, log.last_recorded_us
    log.truncate(6)
    log = place.reopen()

    assert (5, chain, recorded_us) == (log.head(), log.chain, log.last_recorded_us)
    assert 6 == run(log.append(drafts(6, 7), expect=5))
    assert [b"body 6", b"body 7"] == bodies(log)
    assert 2 == verify(place, place.reopen()).entries


def test_truncation_leaves_a_key_to_the_entry_that_holds_it(place: Place, run: Run) -> None:
    """A key that a later entry was written under is still that entry's (I2)."""
    log = place.open()
    run(log.append([draft(1, idem=b"twice"), draft(2, idem=b"twice"), draft(3)], expect=0))
    log.truncate(2)

    assert (2, b"mac 2") == log.directory.replayed(TENANT, b"twice")
    assert None is log.directory.replayed(TENANT, b"key 1")


# Coming back


def test_a_reopened_log_goes_on(place: Place, run: Run) -> None:
    """Offsets, chain and recorded_at continue where they were; the whole verifies."""
    log = place.open()
    assert GENESIS == log.chain
    fill(run, log, 4)
    kept = (log.head(), log.chain, log.last_recorded_us, log.anchor_point())
    log = place.reopen()

    assert kept == (log.head(), log.chain, log.last_recorded_us, log.anchor_point())
    run(log.append(drafts(5, 6), expect=4))
    chain = GENESIS
    for _, raw, link in log.headers(1):
        chain = chain_link(chain, raw)
        assert chain == link
    assert 6 == verify(place, place.reopen()).entries


def test_buffered_appends_lose_a_tail_and_never_a_hole(memory_place: Place, run: Run) -> None:
    """Without fsync a power cut takes what was not synced: the end of the log, and only that."""
    log = memory_place.open(buffered=True)
    run(log.append(drafts(1, 3), expect=0))
    assert 3 == log.head()
    run(log.sync_buffered())
    run(log.append(drafts(4, 4), expect=3))
    run(log.append(drafts(5, 6), expect=4))
    assert (3, 6) == (log.anchor_point()[0], log.head())

    log = memory_place.after_a_crash()
    assert [1, 2, 3] == offsets(log)
    run(log.append(drafts(14, 15), expect=3))
    assert [b"body 1", b"body 2", b"body 3", b"body 14", b"body 15"] == bodies(log)
    assert 5 == verify(memory_place, memory_place.reopen()).entries


def test_a_vault_of_another_time_is_refused(place: Place, run: Run) -> None:
    """A vault that ends before the log's head is not of the same data: no append may use it."""
    log = place.open()
    fill(run, log, 3)
    batch = place.vault_kv.batch()
    batch.delete_range("slots", offset_key(3), offset_key(1 << 40))
    place.vault_kv.write(batch)

    with pytest.raises(CorruptStore, match="ends at key 2, before the log's head 3"):
        place.reopen()


# Tampering


def flipped(value: bytes, at: int) -> bytes:
    return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]


def rechained(place: Place, first: int, header: bytes) -> None:
    """Replace a header, and mend the chain of all that follows: a forger with the whole disk."""
    chain = split_row(place.kv.get("log", offset_key(first - 1)))[1]
    for key, value in list(place.kv.scan("log", offset_key(first))):
        raw = header if key == offset_key(first) else split_row(value)[0]
        chain = chain_link(chain, raw)
        write(place.kv, "log", key, raw + chain)


def cut_tail(place: Place) -> None:
    for number in (7, 8):
        write(place.kv, "log", offset_key(number), None)


def edit(family: str, number: int, change: Callable[[bytes], bytes | None]) -> Any:
    """A tampering with one row of the log's own store, or of the vault."""

    def tamper(place: Place) -> None:
        kv = place.vault_kv if family == "slots" else place.kv
        key = offset_key(number)
        write(kv, family, key, change(kv.get(family, key)))

    return tamper


TAMPERINGS = {
    "first byte of a header": (edit("log", 6, lambda v: flipped(v, 0)), "6"),
    "time in a header": (edit("log", 6, lambda v: flipped(v, len(v) - 120)), "6"),
    "chain of a row": (edit("log", 6, lambda v: flipped(v, len(v) - 1)), "6"),
    "row cut short": (edit("log", 6, lambda v: v[:20]), "6"),
    "row empty": (edit("log", 6, lambda v: b""), "6"),
    "row of another entry": (
        lambda p: edit("log", 6, lambda v: p.kv.get("log", offset_key(5)))(p),
        "6",
    ),
    "row deleted": (edit("log", 6, lambda v: None), "6"),
    "payload flipped": (edit("payload", 6, lambda v: flipped(v, 15)), "6"),
    "payload empty": (edit("payload", 6, lambda v: b""), "6"),
    "payload deleted": (edit("payload", 6, lambda v: None), "6"),
    "payload of another entry": (
        lambda p: edit("payload", 6, lambda v: p.kv.get("payload", offset_key(7)))(p),
        "6",
    ),
    "key flipped": (edit("slots", 6, lambda v: flipped(v, 20)), "6"),
    "key empty": (edit("slots", 6, lambda v: b""), "6"),
    "key deleted": (edit("slots", 6, lambda v: None), "6"),
    "tail cut off": (cut_tail, "6"),
    "history rewritten": (
        lambda p: rechained(
            p, 5, split_row(p.kv.get("log", offset_key(5)))[0].replace(b"mac 5", b"mac X")
        ),
        "7",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_seen(place: Place, run: Run, anchors: Anchors, name: str) -> None:
    """Whatever is changed behind the log's back is refused by both checks, with the entry named."""
    tamper, entry = TAMPERINGS[name]
    log = place.open()
    fill(run, log, 4)
    anchor(anchors, log)
    if name in ("tail cut off", "history rewritten"):
        fill(run, log, 7)
        anchor(anchors, log)
    fill(run, log, 8)
    tamper(place)
    log = place.reopen()

    with pytest.raises(CorruptStore, match=rf"\b{entry}\b"):
        check_tail(log, anchors)
    with pytest.raises(CorruptStore, match=rf"\b{entry}\b"):
        verify(place, log, anchors)


@pytest.mark.parametrize(
    "family, key",
    [
        ("ids", TENANT.to_bytes(4, "big") + draft(3).id),
        ("scope_log", TENANT.to_bytes(4, "big") + SCOPE.to_bytes(4, "big") + offset_key(3)),
        ("idem", TENANT.to_bytes(4, "big") + b"key 3"),
    ],
)
@pytest.mark.parametrize("value", [None, offset_key(2)])
def test_a_lost_index_row_is_seen(
    place: Place, run: Run, family: str, key: bytes, value: bytes | None
) -> None:
    """Every entry is found by its id, its scope and its key, or verification says which is not."""
    log = place.open()
    fill(run, log, 4)
    write(place.kv, family, key, value)

    with pytest.raises(CorruptStore, match=rf"entry 3 is missing from {family}"):
        verify(place, place.reopen())


@pytest.mark.parametrize("family", ["ids", "scope_log"])
def test_an_index_row_too_many_is_seen(place: Place, run: Run, family: str) -> None:
    """An index that finds what the log does not hold is refused."""
    log = place.open()
    fill(run, log, 4)
    write(place.kv, family, TENANT.to_bytes(4, "big") + bytes(12), b"")

    with pytest.raises(CorruptStore, match=rf"{family} holds 5 rows, the log says 4"):
        verify(place, place.reopen())
