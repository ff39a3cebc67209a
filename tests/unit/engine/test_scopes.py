"""Whose is a scope, who may say so, and does the log remember it?"""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from engine.pruning import Pruning, prune_scopes
from engine.read import EventsRequest, list_events
from engine.rebuild import digests
from engine.rules import Target, set_policy
from engine.scopes import (
    ScopesRequest,
    drop_scope,
    get_scope,
    list_scopes,
    register_scope,
    set_members,
)
from engine.settings import Settings
from engine.state.views import packed
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Member, ScopePolicies
from schemas.errors import (
    IdempotencyConflict,
    InvalidBody,
    InvalidCursor,
    InvalidParameter,
    NotAMember,
    NotFound,
    PolicyDenied,
    ScopeExists,
    ScopeHasRecords,
    UnregisteredScopeType,
)
from schemas.policy import PolicyDocument
from schemas.scopes import PruneRequest, RegisterRequest
from schemas.token import Grant

ALICE = Caller(actor="user:alice", tenant="acme")
BOB = Caller(actor="user:bob", tenant="acme")
EVE = Caller(actor="user:eve", tenant="rival")
WS = "ws:launch"


def owner(actor):
    return Member(actor=actor, role="owner")


def writer(actor):
    return Member(actor=actor, role="writer")


def reader(actor):
    return Member(actor=actor, role="reader")


def site_of(rig, preset):
    """An engine under another preset than the one for one's own machine."""
    site = rig.Site()
    site.settings = Settings(preset=preset)
    return site


async def register(engine, caller=ALICE, path=WS, **more):
    """Register a scope; its record."""
    request = RegisterRequest(path=path, **more)
    return (await register_scope(engine, caller, request)).record


def paths_of(engine, caller=ALICE, **more):
    """Every page of a listing, as paths."""
    found, page = [], list_scopes(engine, caller, ScopesRequest(**more))
    found += [item.path for item in page.items]
    while page.has_more:
        page = list_scopes(engine, caller, ScopesRequest(cursor=page.next_cursor, **more))
        found += [item.path for item in page.items]
    return found


def audited(engine):
    """How many rows the audit has."""
    return sum(1 for _ in engine.kv.scan("audit"))


# ── registering ──────────────────────────────────────────────────────────────────────────────


async def test_a_registration_is_a_directive_with_an_audit_row(rig):
    """The canonical record comes back, one entry is in the log, and one row in the audit."""
    async with rig.Site() as site:
        engine = await site.open()
        policies = ScopePolicies(consolidation="merge", children={"auto_register": True})
        members = [owner("user:alice"), reader("user:bob")]
        record = await register(engine, members=members, policies=policies)

        assert (WS, "user:alice", members, 2) == (
            record.path,
            record.owner,
            record.members,
            record.member_count,
        )
        assert policies == record.policies
        assert (True, False) == (record.registered, record.auto_provisioned)
        assert record.created_at == record.updated_at
        assert record == get_scope(engine, ALICE, WS)
        assert 1 == engine.log.head()
        assert 1 == audited(engine)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, [owner("user:alice")]),
        ({"members": []}, [owner("user:alice")]),
        ({"members": [reader("user:bob")]}, [owner("user:alice"), reader("user:bob")]),
        ({"members": [writer("user:alice")]}, [owner("user:alice")]),
        ({"members": [owner("user:bob")]}, [owner("user:bob")]),
        ({"owner": "user:ines"}, [owner("user:ines")]),
        (
            {"owner": "user:ines", "members": [writer("user:ines"), reader("user:bob")]},
            [owner("user:ines"), reader("user:bob")],
        ),
    ],
)
async def test_a_scope_always_has_an_owner(rig, given, expected):
    """The one named, or else the caller (001 §8.8.1)."""
    async with rig.Site() as site:
        record = await register(await site.open(), **given)

        assert expected == record.members
        assert expected[0].actor == record.owner


async def test_a_path_is_registered_once(rig):
    """The second comer is refused, also when both come at once."""
    async with rig.Site() as site:
        engine = await site.open()
        answers = await asyncio.gather(
            register(engine, ALICE, members=[owner("user:alice"), owner("user:bob")]),
            register(engine, BOB),
            return_exceptions=True,
        )
        with pytest.raises(ScopeExists):
            await register(engine, BOB)

        assert WS == answers[0].path
        assert isinstance(answers[1], ScopeExists)
        assert 1 == engine.log.head()


