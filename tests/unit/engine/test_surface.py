"""What does a surface keep under its keys, and who decides when two write at once?"""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from engine.forget import ForgetCall, forget
from engine.read import get_event
from engine.rollback import roll_back
from engine.scopes import register_scope
from engine.surface import (
    Address,
    Change,
    Outcome,
    Shelf,
    Write,
    change_documents,
    list_documents,
    read_document,
)
from schemas.caller import Caller
from schemas.entry import Member
from schemas.errors import Conflict, NotAMember, PolicyDenied
from schemas.forget import ForgetRequest, RollbackRequest
from schemas.scopes import RegisterRequest

SCOPE = "user:ada"
EVE = Caller(actor="user:eve", tenant="rival")
BOB = Caller(actor="user:bob", tenant="acme")
READER = Caller(actor="user:alice", tenant="acme", capabilities=("scope.read.local",))


def at(key="one", **more):
    return Address(surface="tests", kind="note", key=key, scope=SCOPE, **more)


def put(value, key="one", **more):
    words = more.pop("words", "a note")
    write = Write(kind="note", key=key, scope=SCOPE, words=words, value=value, **more)
    return Change(surface="tests", scopes=(SCOPE,), decide=lambda held: Outcome(writes=[write]))


async def test_what_was_written_is_read(rig):
    """A document is read as it was written last, with who wrote it, where and how often."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put({"a": 1}))
        changed = await change_documents(site.engine, rig.ALICE, put({"a": 2}))
        row = read_document(site.engine, rig.ALICE, at())

    assert [row] == changed.documents
    assert ({"a": 2}, 2, "current", SCOPE, "user:alice") == (
        row.value,
        row.version,
        row.state,
        row.scope,
        row.by,
    )


async def test_earlier_versions_are_read_as_of_a_time(rig):
    """Every version stands from when it was written until the next; before the first is none."""
    async with rig.Site() as site:
        await site.open()
        rows = []
        for number in range(70):
            changed = await change_documents(site.engine, rig.ALICE, put(number))
            rows += changed.documents
        seen = [read_document(site.engine, rig.ALICE, at(as_of=row.at)) for row in rows]
        before = rows[0].at - timedelta(microseconds=1)
        first = read_document(site.engine, rig.ALICE, at(as_of=before))

    assert rows == seen
    assert first is None


async def test_one_of_two_deciders_wins(rig):
    """Decisions made at once see each other: the second reads what the first wrote."""

    def decide(held):
        if held.get("note", "one") is not None:
            raise Conflict("It is there already.")
        return Outcome(writes=[Write(kind="note", key="one", scope=SCOPE, words="x", value=1)])

    change = Change(surface="tests", scopes=(SCOPE,), decide=decide)
    async with rig.Site() as site:
        await site.open()
        tries = [change_documents(site.engine, rig.ALICE, change) for _ in range(8)]
        done = await asyncio.gather(*tries, return_exceptions=True)
        row = read_document(site.engine, rig.ALICE, at())

    assert 1 == row.version
    assert 7 == sum(isinstance(one, Conflict) for one in done)


async def test_a_refusal_writes_nothing(rig):
    """What a decision refuses leaves no entry, and no decision writes half of itself."""
    huge = 2**70

    def decide(held):
        good = Write(kind="note", key="one", scope=SCOPE, words="x", value=1)
        bad = Write(kind="note", key="two", scope=SCOPE, words="x", value={"n": huge})
        return Outcome(writes=[good, bad])

    async with rig.Site() as site:
        await site.open()
        head = site.engine.log.head()
        change = Change(surface="tests", scopes=(SCOPE,), decide=decide)
        with pytest.raises(Exception, match="64 bits"):
            await change_documents(site.engine, rig.ALICE, change)
        nothing = Change(surface="tests", scopes=(SCOPE,), decide=lambda held: Outcome(answer=7))
        changed = await change_documents(site.engine, rig.ALICE, nothing)

        assert head == site.engine.log.head()
    assert (7, []) == (changed.answer, changed.documents)


async def test_a_document_ends_in_an_event(rig):
    """Its words are an experience in its scope; those of the version before are out of recall."""
    async with rig.Site() as site:
        await site.open()
        old = await change_documents(site.engine, rig.ALICE, put(1, words="red ink"))
        new = await change_documents(site.engine, rig.ALICE, put(2, words="blue ink"))
        tenant_no = site.engine.tenant_no(rig.ALICE)
        event = get_event(site.engine, rig.ALICE, new.documents[0].event_id)
        withdrawn = [
            site.engine.inline.get(tenant_no, "cancelled", row.offset.to_bytes(8, "big"))
            for row in (*old.documents, *new.documents)
        ]

    assert ("blue ink", SCOPE) == (event.content.text, event.scope)
    assert [False, True] == [row is None for row in withdrawn]


async def test_a_document_without_words_is_no_memory(rig):
    """What only leads to another document is kept and read, and left out of recall."""
    async with rig.Site() as site:
        await site.open()
        changed = await change_documents(site.engine, rig.ALICE, put(1, words=""))
        tenant_no = site.engine.tenant_no(rig.ALICE)
        offset = changed.documents[0].offset.to_bytes(8, "big")
        withdrawn = site.engine.inline.get(tenant_no, "cancelled", offset)
        row = read_document(site.engine, rig.ALICE, at())

    assert withdrawn is not None
    assert 1 == row.value


async def test_another_tenant_sees_nothing(rig):
    """I6: the same key is another document there."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1))
        await change_documents(site.engine, EVE, put(2))
        mine = list_documents(site.engine, rig.ALICE, Shelf(surface="tests", kind="note"))
        theirs = read_document(site.engine, EVE, at())

    assert [1] == [row.value for row in mine]
    assert (2, 1) == (theirs.value, theirs.version)


