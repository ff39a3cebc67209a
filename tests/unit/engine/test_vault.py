"""Are keys there before they are needed, and gone for good when they are destroyed?"""

import threading
from contextlib import suppress

import pytest

from engine.state.keyring import Keyring, has_key, mirror
from engine.state.kv import CorruptStore, StoreError
from engine.state.memory import MemoryKV
from engine.state.vault import FAMILIES, TenantKeys, Vault, commitment, offset_key, payload_key
from schemas import limits

MASTER = bytes(range(32))
AHEAD = limits.VAULT_SLOTS_AHEAD


@pytest.fixture(scope="module")
def laid():
    """A vault's store with keys laid ahead of an empty log, made once."""
    kv = MemoryKV(FAMILIES)
    Vault(kv, MASTER).lay_ahead(0)
    return kv


@pytest.fixture
def kv(laid):
    """A copy of it, as a restart finds it."""
    return laid.crash()


def test_keys_are_durable_before_they_can_be_taken(kv):
    """Every key of the stretch ahead survives a power cut, and each is another one."""
    vault = Vault(kv, MASTER)
    taken = [vault.take(offset) for offset in (1, 2, AHEAD)]
    again = Vault(kv.crash(), MASTER)

    assert AHEAD == vault.end == again.end
    assert taken == [again.slot(offset) for offset in (1, 2, AHEAD)]
    assert 3 == len(set(taken))
    assert [32] * 3 == [len(secret) for secret in taken]


def test_keys_are_laid_again_before_they_run_out(kv):
    """A quarter used up is time for more; before that nothing is written."""
    vault = Vault(kv, MASTER)
    early, due = AHEAD // 4, AHEAD // 4 + 1
    assert not vault.wants_keys(early)
    vault.lay_ahead(early)
    assert AHEAD == vault.end
    assert vault.wants_keys(due)
    first = vault.slot(AHEAD)
    vault.lay_ahead(due)

    assert due + AHEAD == vault.end
    assert first == vault.slot(AHEAD)
    assert None is not vault.slot(due + AHEAD)


def test_a_key_that_was_never_laid_cannot_be_taken(kv):
    """Better to stop than to encrypt under nothing."""
    with pytest.raises(AssertionError, match="no key was laid ahead for offset 9999"):
        Vault(kv, MASTER).take(9999)