@pytest.mark.parametrize(
    "given", [{"members": [reader("user:bob"), owner("user:bob")]}], ids=["one actor, two roles"]
)
async def test_a_member_is_named_once(rig, given):
    """Two roles for one actor are a contradiction, and the place is named."""
    async with rig.Site() as site:
        with pytest.raises(InvalidParameter) as caught:
            await register(await site.open(), **given)

        assert "members[1].actor" == caught.value.details["field"]


async def test_policies_no_reader_could_take(rig):
    """Free-form JSON is bounded before it reaches the log."""
    async with rig.Site() as site:
        with pytest.raises(InvalidBody) as caught:
            await register(await site.open(), policies=ScopePolicies(children={"n": 2**70}))

        assert "policies.children" == caught.value.details["field"]


async def test_the_first_write_registers_and_its_owner_may_upgrade(rig):
    """Auto-provisioned with the writer as owner; registering keeps the owner and the beginning."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "hello", caller=BOB, scope=WS)
        before = get_scope(engine, ALICE, WS)
        after = await register(engine, BOB)

        assert (True, [owner("user:bob")]) == (before.auto_provisioned, before.members)
        assert (False, [owner("user:bob")]) == (after.auto_provisioned, after.members)
        assert (before.created_at, before.created_by) == (after.created_at, after.created_by)


@pytest.mark.parametrize("call", ["register", "members", "delete"])
async def test_what_another_provisioned_is_not_taken(rig, call):
    """Its owner, an owner above it, or an administrator of the tenant; nobody else."""
    token = ("policy.administer.scope", "scope.create.user", "forget.gdpr")
    mallory = Caller(actor="user:mallory", tenant="acme", capabilities=token)
    path = "org:acme/user:bob"
    acts = {
        "register": lambda engine, caller: register(engine, caller, path),
        "members": lambda engine, caller: set_members(engine, caller, path, [owner("user:x")]),
        "delete": lambda engine, caller: drop_scope(engine, caller, path, "keep"),
    }
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "mine", caller=BOB, scope=path)
        with pytest.raises(PolicyDenied) as caught:
            await acts[call](engine, mallory)
        await register(engine, ALICE, "org:acme", members=[owner("user:mallory")])
        await acts[call](engine, mallory)

        assert "policy.administer.tenant" == caught.value.details["capability"]


@pytest.mark.parametrize(
    "path, denied",
    [
        ("org:x", None),
        ("org:x/ws:y", None),
        ("org:x/dept:y", "scope.create.dept"),
        ("global:x", "scope.create.global"),
        ("global:x/ws:y", "scope.create.global"),
        ("system:x", "scope.create.system"),
    ],
)
async def test_each_type_has_a_capability(rig, path, denied):
    """The last segment's type decides, and `global` wherever it stands (001 §5.2)."""
    async with site_of(rig, "cloud_shared_saas") as site:
        engine = await site.open()
        if denied is None:
            await register(engine, path=path)
            return
        with pytest.raises(PolicyDenied) as caught:
            await register(engine, path=path)

        assert denied == caught.value.details["capability"]


async def test_a_type_of_ones_own(rig):
    """Refused as such where custom types are off, welcome where they are on (001 §18.2.19)."""
    async with site_of(rig, "cloud_shared_saas") as site:
        with pytest.raises(UnregisteredScopeType) as caught:
            await register(await site.open(), path="org:x/squad:y")
    async with site_of(rig, "cloud_private") as site:
        record = await register(await site.open(), path="org:x/squad:y")

    async with site_of(rig, "cloud_private") as site:
        engine = await site.open()
        engine.policies.preset = msgspec.structs.replace(
            engine.policies.preset, scope_types=frozenset({"deal"})
        )
        await register(engine, path="org:x/deal:y")
        with pytest.raises(UnregisteredScopeType):
            await register(engine, path="org:x/squad:y")

    assert "deployment" == caught.value.details["denied_by_tier"]
    assert "squad" in caught.value.message
    assert "org:x/squad:y" == record.path


