"""Packs of the last minute: whose they are, how long they last, and what the secret vouches for."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.packs import Kept, Packs
from schemas import limits
from schemas.caller import Caller
from schemas.errors import IdempotencyConflict, PackExpired

ALICE = Caller(actor="user:alice", tenant="acme")
BOB = Caller(actor="user:bob", tenant="acme")
OTHER = Caller(actor="user:alice", tenant="other")
SECRET = bytes(32)


def kept(packs, pack_id="pack_1", raw=b"{}", asked=b"a"):
    return Kept(
        pack_id=pack_id,
        raw=raw,
        evidence=b"\x90",
        plan={},
        is_narrative=False,
        items=(),
        scopes=("org:acme",),
        warnings=(),
        digest="",
        asked=asked,
        total_ms=0.0,
        expires_us=packs.expiry_us(),
    )


@pytest.fixture
def clock(rig):
    return rig.HandClock()


@pytest.fixture
def packs(clock):
    return Packs(SECRET, clock)


def test_a_pack_lasts_a_minute_and_no_longer(packs, clock):
    """Sixty seconds from when it was made; being used does not extend it (001 §18.2.20)."""
    packs.keep(ALICE, kept(packs))
    clock.step(limits.PACK_S - 1)
    assert "pack_1" == packs.find(ALICE, "pack_1").pack_id
    clock.step(1)

    with pytest.raises(PackExpired):
        packs.find(ALICE, "pack_1")


@pytest.mark.parametrize("stranger", [BOB, OTHER])
def test_a_pack_is_its_actors(packs, stranger):
    """What was put together for one caller's eyes is found by nobody else."""
    packs.keep(ALICE, kept(packs), key="k")

    with pytest.raises(PackExpired):
        packs.find(stranger, "pack_1")
    assert packs.replayed(stranger, "k", b"a") is None


def test_a_key_stands_for_one_request(packs, clock):
    """The same request is the same pack, another one a conflict, and after a minute it is free."""
    packs.keep(ALICE, kept(packs), key="k")

    assert "pack_1" == packs.replayed(ALICE, "k", b"a").pack_id
    with pytest.raises(IdempotencyConflict):
        packs.replayed(ALICE, "k", b"b")
    clock.step(limits.PACK_S)
    assert packs.replayed(ALICE, "k", b"b") is None


def test_memory_is_bounded(packs):
    """The oldest packs go before their time rather than memory."""
    large = bytes(limits.PACKS_BYTES_MAX // 4)
    for number in range(6):
        packs.keep(ALICE, kept(packs, f"pack_{number}", large))

    assert packs._bytes <= limits.PACKS_BYTES_MAX
    assert "pack_5" == packs.find(ALICE, "pack_5").pack_id
    with pytest.raises(PackExpired):
        packs.find(ALICE, "pack_0")


def test_what_is_forgotten_is_in_no_pack(packs):
    """Packs can be let go of at once, whatever is left of their minute."""
    packs.keep(ALICE, kept(packs), key="k")
    packs.keep(OTHER, kept(packs))
    packs.drop(lambda tenant, _: tenant == "acme")

    with pytest.raises(PackExpired):
        packs.find(ALICE, "pack_1")
    assert packs.replayed(ALICE, "k", b"a") is None
    assert packs.find(OTHER, "pack_1").pack_id


def test_words_of_a_fence_follow_from_the_secret(packs, clock):
    """The same parts give the same word here, another one elsewhere, and none can be shifted."""
    assert packs.nonce(b"a", b"b") == packs.nonce(b"a", b"b")
    assert packs.nonce(b"a", b"b") != packs.nonce(b"ab", b"")
    assert packs.nonce(b"a") != Packs(b"x" * 32, clock).nonce(b"a")
    assert packs.new_id(5, b"a") == packs.new_id(5, b"a") != packs.new_id(5, b"b")


@given(st.binary(), st.lists(st.binary(), max_size=3))
def test_a_mac_is_an_hmac_of_its_framed_parts(secret, parts):
    """However the key is worked in, words and ids of before stay what they were."""
    own = hmac.digest(secret, b"strata packs", "sha256")
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    assert Packs(secret, None).mac("id", *parts) == hmac.digest(own, b"id\0" + framed, "sha256")