def test_a_destroyed_key_is_gone(kv):
    """Out of memory and out of the rows; its neighbours stay, and it is never laid again."""
    vault = Vault(kv, MASTER)
    vault.destroy([3, 5])
    vault.lay_ahead(AHEAD // 2)

    for opened in (vault, Vault(kv.crash(), MASTER)):
        assert [True, False, True, False, True] == [
            secret is not None for secret in opened.slots([2, 3, 4, 5, 6])
        ]


def test_destroying_what_is_ready_takes_it_from_memory():
    """A key laid by this very process is destroyed as well as one from an earlier run."""
    vault = Vault(MemoryKV(FAMILIES), MASTER)
    vault.lay_ahead(0)
    vault.destroy([1])

    with pytest.raises(AssertionError, match="offset 1"):
        vault.take(1)


def test_destroying_nothing(kv):
    """An empty list is no error."""
    vault = Vault(kv, MASTER)
    vault.destroy([])

    assert None is not vault.slot(1)


@pytest.mark.parametrize("ask", [lambda v: v.slot(4), lambda v: v.take(4), lambda v: v.slots([4])])
def test_another_master_key_is_refused(kv, ask):
    """Rows wrapped by one master key do not open with another; the entry is named."""
    with pytest.raises(CorruptStore, match="key of entry 4 does not open"):
        ask(Vault(kv, bytes(32)))


def test_a_key_moved_to_another_offset_is_refused(kv):
    """A wrapped key is bound to its place: rows cannot be swapped."""
    batch = kv.batch()
    batch.put("slots", offset_key(2), kv.get("slots", offset_key(1)))
    kv.write(batch)

    with pytest.raises(CorruptStore, match="key of entry 2"):
        Vault(kv, MASTER).slot(2)


def test_a_tenant_keeps_its_keys(kv):
    """Made durable at first use, the same ever after, and each tenant has its own."""
    vault = Vault(kv, MASTER)
    made = [vault.tenant(number) for number in (1, 2)]
    again = [Vault(kv.crash(), MASTER).tenant(number) for number in (1, 2)]

    assert [keys.payload_key for keys in made] == [keys.payload_key for keys in again]
    assert [keys.pepper for keys in made] == [keys.pepper for keys in again]
    assert 4 == len({part for keys in made for part in (keys.payload_key, keys.pepper)})


def test_a_tenant_s_key_under_another_master_key_is_refused(kv):
    """The tenant is named: its payloads could not be opened."""
    Vault(kv, MASTER).tenant(7)

    with pytest.raises(CorruptStore, match="key of tenant 7 does not open"):
        Vault(kv, bytes(32)).tenant(7)


class MeetingKV(MemoryKV):
    """A store where two who look for a tenant's key are made to look at the same time."""

    def __init__(self, families):
        super().__init__(families)
        self.meeting = threading.Barrier(2)

    def get(self, family, key):
        """Look, and wait for the other to have looked; if nobody comes, go on alone."""
        found = super().get(family, key)
        if family == "tenants":
            with suppress(threading.BrokenBarrierError):
                self.meeting.wait(0.2)
        return found


def test_two_threads_meet_a_new_tenant():
    """Whoever is first makes its key; the other gets the same, or payloads would be lost."""
    kv = MeetingKV(FAMILIES)
    vault = Vault(kv, MASTER)
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(vault.tenant(1).payload_key)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [Vault(kv.crash(), MASTER).tenant(1).payload_key] * 2 == made


def test_a_payload_key_needs_both_its_parts():
    """Another slot or another tenant gives another key: either one destroyed is enough."""
    one, other = TenantKeys(bytes(64)), TenantKeys(bytes(32) + b"\1" * 32)
    third = TenantKeys(b"\1" * 64)
    slot = bytes(32)

    assert payload_key(one, slot) == payload_key(other, slot)
    assert payload_key(one, slot) != payload_key(third, slot)
    assert payload_key(one, slot) != payload_key(one, b"\1" * 32)
    assert commitment(payload_key(one, slot)) != commitment(payload_key(third, slot))


def test_equal_inputs_have_equal_macs_within_a_tenant():
    """A mac says that two inputs are equal, and only to who holds the tenant's pepper."""
    one, other = TenantKeys(bytes(64)), TenantKeys(bytes(32) + b"\1" * 32)

    assert one.mac(b"a", b"b") == one.mac(b"a", b"b")
    assert one.mac(b"a", b"b") != one.mac(b"a", b"c")
    assert one.mac(b"a", b"b") != one.mac(b"ab")
    assert one.mac(b"a", b"b") != other.mac(b"a", b"b")


# Wrapping keys


@pytest.fixture
def keys(tmp_path):
    """A folder for the wrapping keys."""
    return tmp_path / "keys" / "tenants"


def wanted_of(vault, tenant_no, offsets):
    """What a log would ask for: offsets with the commitments in their headers."""
    made = [payload_key(vault.tenant(tenant_no), vault.slot(offset)) for offset in offsets]
    return [(tenant_no, offset, commitment(key)) for offset, key in zip(offsets, made, strict=True)]


def commitments(vault, wanted):
    """The same, from what the vault says now."""
    return [
        (tenant_no, offset, commitment(vault.key(tenant_no, vault.slot(offset), committed)))
        for tenant_no, offset, committed in wanted
    ]


def rotated(vault, wanted):
    """Change the wrapping key of tenant 1, step by step; yields after each."""
    vault.adopt(1, vault.begin_rotation(1))
    yield "begun"
    vault.rewrap(wanted[:2])
    yield "half"
    vault.rewrap(wanted)
    yield "moved"
    vault.end_rotation(1)
    yield "ended"


def test_a_changed_wrapping_key_opens_what_it_opened(kv, keys):
    """Keys of payloads stay what they were, for every tenant, as often as it is changed."""
    vault = Vault(kv, MASTER, Keyring(keys))
    mine, theirs = wanted_of(vault, 1, [1, 2, 3]), wanted_of(vault, 2, [4, 5])
    for _ in range(3):
        list(rotated(vault, mine))
        later = wanted_of(vault, 1, [6])
        again = Vault(kv.crash(), MASTER, Keyring(keys))
        assert mine == commitments(again, mine)
        assert theirs == commitments(again, theirs)
        assert later == commitments(again, later)

    assert {1: 4, 2: 1} == vault.generations()
    assert ["1-4.key", "2-1.key"] == sorted(path.name for path in keys.iterdir())
    assert {0o600} == {path.stat().st_mode & 0o777 for path in keys.iterdir()}


@pytest.mark.parametrize("stop", ["begun", "half", "moved", "ended"])
def test_a_change_of_keys_cut_off_anywhere(kv, keys, stop):
    """Killed after any step, everything opens; the next change ends what was begun."""
    vault = Vault(kv, MASTER, Keyring(keys))
    mine = wanted_of(vault, 1, [1, 2, 3])
    for step in rotated(vault, mine):
        if step == stop:
            break
    found = kv.crash()
    again = Vault(found, MASTER, Keyring(keys))
    again.tidy()

    assert mine == commitments(again, mine)
    assert (stop == "ended") == (not again.tenant(1).former)
    if stop != "ended":
        assert again.begin_rotation(1) is None
        again.rewrap(mine)
        again.end_rotation(1)
    assert mine == commitments(again, mine)
    assert ["1-2.key"] == [path.name for path in keys.iterdir()]


def test_a_key_that_was_to_be_destroyed_is_destroyed_at_the_next_start(kv, keys):
    """Killed between the last row and the file: tidying ends it."""
    vault = Vault(kv, MASTER, Keyring(keys))
    mine = wanted_of(vault, 1, [1])
    former = (keys / "1-1.key").read_bytes()
    list(rotated(vault, mine))
    (keys / "1-1.key").write_bytes(former)
    Vault(kv.crash(), MASTER, Keyring(keys)).tidy()

    assert ["1-2.key"] == [path.name for path in keys.iterdir()]


def test_an_older_copy_opens_with_nothing_that_is_left(kv, keys):
    """Its tenant's row needs the old key; its slots alone give other keys than those written."""
    vault = Vault(kv, MASTER, Keyring(keys))
    mine, theirs = wanted_of(vault, 1, [1, 2]), wanted_of(vault, 2, [3])
    older = kv.crash()
    vault.destroy([1])
    list(rotated(vault, mine))
    copy = Vault(older, MASTER, Keyring(keys))

    with pytest.raises(CorruptStore, match="tenant 1 does not open: its wrapping key of gen"):
        copy.tenant(1)
    assert commitment(payload_key(vault.tenant(1), copy.slot(1))) != mine[0][2]
    assert theirs == commitments(copy, theirs)
    assert vault.slot(1) is None
    assert mine[1:] == commitments(vault, mine[1:])


def test_a_key_destroyed_meanwhile_is_not_written_back(kv, keys):
    """What is gone from the slots has no row after a change of keys either."""
    vault = Vault(kv, MASTER, Keyring(keys))
    mine = wanted_of(vault, 1, [1, 2])
    vault.adopt(1, vault.begin_rotation(1))
    vault.destroy([2])
    vault.rewrap(mine)
    vault.end_rotation(1)

    assert [True, False] == [vault.slot(offset) is not None for offset in (1, 2)]


def test_a_tenant_under_the_master_key_gets_one_of_its_own(kv, keys):
    """A vault from before there were wrapping keys: its tenants have one after a start."""
    first = Vault(kv, MASTER)
    mine = wanted_of(first, 1, [1])
    assert {1: 0} == first.generations()
    vault = Vault(kv, MASTER, Keyring(keys))
    vault.tidy()

    assert {1: 1} == vault.generations()
    assert mine == commitments(Vault(kv.crash(), MASTER, Keyring(keys)), mine)
    with pytest.raises(CorruptStore):
        Vault(kv, MASTER).tenant(1)


def test_slots_after_a_head_can_be_laid_anew(kv, keys):
    """A vault that is younger than its log has given them out: they are others afterwards."""
    vault = Vault(kv, MASTER, Keyring(keys))
    before = vault.slots([4, 5, 6])
    vault.cut(4)
    vault.lay_ahead(4)
    after = Vault(kv.crash(), MASTER, Keyring(keys)).slots([4, 5, 6])

    assert before[0] == after[0]
    assert not set(before[1:]) & set(after[1:])


def test_a_copy_of_the_keys_follows_them(tmp_path, kv):
    """What is new comes, what was destroyed goes; another's keys are not written over."""
    home, copy = tmp_path / "keys", tmp_path / "copy"
    vault = Vault(kv, MASTER, Keyring(home / "tenants"))
    vault.tenant(1)
    (home / "master.key").write_bytes(MASTER)
    mirror(home, copy)
    had = has_key(copy, 1, 1)
    list(rotated(vault, []))
    mirror(home, copy)

    assert had
    assert (False, True) == (has_key(copy, 1, 1), has_key(copy, 1, 2))
    assert MASTER == (copy / "master.key").read_bytes()
    (home / "master.key").write_bytes(bytes(32))
    with pytest.raises(StoreError, match="another data directory"):
        mirror(home, copy)