async def test_a_key_makes_a_retry_harmless(rig):
    """Same key, same body: the first answer again, also after the scope has changed."""
    async with rig.Site() as site:
        engine = await site.open()
        request = RegisterRequest(path=WS, owner="user:alice", idempotency_key="k1")
        first = await register_scope(engine, ALICE, request)
        at_once = await register_scope(engine, ALICE, request)
        await set_members(engine, ALICE, WS, [owner("user:alice"), reader("user:bob")])
        later = await register_scope(engine, ALICE, request)

        assert (False, True, True) == (first.replayed, at_once.replayed, later.replayed)
        assert first.record == at_once.record == later.record
        assert 2 == engine.log.head()


async def test_a_key_with_another_body(rig):
    """A conflict; another actor's key is another key (001 §18.2.9)."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine, idempotency_key="k1")
        with pytest.raises(IdempotencyConflict):
            await register(engine, path="ws:other", idempotency_key="k1")
        record = await register(engine, BOB, "ws:other", idempotency_key="k1")

        assert "user:bob" == record.owner


async def test_two_retries_in_one_batch(rig):
    """The key is seen within the batch that writes it."""
    async with rig.Site() as site:
        engine = await site.open()
        request = RegisterRequest(path=WS, idempotency_key="k1")
        answers = await asyncio.gather(*(register_scope(engine, ALICE, request) for _ in range(3)))

        assert [False, True, True] == [answer.replayed for answer in answers]
        assert 1 == len({msgspec.json.encode(answer.record) for answer in answers})
        assert 1 == engine.log.head()


# ── membership ───────────────────────────────────────────────────────────────────────────────


async def test_a_registered_scope_is_its_members(rig):
    """A stranger does nothing, a reader reads, a writer writes, an owner administers."""
    async with rig.Site() as site:
        engine = await site.open()
        members = [owner("user:alice"), writer("user:w"), reader("user:r")]
        await register(engine, members=members)
        who = {name: Caller(actor=f"user:{name}", tenant="acme") for name in ("w", "r", "x")}
        for name in ("x", "r"):
            with pytest.raises(NotAMember) as caught:
                await rig.post(engine, "no", caller=who[name], scope=WS)
            assert "writer" == caught.value.details["role_needed"]
        with pytest.raises(NotAMember):
            get_scope(engine, who["x"], WS)
        with pytest.raises(NotAMember):
            await set_members(engine, who["w"], WS, [owner("user:w")])
        await rig.post(engine, "yes", caller=who["w"], scope=WS)

        assert WS == get_scope(engine, who["r"], WS).path
        assert [WS] == paths_of(engine, who["r"])
        assert [] == paths_of(engine, who["x"])


async def test_roles_come_down_from_ancestors(rig):
    """An owner of the organisation is one of everything registered below it."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine, ALICE, "org:acme")
        await register(engine, BOB, "org:acme/ws:deep")
        receipt = await set_members(engine, ALICE, "org:acme/ws:deep", [owner("user:bob")])
        with pytest.raises(NotAMember):
            await set_members(engine, BOB, "org:acme", [owner("user:bob")])

        assert ([], [], []) == (receipt.added, receipt.removed, receipt.changed)


async def test_members_are_replaced_as_one(rig):
    """The list is the list, and the receipt says what differs; the same list writes nothing."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine, members=[owner("user:alice"), writer("user:a"), reader("user:b")])
        wanted = [owner("user:alice"), reader("user:a"), writer("user:c")]
        receipt = await set_members(engine, ALICE, WS, wanted)
        head = engine.log.head()
        again = await set_members(engine, ALICE, WS, wanted)

        assert [writer("user:c")] == receipt.added
        assert [reader("user:b")] == receipt.removed
        assert [("user:a", "reader", "writer")] == [
            (change.actor, change.role, change.role_before) for change in receipt.changed
        ]
        assert wanted == receipt.members == get_scope(engine, ALICE, WS).members
        assert ([], [], []) == (again.added, again.removed, again.changed)
        assert head == engine.log.head()


@pytest.mark.parametrize("members", [[], [writer("user:alice")]], ids=["nobody", "no owner"])
async def test_an_owner_must_remain(rig, members):
    """A scope nobody may administer could never be mended."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        with pytest.raises(InvalidParameter) as caught:
            await set_members(engine, ALICE, WS, members)

        assert "members" == caught.value.details["field"]