async def test_what_moves_is_asked_for_where_it_was(rig):
    """A key of a scope that is closed to the caller cannot be taken into another scope."""
    bob = Caller(actor="user:bob", tenant="acme")
    elsewhere = Write(kind="note", key="one", scope="user:bob", words="mine now", value=2)
    move = Change(
        surface="tests", scopes=("user:bob",), decide=lambda held: Outcome(writes=[elsewhere])
    )
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1))
        asked = RegisterRequest(path=SCOPE, members=[Member(actor="user:alice", role="owner")])
        await register_scope(site.engine, rig.ALICE, asked)
        with pytest.raises(NotAMember):
            await change_documents(site.engine, bob, move)
        row = read_document(site.engine, rig.ALICE, at())

    assert (1, SCOPE) == (row.value, row.scope)


async def test_policy_is_asked(rig):
    """Who may only read writes nothing."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1))
        with pytest.raises(PolicyDenied):
            await change_documents(site.engine, READER, put(2))
        row = read_document(site.engine, READER, at())

    assert 1 == row.value


def labelled(site, rig, *labels):
    shelf = Shelf(surface="tests", kind="note", labels=labels)
    return sorted(row.value for row in list_documents(site.engine, rig.ALICE, shelf))


async def test_labels_lead_to_what_stands(rig):
    """A document is found by the labels of its last version, once, and beside others of a label."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1, labels=("red", "blue")))
        await change_documents(site.engine, rig.ALICE, put(2, labels=("blue", "green")))
        await change_documents(site.engine, rig.ALICE, put(3, key="two", labels=("blue",)))
        found = [labelled(site, rig, *names) for names in (("red",), ("green",), ("blue", "green"))]
        held = []

        def look(there):
            held.extend(row.value for row in there.labelled("note", "blue"))
            return Outcome()

        change = Change(surface="tests", scopes=(SCOPE,), decide=look)
        await change_documents(site.engine, rig.ALICE, change)

    assert [[], [2], [2, 3]] == found
    assert [2, 3] == sorted(held)


async def test_what_is_erased_leaves_the_labels_of_what_is_left(rig):
    """The version before stands again, and is found by its own labels alone."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1, labels=("red", "blue")))
        changed = await change_documents(site.engine, rig.ALICE, put(2, labels=("blue", "green")))
        await site.settle()
        chosen = {"memory_ids": [row.event_id for row in changed.documents]}
        asked = {"scope": SCOPE, "selector": chosen, "cascade": "redact_events"}
        body = msgspec.convert(asked, ForgetRequest)
        await forget(site.engine, rig.ALICE, ForgetCall(body=body, wait_s=0))
        found = [labelled(site, rig, name) for name in ("red", "blue", "green")]

    assert [[1], [1], []] == found


async def test_a_rollback_leaves_documents(rig):
    """A rollback takes events out of derivation; nothing is derived from a document."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1, labels=("red",)))
        await site.settle()
        taken = await roll_back(site.engine, rig.ALICE, RollbackRequest(caller="user:alice"))
        await site.settle()
        row = read_document(site.engine, rig.ALICE, at())
        found = labelled(site, rig, "red")

    assert (1, 1, [1]) == (taken.events, row.value, found)


async def test_a_label_leads_to_nothing_that_is_closed(rig):
    """Policy is asked about each scope, whatever led there."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put(1, labels=("red",)))
        asked = RegisterRequest(path=SCOPE, members=[Member(actor="user:alice", role="owner")])
        await register_scope(site.engine, rig.ALICE, asked)
        shelf = Shelf(surface="tests", kind="note", labels=("red",))
        found = [list_documents(site.engine, who, shelf) for who in (rig.ALICE, BOB, EVE)]

    assert [1, 0, 0] == [len(rows) for rows in found]


async def test_what_policy_said_is_forgotten_only_when_it_may_have_changed(rig):
    """A document in a scope that is there decides nothing; a registration and a policy may."""
    async with rig.Site() as site:
        await site.open()
        await change_documents(site.engine, rig.ALICE, put({"a": 1}))
        epochs = [site.engine.policies.epoch]
        await change_documents(site.engine, rig.ALICE, put({"a": 2}))
        epochs.append(site.engine.policies.epoch)
        request = RegisterRequest(path=SCOPE, members=[Member(actor="user:alice", role="owner")])
        await register_scope(site.engine, rig.ALICE, request)
        epochs.append(site.engine.policies.epoch)

        with pytest.raises(NotAMember):
            await change_documents(site.engine, BOB, put({"a": 3}))

    assert epochs[0] == epochs[1] < epochs[2]
