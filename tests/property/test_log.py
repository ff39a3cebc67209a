"""Is any bit changed behind the log's back seen, and any sequence of its own calls survived?"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state.drafts import Draft, Numbers
from engine.state.integrity import verify_log
from engine.state.kv import CorruptStore
from engine.state.log import FAMILIES, KvLog
from engine.state.vault import Vault, offset_key
from schemas.ids import uuid7

FIRST_US = 1_770_000_000_000_000
ENTRIES = 9


def draft(number: int, body: bytes) -> Draft:
    recorded_us = FIRST_US + number
    return Draft(
        (uuid7(recorded_us, number), recorded_us),
        Numbers(1, 1 + number % 2, 1),
        (1 + number % 3, 1),
        body,
        idem=b"key %d" % number,
        body_mac=b"mac %d" % number,
    )


def verify(kv, log):
    return verify_log(log, kv, None, lambda done, total: None)


@pytest.fixture(scope="module")
def written(rig):
    """A log with some entries, one of them erased, as its two stores hold it."""
    site = rig.Site()
    kv, vault_kv = site.kv, site.vault_kv
    log = KvLog(kv, Vault(vault_kv, rig.MASTER))
    bodies = [draft(number, b"body %d " % number * 40) for number in range(1, ENTRIES + 1)]
    asyncio.run(log.append(bodies, expect=0))
    log.erase([4])
    log.close()
    return kv, vault_kv


places = st.tuples(
    st.sampled_from(["log", "payload", "slots"]),
    st.integers(1, ENTRIES).filter(lambda number: number != 4),
)


@given(place=places, where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(deadline=None)
def test_any_bit_of_any_row_counts(rig, written, place, where, bit):
    """One bit in a header, a chain, a payload or a wrapped key: refused, the entry named (I5)."""
    family, number = place
    kv, vault_kv = (store.left_behind(rig.Mains(), power_cut=True) for store in written)
    store = vault_kv if family == "slots" else kv
    row = bytearray(store.get(family, offset_key(number)))
    row[int(where * len(row))] ^= 1 << bit
    batch = store.batch()
    batch.put(family, offset_key(number), bytes(row))
    store.write(batch)

    with pytest.raises(CorruptStore, match=rf"\b{number}\b"):
        log = KvLog(kv, Vault(vault_kv, rig.MASTER))
        verify(kv, log)


def test_the_untouched_log_verifies(rig, written):
    """What the other test damages is sound to begin with."""
    kv, vault_kv = written
    report = verify(kv, KvLog(kv, Vault(vault_kv, rig.MASTER)))

    assert (ENTRIES, 1) == (report.entries, report.erased)


bodies = st.binary(max_size=64) | st.integers(0, 4000).map(lambda size: b"word " * (size // 5))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(bodies, min_size=1, max_size=5)),
        st.tuples(st.just("erase"), st.sets(st.integers(1, 30), max_size=4)),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("reopen"), st.booleans()),
    ),
    max_size=25,
)


@given(operations=operations)
@settings(deadline=None)
def test_any_sequence_of_calls(rig, operations):
    """The six methods against a plain list: reads, head, chain and indexes hold after each."""
    site = rig.Site()
    kv, vault_kv = site.kv, site.vault_kv
    log = KvLog(kv, Vault(vault_kv, rig.MASTER))
    model: dict[int, bytes | None] = {}
    head = 0
    with asyncio.Runner() as runner:
        for what, value in operations:
            if what == "append":
                drafts = [draft(head + at, body) for at, body in enumerate(value, 1)]
                assert head + 1 == runner.run(log.append(drafts, expect=head))
                model |= {head + at: body for at, body in enumerate(value, 1)}
                head += len(value)
            elif what == "erase":
                log.erase(sorted(value))
                model |= {offset: None for offset in value if offset in model}
            elif what == "truncate":
                log.truncate(value)
                model = {offset: body for offset, body in model.items() if offset >= value}
            else:
                log.close()
                kv, vault_kv = (s.left_behind(rig.Mains(), power_cut=value) for s in (kv, vault_kv))
                log = KvLog(kv, Vault(vault_kv, rig.MASTER))
            assert head == log.head()
            assert model == {row.header.offset: row.body for row in log.read(1, 1000)}
    log.close()
    fresh = KvLog(kv, Vault(vault_kv, rig.MASTER))
    report = verify(kv, fresh)

    assert (len(model), head) == (report.entries, report.head)
    assert list(model.values()).count(None) == report.erased
    assert set(FAMILIES) <= set(kv.families())
    for offset in model:
        assert offset == fresh.directory.find(1, draft(offset, b"").id)
    fresh.close()