async def test_members_of_what_is_not_registered(rig):
    """There is nothing to edit."""
    async with rig.Site() as site:
        with pytest.raises(NotFound):
            await set_members(await site.open(), ALICE, WS, [owner("user:alice")])


async def test_editing_members_is_an_owners_act(rig):
    """An auto-provisioned scope whose members were edited is nobody's leftover any more."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "hello", scope=WS)
        await set_members(engine, ALICE, WS, [owner("user:alice")])

        assert not get_scope(engine, ALICE, WS).auto_provisioned


# ── reading ──────────────────────────────────────────────────────────────────────────────────


async def test_a_scope_never_written_to(rig):
    """Not found, with and without a tenant that has written anything (001 §8.8.2)."""
    async with rig.Site() as site:
        engine = await site.open()
        with pytest.raises(NotFound):
            get_scope(engine, ALICE, WS)
        await register(engine, path="ws:other")
        with pytest.raises(NotFound):
            get_scope(engine, ALICE, WS)


async def test_another_tenants_scopes_do_not_exist(rig):
    """Neither by path nor in a listing; and the same path is another scope."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        await rig.post(engine, "hello", scope="org:acme")
        with pytest.raises(NotFound):
            get_scope(engine, EVE, WS)
        with pytest.raises(NotFound):
            await drop_scope(engine, EVE, WS, "keep")
        listed = paths_of(engine, EVE)
        record = await register(engine, EVE)

        assert [] == listed
        assert "user:eve" == record.owner
        assert "user:alice" == get_scope(engine, ALICE, WS).owner


async def test_a_listing_in_pages(rig):
    """Every scope once, in the order in which they came to be, whatever the page's size."""
    async with rig.Site() as site:
        engine = await site.open()
        await rig.post(engine, "hello", scope="org:acme/user:alice")
        for number in range(5):
            await register(engine, path=f"org:acme/ws:n{number}")
        everything = ["org:acme/user:alice", *(f"org:acme/ws:n{number}" for number in range(5))]

        assert all(everything == paths_of(engine, limit=size) for size in (1, 2, 3, 5, 6, 50))
        assert everything[1:] == paths_of(engine, prefix="org:acme/ws:")
        assert everything[:1] == paths_of(engine, auto_provisioned=True)
        assert everything[1:] == paths_of(engine, auto_provisioned=False, limit=2)
        assert [] == paths_of(engine, prefix="org:nobody/")


async def test_a_listing_is_never_cut_silently(rig):
    """A call that has looked at enough answers short, and its cursor leads on."""
    async with rig.Site() as site:
        engine = await site.open()
        count = limits.PAGE_SCAN_MAX + 10
        await register(engine, path="ws:first")
        batch = engine.kv.batch()
        row = engine.policies.scope_row(1, "ws:first")
        pending = {
            (1, "scopes", number.to_bytes(4, "big")): msgspec.structs.replace(
                row, path=f"ws:n{number}"
            )
            for number in range(100, 100 + count)
        }
        engine.inline.commit(engine.inline.write(batch, packed(pending), engine.log.head()))
        engine.kv.write(batch)
        page = list_scopes(engine, ALICE, ScopesRequest(prefix=f"ws:n{99 + count}"))

        assert ([], True) == (page.items, page.has_more)
        assert [f"ws:n{99 + count}"] == paths_of(engine, prefix=f"ws:n{99 + count}")


async def test_a_cursor_is_of_its_question_and_tenant(rig):
    """Another filter's, or another tenant's, is refused."""
    async with rig.Site() as site:
        engine = await site.open()
        for number in range(3):
            await register(engine, path=f"ws:n{number}")
        cursor = list_scopes(engine, ALICE, ScopesRequest(limit=1)).next_cursor
        for caller, request in (
            (ALICE, ScopesRequest(cursor=cursor, prefix="ws:")),
            (EVE, ScopesRequest(cursor=cursor)),
        ):
            with pytest.raises(InvalidCursor):
                list_scopes(engine, caller, request)


async def test_a_listing_leaves_out_what_a_token_is_not_bound_to(rig):
    """Path-bound grants hold for listings as for reads (001 §4.2)."""
    async with rig.Site() as site:
        engine = await site.open()
        for path in ("org:acme/ws:a", "org:acme/ws:b", "org:rival/ws:a"):
            await register(engine, path=path)
        bound = msgspec.structs.replace(ALICE, scopes=(Grant.parse("scope.read.local:org:acme/*"),))
        with pytest.raises(PolicyDenied):
            get_scope(engine, bound, "org:rival/ws:a")

        assert ["org:acme/ws:a", "org:acme/ws:b"] == paths_of(engine, bound)


