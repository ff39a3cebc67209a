"""Are keys there before they are needed, and gone for good when they are destroyed?"""

import threading
from contextlib import suppress

import pytest

from engine.state.kv import CorruptStore
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
