"""Do numbers stand for names, for good, and do names stay out of keys?"""

import threading
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from msgspec import structs

from engine.capture import capture, capture_bulk
from engine.rows import BulkCaptureRequest, CaptureRequest
from engine.state.memory import MemoryKV
from engine.state.names import ACTOR, FAMILIES, SCOPE, TENANT, Names
from engine.watch import CancelRequest, cancel
from schemas.caller import Caller, Origin
from schemas.envelope import Actor, BulkItem, BulkRequest, Context, Envelope, Message

SECRET = bytes(32)


def write(kv, names):
    """What a commit does with the names it gave."""
    batch = kv.batch()
    names.write_fresh(batch)
    kv.write(batch)
    kv.sync()


@pytest.fixture
def kv():
    return MemoryKV(FAMILIES)


def test_numbers_are_counted_by_kind_and_tenant(kv):
    """From 1, for each kind within each tenant; the same name has the same number."""
    names = Names(kv, SECRET)

    assert [1, 2, 1] == [names.number(TENANT, 0, name) for name in ("acme", "globex", "acme")]
    assert [1, 2] == [names.number(SCOPE, 1, scope) for scope in ("a", "b")]
    assert [1, 1] == [names.number(SCOPE, 2, "b"), names.number(ACTOR, 1, "b")]


def test_numbers_are_stable_across_restarts(kv):
    """A name keeps its number, and the next name gets the next one."""
    names = Names(kv, SECRET)
    for scope in ("a", "b", "c"):
        names.number(SCOPE, 1, scope)
    write(kv, names)
    names = Names(kv.crash(), SECRET)

    assert [3, 1, 2, 4] == [names.number(SCOPE, 1, scope) for scope in ("c", "a", "b", "new")]
    assert ["a", "b", "c"] == [names.name(SCOPE, 1, number) for number in (1, 2, 3)]
    assert [(1, "a"), (2, "b"), (3, "c")] == names.all(SCOPE, 1)


def test_a_number_nobody_wrote_is_given_again(kv):
    """Names ride in the batch that first uses them: lost with it, the number is free."""
    Names(kv, SECRET).number(SCOPE, 1, "lost")
    names = Names(kv.crash(), SECRET)

    assert None is names.known(SCOPE, 1, "lost")
    assert 1 == names.number(SCOPE, 1, "another")


def test_names_are_written_once(kv):
    """A batch takes the names given since the last one, and no others."""
    names = Names(kv, SECRET)
    names.number(SCOPE, 1, "a")
    write(kv, names)
    batch = kv.batch()
    names.write_fresh(batch)

    assert 0 == len(batch)


def test_no_name_behind_zero_or_an_erased_number(kv):
    """Zero stands for no scope; a name that is gone reads as empty, not as an error."""
    names = Names(kv, SECRET)

    assert ["", ""] == [names.name(SCOPE, 1, 0), names.name(SCOPE, 1, 77)]


def test_looking_gives_no_number(kv):
    """`known` only looks: what the log has never seen stays unseen."""
    names = Names(kv, SECRET)

    assert [None, None] == [names.known(TENANT, 0, "stranger") for _ in range(2)]
    assert 1 == names.number(TENANT, 0, "acme")


class MeetingKV(MemoryKV):
    """A store where two who look for the last number given are made to look at the same time."""

    def __init__(self, families):
        super().__init__(families)
        self.meeting = threading.Barrier(2)

    def scan(self, *where, **options):
        """Look, and wait for the other to have looked; if nobody comes, go on alone."""
        found = list(super().scan(*where, **options))
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait(0.2)
        return iter(found)


def test_two_threads_with_a_new_name_each():
    """Two tenants never get one number: it would make them one tenant (I6)."""
    names = Names(MeetingKV(FAMILIES), SECRET)
    given = {}
    threads = [
        threading.Thread(target=lambda n=name: given.update({n: names.number(TENANT, 0, n)}))
        for name in ("acme", "globex")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert {1, 2} == set(given.values())


# No name in any key

CANARY = "Canary"
CALLER = Caller(
    actor=f"user:{CANARY}actor",
    tenant=f"{CANARY}tenant",
    origin=Origin(
        request_id=f"{CANARY}request",
        method="POST",
        path=f"/v1/{CANARY}path",
        client_ip=f"{CANARY}address",
        user_agent=f"{CANARY}agent",
        body=f"{CANARY}body".encode(),
        headers=[(b"x-name", f"{CANARY}headers".encode())],
    ),
)


def personal(key):
    """An experience with something personal wherever there is room for it."""
    return Envelope(
        scope=f"org:{CANARY}org/user:{CANARY}user",
        observed_actor=Actor(id=f"user:{CANARY}observed", session=f"{CANARY}session"),
        subject=Actor(id=f"user:{CANARY}subject"),
        modality=f"{CANARY}modality",
        content=Message(role="user", text=f"{CANARY}text"),
        context=Context(
            observed_at=datetime(2026, 5, 13, tzinfo=UTC),
            labels=[f"{CANARY}label"],
            intent=f"{CANARY}intent",
            location=f"{CANARY}place",
        ),
        idempotency_key=key,
        source={f"{CANARY}field": f"{CANARY}value"},
    )


async def test_no_name_is_in_any_key(rig):
    """MANIFEST holds keys in clear: no key of any family of either store says anything personal."""
    poison = rig.projection(rig.ledger(refuses=lambda text: "poison" in text))
    async with rig.Site(poison) as site:
        engine = await site.open()
        made = personal(f"{CANARY}key")
        receipt = await capture(engine, CALLER, CaptureRequest(envelope=made))
        fields = structs.asdict(personal(f"{CANARY}bulk"))
        bulk = BulkRequest(items=[BulkItem(**fields)])
        await capture_bulk(engine, CALLER, BulkCaptureRequest(bulk=bulk))
        await rig.post(engine, f"poison {CANARY}", caller=CALLER)
        await site.settle()
        note = CancelRequest(audit_note=f"{CANARY}note")
        await cancel(engine, CALLER, receipt.event_id, note)
        await site.settle()
        engine.keeper.prune()
        keys = [
            (family, key)
            for kv in (site.kv, site.vault_kv)
            for family in kv.families()
            for key, _ in kv.scan(family)
        ]
        values = b"".join(
            value for name in ("names", "lifecycle") for _, value in site.kv.scan(name)
        )

    needle = CANARY.lower().encode()
    assert needle in values.lower(), "the scan can see a canary where one is"
    assert {"names", "log", "payload", "audit", "lifecycle", "stages", "slots"} <= {
        family for family, _ in keys
    }
    assert [] == [(family, key) for family, key in keys if needle in key.lower()]
    assert [] == [family for family, _ in keys if needle.decode() in family.lower()]