async def test_a_listing_leaves_out_what_a_scopes_policy_denies(rig):
    """A scope's own document may close it to reading."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine, path="ws:a")
        await register(engine, path="ws:b")
        closed = PolicyDocument(deny=["scope.read.*"])
        await set_policy(engine, ALICE, Target("scope", "ws:a"), closed)

        assert ["ws:b"] == paths_of(engine)


# ── dropping ─────────────────────────────────────────────────────────────────────────────────


async def test_records_are_in_the_way(rig):
    """Unless the caller says what becomes of them; the refusal counts them (001 §8.8.4)."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        for text in ("one", "two"):
            await rig.post(engine, text, scope=WS)
        with pytest.raises(ScopeHasRecords) as caught:
            await drop_scope(engine, ALICE, WS, None)
        await drop_scope(engine, ALICE, WS, "keep")

        assert 2 == caught.value.details["records"].events
        assert [] == paths_of(engine)
        assert 4 == engine.log.head()


async def test_kept_records_are_not_left_to_whoever_comes_next(rig):
    """What was its members' is nobody's: no stranger reads it, or gets it by writing there."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        await rig.post(engine, "among us", scope=WS)
        await drop_scope(engine, ALICE, WS, "keep")
        request = EventsRequest(scope=WS)
        for act in (
            lambda: get_scope(engine, BOB, WS),
            lambda: list_events(engine, BOB, request),
            lambda: list_events(engine, ALICE, request),
        ):
            with pytest.raises(NotAMember):
                act()
        with pytest.raises(NotAMember):
            await rig.post(engine, "let me in", scope=WS, caller=BOB)
        for act in (
            drop_scope(engine, ALICE, WS, "keep"),
            set_members(engine, ALICE, WS, [owner("user:alice")]),
        ):
            with pytest.raises(NotFound):
                await act


async def test_kept_records_are_reached_from_above(rig):
    """By the members of a scope over it (001 §8.8.4: detached)."""
    async with rig.Site() as site:
        engine = await site.open()
        above, below = "org:acme", "org:acme/ws:launch"
        await register(engine, BOB, path=above)
        await register(engine, BOB, path=below)
        await rig.post(engine, "among us", scope=below, caller=BOB)
        await drop_scope(engine, BOB, below, "keep")

        assert 1 == len(list_events(engine, BOB, EventsRequest(scope=below)).value.items)
        assert not get_scope(engine, BOB, below).registered
        assert [above] == paths_of(engine, BOB)


async def test_an_administrator_gives_a_detached_scope_members_again(rig):
    """Who administers the tenant may register it; its events are then those members'."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        await rig.post(engine, "among us", scope=WS)
        await drop_scope(engine, ALICE, WS, "keep")
        plain = msgspec.structs.replace(BOB, capabilities=("policy.administer.scope",))
        with pytest.raises(NotAMember):
            await register(engine, plain)
        again = await register(engine, BOB)

        assert ("user:bob", True) == (again.owner, again.registered)
        assert 1 == len(list_events(engine, BOB, EventsRequest(scope=WS)).value.items)
        assert rig.replayed(engine, site.projection) == rig.kept(engine)


async def test_a_write_of_the_same_batch_counts(rig):
    """An event that is on its way is in the way too."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        answers = await asyncio.gather(
            rig.post(engine, "one", scope=WS),
            drop_scope(engine, ALICE, WS, None),
            return_exceptions=True,
        )

        assert isinstance(answers[1], ScopeHasRecords)


async def test_every_mutation_is_audited(rig):
    """Also one that writes no entry, because it says nothing new."""
    async with rig.Site() as site:
        engine = await site.open()
        counts = []
        for act in (
            register(engine),
            set_members(engine, ALICE, WS, [owner("user:alice"), reader("user:bob")]),
            set_members(engine, ALICE, WS, [owner("user:alice"), reader("user:bob")]),
            drop_scope(engine, ALICE, WS, None),
        ):
            await act
            counts.append(audited(engine))

        assert [1, 2, 3, 4] == counts
        assert 3 == engine.log.head()


async def test_an_empty_scope_goes_without_a_word(rig):
    """And is then as if it had never been."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        await drop_scope(engine, ALICE, WS, None)
        for act in (drop_scope(engine, ALICE, WS, None), drop_scope(engine, ALICE, WS, "keep")):
            with pytest.raises(NotFound):
                await act
        with pytest.raises(NotFound):
            get_scope(engine, ALICE, WS)
        again = await register(engine, BOB)

        assert "user:bob" == again.owner


async def test_dropping_takes_the_policy_along(rig):
    """What the scope's document denied is allowed again."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        await set_policy(engine, ALICE, Target("scope", WS), PolicyDocument(deny=["scope.write"]))
        with pytest.raises(PolicyDenied):
            await rig.post(engine, "no", scope=WS)
        await drop_scope(engine, ALICE, WS, None)
        await rig.post(engine, "yes", scope=WS)

        assert get_scope(engine, ALICE, WS).auto_provisioned


async def test_forgetting_the_records_takes_its_capability(rig):
    """It takes forget.gdpr (001 §8.8.4); without records there is nothing to forget."""
    async with rig.Site() as site:
        engine = await site.open()
        await register(engine)
        bounded = msgspec.structs.replace(ALICE, capabilities=("policy.administer.scope",))
        with pytest.raises(PolicyDenied) as denied:
            await drop_scope(engine, bounded, WS, "forget")
        await drop_scope(engine, ALICE, WS, "forget")

        assert "forget.gdpr" == denied.value.details["capability"]
        with pytest.raises(NotFound):
            get_scope(engine, ALICE, WS)


# ── pruning ──────────────────────────────────────────────────────────────────────────────────


async def old_and_new(rig, site):
    """An engine with two stale scopes, a fresh one, a registered one, and one with a policy."""
    engine = await site.open()
    for scope in ("org:acme/tmp:a", "org:acme/tmp:b", "org:acme/tmp:ruled", "org:acme/tmp:fresh"):
        await rig.post(engine, scope, scope=scope)
    await rig.post(engine, "again", scope="org:acme/tmp:b")
    await register(engine)
    target = Target("scope", "org:acme/tmp:ruled")
    await set_policy(engine, ALICE, target, PolicyDocument(note="mine"))
    site.clock.step(timedelta(days=91).total_seconds())
    await rig.post(engine, "back", scope="org:acme/tmp:fresh")
    return engine


async def test_a_dry_run_changes_nothing(rig):
    """It is the default, and says what would go, when it was last written to and what it holds."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        head = engine.log.head()
        receipt = await prune_scopes(engine, ALICE, PruneRequest(older_than="P90D"))

        assert [("org:acme/tmp:a", 1), ("org:acme/tmp:b", 2)] == [
            (candidate.path, candidate.records.events) for candidate in receipt.candidates
        ]
        assert receipt.candidates[0].last_write < receipt.candidates[1].last_write
        assert (2, 0, False) == (receipt.total, receipt.pruned, receipt.has_more)
        assert head == engine.log.head()


async def test_pruning_drops_registrations_only(rig):
    """By a directive each; the events stay, and a next write registers anew."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        head = engine.log.head()
        request = PruneRequest(older_than="P90D", dry_run=False)
        receipt = await prune_scopes(engine, ALICE, request)
        again = await prune_scopes(engine, ALICE, request)

        assert (2, 2) == (receipt.total, receipt.pruned)
        assert (0, 0) == (again.total, again.pruned)
        assert head + 2 == engine.log.head()
        assert not get_scope(engine, ALICE, "org:acme/tmp:a").registered
        assert ["org:acme/tmp:ruled", "org:acme/tmp:fresh", WS] == paths_of(engine)


async def test_pruning_in_pages(rig):
    """A bounded number a call; the cursor leads on, past what was dropped before."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        request = PruneRequest(older_than="P90D", dry_run=False, limit=1)
        first = await prune_scopes(engine, ALICE, request)
        request = msgspec.structs.replace(request, cursor=first.next_cursor)
        second = await prune_scopes(engine, ALICE, request)

        assert (1, True) == (first.pruned, first.has_more)
        assert ["org:acme/tmp:b"] == [candidate.path for candidate in second.candidates]


async def test_what_was_written_to_meanwhile_stays(rig):
    """Found stale, then written to in the very batch that would drop it: it is not dropped."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        decision = engine.policies.decide(ALICE, "policy.administer.tenant", None)
        paths = ["org:acme/tmp:a", "org:acme/tmp:b"]
        pruning = Pruning(engine, ALICE, decision, paths, engine.clock.now_us())

        async def prune():
            return await engine.committer.submit(pruning)

        writing = rig.post(engine, "wait!", scope="org:acme/tmp:a")
        _, pruned = await asyncio.gather(writing, prune())

        assert 1 == pruned
        assert get_scope(engine, ALICE, "org:acme/tmp:a").registered


async def test_pruning_is_for_administrators_of_the_tenant(rig):
    """Denied by the token here; and another tenant's scopes are no candidates."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        bounded = msgspec.structs.replace(ALICE, capabilities=("policy.administer.scope",))
        with pytest.raises(PolicyDenied):
            await prune_scopes(engine, bounded, PruneRequest(older_than="P90D"))
        receipt = await prune_scopes(engine, EVE, PruneRequest(older_than="PT0S", dry_run=False))

        assert 0 == receipt.total


@pytest.mark.parametrize("length", ["P99999999999Y", "P9000Y"])
async def test_older_than_the_calendar(rig, length):
    """Nothing is that old, and beyond what can be counted it is said."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        if length == "P9000Y":
            assert 0 == (await prune_scopes(engine, ALICE, PruneRequest(older_than=length))).total
            return
        with pytest.raises(InvalidParameter):
            await prune_scopes(engine, ALICE, PruneRequest(older_than=length))


# ── writing above one's level ────────────────────────────────────────────────────────────────


async def test_writing_above_ones_level(rig):
    """Where it is not allowed, an ancestor of where one belongs is closed; siblings are open."""
    async with site_of(rig, "cloud_shared_saas") as site:
        engine = await site.open()
        await rig.post(engine, "mine", scope="org:acme/dept:eng/user:alice")
        for scope in ("org:acme/dept:eng", "org:acme"):
            with pytest.raises(PolicyDenied) as caught:
                await rig.post(engine, "up", scope=scope)
            assert "scope.write.elevated" == caught.value.details["capability"]
        await rig.post(engine, "below", scope="org:acme/dept:eng/user:alice/app:x")
        await rig.post(engine, "aside", scope="org:acme/dept:sales")


async def test_an_owner_above_is_not_elevated(rig):
    """An explicit owner or writer of the ancestor belongs there too (001 §18.2.5)."""
    async with site_of(rig, "cloud_shared_saas") as site:
        engine = await site.open()
        await register(engine, path="org:acme")
        await rig.post(engine, "mine", scope="org:acme/user:alice")
        await rig.post(engine, "ours", scope="org:acme")


async def test_where_it_is_allowed_levels_do_not_matter(rig):
    """A tenant may allow it to all of its own."""
    async with site_of(rig, "cloud_shared_saas") as site:
        engine = await site.open()
        await rig.post(engine, "mine", scope="org:acme/user:alice")
        allowed = PolicyDocument(allow=["scope.write.elevated"])
        await set_policy(engine, ALICE, Target("tenant", "acme"), allowed)
        await rig.post(engine, "up", scope="org:acme")


# ── replay ───────────────────────────────────────────────────────────────────────────────────


async def test_views_follow_from_the_log(rig):
    """Registering, upgrading, members, dropping and pruning replay to the same bytes."""
    async with rig.Site() as site:
        engine = await old_and_new(rig, site)
        await register(engine, path="org:acme/tmp:a", idempotency_key="k")
        await set_members(engine, ALICE, WS, [owner("user:alice"), reader("user:bob")])
        await drop_scope(engine, ALICE, WS, None)
        await prune_scopes(engine, ALICE, PruneRequest(older_than="P90D", dry_run=False))
        await site.settle()
        kept, before = rig.kept(engine), digests(engine.kv, engine.inline)
        replayed = rig.replayed(engine, site.projection)
        await site.stop()
        reopened = await site.open()

        assert kept == replayed
        assert before == digests(reopened.kv, reopened.inline)
        assert reopened.log.head() == rig.verify(reopened).head
