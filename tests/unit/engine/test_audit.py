"""Is there one row a call, in an order nobody can change, and for as long as it is kept?"""

import asyncio
import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import merkle
from engine.audit import check_trail, days_of, hash_text, quarter_of
from engine.auditing import (
    AuditSearch,
    get_audit,
    get_chain,
    list_audit,
    verify_body,
    verify_chain,
)
from engine.merkle import head_of
from engine.rows import About
from engine.state.names import TENANT
from schemas import limits
from schemas.audit import VerifyRequest
from schemas.caller import Caller, Decision, Origin
from schemas.errors import (
    InvalidCursor,
    NotFound,
    Overloaded,
    PolicyDenied,
    ResourceDeleted,
    WalUnavailable,
)
from schemas.times import from_us
from schemas.token import Grant

ALICE = Caller(actor="user:alice", tenant="acme")
BOB = Caller(actor="user:bob", tenant="acme")
ALLOWED = Decision(capability="scope.read.local", allowed=True, tier="deployment", preset="p")
DENIED = Decision(capability="scope.write", allowed=False, tier="scope", preset="p")
DAY_S = 86_400


def origin(**changes):
    """A request as the endpoint hands it on."""
    return Origin(
        **{
            "request_id": "req_1",
            "method": "POST",
            "path": "/v1/experience",
            "client_ip": "192.0.2.7",
            "user_agent": "cortex-py/1.0.0",
            "body": b'{"a": 1}',
            "headers": [(b"host", b"here"), (b"authorization", b"Bearer secret")],
            "started_us": 1,
        }
        | changes
    )


def rows(engine, caller=ALICE, **conditions):
    """Every durable row that a search finds, newest first."""
    found, cursor = [], None
    while True:
        page = list_audit(engine, caller, AuditSearch(cursor=cursor, **conditions))
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def read(engine, caller=ALICE, **about):
    """An allowed read, as the endpoint records it."""
    engine.committer.record_later(caller, ALLOWED, About(status=200, **about))


async def flushed(engine):
    """The rows that wait are durable."""
    engine.committer.flush()
    await engine.committer.drained()


def checked(engine, tenant="acme"):
    """What reading every row again shows."""
    number = engine.names.number(TENANT, 0, tenant)
    return check_trail(engine.kv, engine.vault.tenant(number), number, lambda done, total: None)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_has_every_field_of_its_row(rig):
    """001 §14, field by field; the credential is in no hash, and no body in the row."""
    async with rig.Site() as site:
        engine = await site.open()
        caller = msgspec.structs.replace(ALICE, origin=origin(), token_id="jti-1")
        receipt = await rig.post(engine, "hello", caller=caller)
        [row] = rows(engine)
        other = msgspec.structs.replace(
            ALICE, origin=origin(headers=[(b"host", b"here"), (b"authorization", b"Bearer other")])
        )
        await rig.post(engine, "hello", caller=other)

        assert {
            "actor": "user:alice",
            "tenant_id": "acme",
            "token_jti": "jti-1",
            "scope": "org:acme/user:alice",
            "endpoint": "POST /v1/experience",
            "capability": "scope.write",
            "decision": "allow",
            "decided_by_tier": "deployment",
            "response_status": 202,
            "event_id": receipt.event_id,
            "client_ip": "192.0.2.7",
            "user_agent": "cortex-py/1.0.0",
            "request_id": "req_1",
            "gdpr": False,
            "sequence": 0,
            "tenant_pepper_version": quarter_of(rig.START_US),
        }.items() <= msgspec.structs.asdict(row).items()
        assert ("POST", "/v1/experience", 8) == (
            row.request.method,
            row.request.path,
            row.request.body_bytes,
        )
        assert row.request.body_hash.startswith("sha256:")
        assert row.elapsed_ms > 0
        assert row == get_audit(engine, ALICE, row.id)
        assert row.request.headers_hash == rows(engine)[0].request.headers_hash


async def test_a_replay_is_a_call_of_its_own(rig):
    """The entry is written once, and each call that asked for it has its row."""
    async with rig.Site() as site:
        engine = await site.open()
        first = await rig.post(engine, "hello")
        again = await rig.post(engine, "hello")
        events = [row.event_id for row in rows(engine)]

        assert again.replayed_from_idempotency
        assert [first.event_id, first.event_id] == events
        assert 1 == engine.log.head()


async def test_a_read_rides_on_the_next_commit(rig):
    """The row of an allowed read waits in memory, and comes before the write that took it along."""
    async with rig.Site() as site:
        engine = await site.open()
        read(engine, scope="org:acme")
        before = rows(engine)
        commits = engine.log.commit_count
        await rig.post(engine, "hello")
        found = [(row.sequence, row.capability) for row in rows(engine)]

        assert [] == before
        assert 1 == engine.log.commit_count - commits
        assert [(1, "scope.write"), (0, "scope.read.local")] == found


async def test_a_denial_is_durable_when_it_is_said(rig):
    """Once recorded it survives the power; nothing else was written."""
    async with rig.Site() as site:
        engine = await site.open()
        audit_id = await engine.committer.record(ALICE, DENIED, About(status=403, scope="org:x"))
        await site.kill(power_cut=True)
        engine = await site.open()
        row = get_audit(engine, ALICE, audit_id)

        assert ("deny", "scope", 403, "org:x") == (
            row.decision,
            row.decided_by_tier,
            row.response_status,
            row.scope,
        )
        assert 0 == engine.log.head()


async def test_closing_loses_no_row(rig):
    """An orderly end writes the rows that wait."""
    async with rig.Site() as site:
        engine = await site.open()
        read(engine)
        await site.stop()
        engine = await site.open()

        assert 1 == len(rows(engine))


async def test_many_reads_make_a_commit_of_their_own(rig):
    """The queue is bounded: when it is full enough, it does not wait for the keeper."""
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(limits.AUDIT_QUEUE_ROWS):
            read(engine)
        await engine.committer.drained()

        assert limits.AUDIT_QUEUE_ROWS == get_chain(engine, ALICE).length


async def test_reads_that_cannot_be_recorded_are_counted(rig):
    """While the disk is full reads go on; rows beyond the bound are counted, not kept."""
    async with rig.Site() as site:
        engine = await site.open()
        engine.committer.refusal = "the disk is nearly full"
        for _ in range(limits.AUDIT_QUEUE_ROWS_MAX + 3):
            read(engine)
        lost, queued = engine.trail.lost, engine.trail.queued
        engine.committer.refusal = None
        await flushed(engine)

        assert (3, limits.AUDIT_QUEUE_ROWS_MAX) == (lost, queued)
        assert checked(engine).valid


async def test_a_row_that_was_rolled_back_leaves_no_hole(rig):
    """A proposal that fails after it was recorded takes its row along; the rest stays dense."""

    class Fails:
        entry_count = 1
        byte_count = 1

        def decide(self, desk):
            desk.audit(ALICE, ALLOWED, About(status=200))
            raise NotFound("no")

    async with rig.Site() as site:
        engine = await site.open()
        one = engine.committer.submit(Fails())
        two = engine.committer.record(ALICE, DENIED, About(status=403))
        audit_id = await two
        with pytest.raises(NotFound):
            await one

        assert [audit_id] == [row.id for row in rows(engine)]
        assert checked(engine).valid


async def test_body_bytes_are_left_out_where_the_tenant_says_so(rig):
    """001 §18.2(15): the size is omitted, the hash stays."""
    async with rig.Site() as site:
        engine = await site.open()
        engine.trail.stores_body_bytes = lambda tenant: tenant != "acme"
        for tenant in ("acme", "other"):
            caller = Caller(actor="user:alice", tenant=tenant, origin=origin())
            await engine.committer.record(caller, ALLOWED, About(status=200))
        [row] = rows(engine)
        [other] = rows(engine, Caller(actor="user:alice", tenant="other"))

        assert None is row.request.body_bytes
        assert 8 == other.request.body_bytes
        assert b"body_bytes" not in msgspec.json.encode(row)
        assert row.request.body_hash != other.request.body_hash


# ── order ────────────────────────────────────────────────────────────────────────────────────


async def test_ids_sort_as_leaves_when_the_clock_steps_back(rig):
    """Also after a restart: by its id a row is found, and a moment has its place."""
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(3):
            await rig.post(engine, "hello")
        site.clock.step(-3600)
        read(engine)
        await rig.post(engine, "hello")
        await site.stop()
        site.clock.step(-3600)
        engine = await site.open()
        await rig.post(engine, "hello")
        found = rows(engine)

        assert [5, 4, 3, 2, 1, 0] == [row.sequence for row in found]
        assert sorted((row.id for row in found), reverse=True) == [row.id for row in found]
        assert found == [get_audit(engine, ALICE, row.id) for row in found]


async def test_a_search_is_bounded_by_time_half_open(rig):
    """`since` takes the moment itself in, `until` leaves it out."""
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(9):
            await rig.post(engine, "hello")
            site.clock.step(1)
        all_rows = rows(engine)
        since, until = all_rows[6].ts, all_rows[2].ts

        assert all_rows[3:7] == rows(engine, since=since, until=until)
        assert all_rows == rows(engine, since=from_us(-1), limit=2)
        assert [] == rows(engine, until=from_us(0))


async def test_filters_hold_together(rig):
    """Scope, actor, capability and decision; every condition must hold (001 §8.10.1)."""
    async with rig.Site() as site:
        engine = await site.open()
        for caller, scope in itertools.product((ALICE, BOB), ("org:a", "org:b", None)):
            for decision in (ALLOWED, DENIED):
                await engine.committer.record(caller, decision, About(status=200, scope=scope))
        found = rows(engine, limit=5)

        assert 12 == len(found)
        for actor, scope, decision in itertools.product(
            ("user:alice", "user:bob", None), ("org:a", "org:b", None), ("allow", "deny", None)
        ):
            wanted = [
                row
                for row in found
                if actor in (None, row.actor)
                and scope in (None, row.scope)
                and decision in (None, row.decision)
            ]
            assert wanted == rows(engine, actor=actor, scope=scope, decision=decision, limit=2)
        assert 6 == len(rows(engine, capability="scope.write"))
        assert [] == rows(engine, capability="scope.write", decision="allow")


# ── whose ────────────────────────────────────────────────────────────────────────────────────


async def test_without_cross_actor_one_sees_ones_own(rig):
    """A listing is confined to the caller's rows, and asking for another's is denied."""
    mine = msgspec.structs.replace(BOB, capabilities=("audit.read",))
    async with rig.Site() as site:
        engine = await site.open()
        alices = await engine.committer.record(ALICE, ALLOWED, About(status=200))
        bobs = await engine.committer.record(BOB, ALLOWED, About(status=200))

        assert [bobs, alices] == [row.id for row in rows(engine, BOB)]
        assert [bobs] == [row.id for row in rows(engine, mine)]
        assert [bobs] == [row.id for row in rows(engine, mine, actor="user:bob")]
        for ask in (
            lambda: rows(engine, mine, actor="user:alice"),
            lambda: get_audit(engine, mine, alices),
            lambda: verify_body(engine, mine, VerifyRequest(audit_id=alices, body="")),
        ):
            with pytest.raises(PolicyDenied) as denied:
                ask()
            assert "audit.read.cross_actor" == denied.value.details["capability"]


async def test_a_token_bound_to_a_scope_sees_its_rows_only(rig):
    """Scope confinement holds for listings and for ids."""
    bound = msgspec.structs.replace(BOB, scopes=(Grant.parse("audit.read:org:a/*"),))
    async with rig.Site() as site:
        engine = await site.open()
        ids = {
            (caller.actor, scope): await engine.committer.record(
                caller, ALLOWED, About(status=200, scope=scope)
            )
            for caller in (ALICE, BOB)
            for scope in ("org:a/user:x", "org:b", None)
        }
        seen = {row.id for row in rows(engine, bound)}

        assert {
            ids["user:alice", "org:a/user:x"],
            ids["user:bob", "org:a/user:x"],
            ids["user:bob", None],
        } == seen
        with pytest.raises(PolicyDenied):
            get_audit(engine, bound, ids["user:alice", "org:b"])


async def test_another_tenant_has_a_tree_of_its_own(rig):
    """Its ids are not found, its cursors do not fit, its rows do not move our head."""
    theirs = Caller(actor="user:alice", tenant="other")
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(3):
            audit_id = await engine.committer.record(ALICE, ALLOWED, About(status=200))
        head = get_chain(engine, ALICE)
        cursor = list_audit(engine, ALICE, AuditSearch(limit=1)).next_cursor
        unknown = rows(engine, theirs)
        await engine.committer.record(theirs, ALLOWED, About(status=200))

        assert [] == unknown
        assert 1 == len(rows(engine, theirs))
        assert head == get_chain(engine, ALICE)
        with pytest.raises(NotFound):
            get_audit(engine, theirs, audit_id)
        with pytest.raises(InvalidCursor):
            list_audit(engine, theirs, AuditSearch(limit=1, cursor=cursor))


# ── proofs ───────────────────────────────────────────────────────────────────────────────────


def digest(text):
    """The bytes of a hash as it is answered."""
    return bytes.fromhex(text.removeprefix("sha256:"))


async def test_a_body_is_proven_against_its_row(rig):
    """The very body matches and no other does; the path leads to the head that is told."""
    async with rig.Site() as site:
        engine = await site.open()
        for number in range(11):
            caller = msgspec.structs.replace(ALICE, origin=origin(body=b"body %d" % number))
            await engine.committer.record(caller, ALLOWED, About(status=200))
        chain = get_chain(engine, ALICE)
        for row in rows(engine):
            answer = verify_body(
                engine, ALICE, VerifyRequest(audit_id=row.id, body=f"body {row.sequence}")
            )
            proof = answer.inclusion
            path = [digest(one) for one in proof.path]
            led = merkle.head_by_path(
                proof.leaf_index, proof.tree_size, digest(proof.leaf_hash), path
            )
            other = verify_body(engine, ALICE, VerifyRequest(audit_id=row.id, body="body"))

            assert (True, True, row.ts) == (answer.match, proof.holds, answer.hashed_at)
            assert (row.sequence, 11) == (proof.leaf_index, proof.tree_size)
            assert chain.head_hash == proof.root
            assert digest(chain.head_hash) == led
            assert (False, True) == (other.match, other.inclusion.holds)


async def test_the_pepper_turns_with_the_quarter_and_the_keys_of_retries_do_not(rig):
    """Equal bodies hash differently in two quarters, both verify; a retry is still a retry."""
    async with rig.Site() as site:
        engine = await site.open()
        engine.trail.retention_us = days_of("P1Y") * DAY_S * 1_000_000
        caller = msgspec.structs.replace(ALICE, origin=origin())
        await rig.post(engine, "hello", caller=caller)
        site.clock.step(92 * DAY_S)
        again = await rig.post(engine, "hello", caller=caller)
        new, old = rows(engine)

        assert again.replayed_from_idempotency
        assert 1 == new.tenant_pepper_version - old.tenant_pepper_version
        assert new.request.body_hash != old.request.body_hash
        for row in (new, old):
            answer = verify_body(engine, ALICE, VerifyRequest(audit_id=row.id, body='{"a": 1}'))
            assert answer.match
            assert row.tenant_pepper_version == answer.tenant_pepper_version


async def test_a_pepper_is_kept_a_quarter_longer_than_the_rows(rig):
    """001 §18.2(11): a row that outlives its retention is compared that much longer, then not."""
    async with rig.Site() as site:
        engine = await site.open()
        about = About(status=200, gdpr=True)
        request = VerifyRequest(
            audit_id=await engine.committer.record(ALICE, ALLOWED, about), body=""
        )
        site.clock.step((7 + 90) * DAY_S)
        answer = verify_body(engine, ALICE, request)
        site.clock.step(92 * DAY_S)

        assert answer.match
        with pytest.raises(ResourceDeleted):
            verify_body(engine, ALICE, request)


@pytest.mark.parametrize(
    "duration, days", [("P7D", 7), ("P1Y", 365), ("P2Y", 730), ("P3M", 90), ("P1Y2M3W4D", 450)]
)
def test_durations_are_whole_days(duration, days):
    """A year has 365 of them, a month 30, a week 7."""
    assert days == days_of(duration)


@pytest.mark.parametrize("instant_us, quarter", [(0, 0), (1_770_000_000_000_000, 224)])
def test_quarters_count_from_1970(instant_us, quarter):
    """Four a year: the version of a pepper needs no table."""
    assert quarter == quarter_of(instant_us)


# ── retention ────────────────────────────────────────────────────────────────────────────────


async def test_retention_takes_the_content_and_leaves_the_tree(rig):
    """Rows past their time say nothing more, GDPR rows stay, the head does not move."""
    async with rig.Site() as site:
        engine = await site.open()
        for number in range(20):
            about = About(status=200, gdpr=number % 5 == 0, note=f"secret {number}")
            await engine.committer.record(ALICE, ALLOWED, about)
        old = rows(engine)
        site.clock.step(8 * DAY_S)
        for _ in range(3):
            await engine.committer.record(ALICE, ALLOWED, About(status=200))
        head = get_chain(engine, ALICE)
        pruned = engine.trail.prune(), engine.trail.prune()
        kept = [row.sequence for row in rows(engine, limit=3)]
        report = verify_chain(engine, ALICE)
        left = b"".join(value for _, value in engine.kv.scan("audit"))

        assert (16, 0) == pruned
        assert [22, 21, 20, 15, 10, 5, 0] == kept
        assert (True, 16, 23) == (report.valid, report.pruned_rows, report.length)
        assert head.head_hash == get_chain(engine, ALICE).head_hash == report.head_hash
        assert (b"secret 5" in left, b"secret 6" in left) == (True, False)
        with pytest.raises(ResourceDeleted):
            get_audit(engine, ALICE, old[0].id)
        gdpr = verify_body(engine, ALICE, VerifyRequest(audit_id=old[4].id, body=""))
        assert (True, True) == (gdpr.match, gdpr.inclusion.holds)


async def test_pruning_goes_on_where_it_stopped(rig):
    """Day after day, and after a restart; what is appended meanwhile is counted in."""
    async with rig.Site() as site:
        engine = await site.open()
        for day in range(12):
            await engine.committer.record(ALICE, ALLOWED, About(status=200, note=str(day)))
            engine.trail.prune()
            site.clock.step(DAY_S)
            await site.stop()
            engine = await site.open()
        report = checked(engine)

        assert ["11", "10", "9", "8", "7", "6", "5"] == [row.note for row in rows(engine)]
        assert (True, 5, 12) == (report.valid, report.pruned_rows, report.length)


# ── what must not be believed ────────────────────────────────────────────────────────────────


async def test_one_reads_the_whole_at_a_time(rig):
    """A second reader is told to come back, and pruning waits for its next hour."""
    async with rig.Site() as site:
        engine = await site.open()
        await engine.committer.record(ALICE, ALLOWED, About(status=200))
        site.clock.step(30 * DAY_S)
        with engine.trail.walking:
            with pytest.raises(Overloaded):
                verify_chain(engine, ALICE)
            pruned = engine.trail.prune()

        assert 0 == pruned
        assert verify_chain(engine, ALICE).valid


@pytest.mark.parametrize("forgery", ["mac", "gone"])
async def test_a_forged_head_is_not_built_upon(rig, forgery):
    """A new row would sign what someone else wrote: the tenant's calls are refused instead."""
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(3):
            await engine.committer.record(ALICE, ALLOWED, About(status=200))
        await site.stop()
        [(key, value)] = site.kv.scan("meta", b"audit.head.", b"audit.head/")
        batch = site.kv.batch()
        if forgery == "mac":
            batch.put("meta", key, value[:-1] + bytes([value[-1] ^ 1]))
        else:
            batch.delete("meta", key)
        site.kv.write(batch)
        engine = await site.open()
        with pytest.raises(WalUnavailable):
            await engine.committer.record(ALICE, DENIED, About(status=403))
        with pytest.raises(WalUnavailable):
            read(engine)
        await engine.committer.record(
            Caller(actor="user:alice", tenant="other"), ALLOWED, About(status=200)
        )

        assert (False, 0) == (checked(engine).valid, checked(engine).first_broken_index)


@pytest.mark.parametrize("claims_pruned", [False, True])
async def test_content_that_retention_did_not_take_is_missed(rig, claims_pruned):
    """A row cut down to its hash is broken; the mark of what was pruned is signed, too."""
    async with rig.Site() as site:
        engine = await site.open()
        for _ in range(4):
            await engine.committer.record(ALICE, ALLOWED, About(status=200))
        [*_, (key, value), _] = engine.kv.scan("audit")
        batch = engine.kv.batch()
        batch.put("audit", key, value[:48])
        if claims_pruned:
            batch.put("meta", b"audit.pruned." + key[:4], bytes(16) + bytes([0] * 7 + [4]) * 2)
        engine.kv.write(batch)
        report = checked(engine)

        assert (False, 0 if claims_pruned else 2) == (report.valid, report.first_broken_index)


# ── crashes ──────────────────────────────────────────────────────────────────────────────────

STEPS = st.lists(st.sampled_from(["write", "bulk", "read", "deny", "flush", "other", "head"]))


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, after=st.integers(0, 25), power_cut=st.booleans())
def test_a_crash_leaves_no_hole_and_no_head_without_its_rows(rig, steps, after, power_cut):
    """Wherever it strikes: the rows are dense, the tree is theirs, and no head told is undone."""

    async def live(site):
        told = []
        engine = await site.open()
        site.mains.trip(after)
        for number, step in enumerate(steps):
            caller = Caller(actor="user:alice", tenant="other" if step == "other" else "acme")
            try:
                if step == "write":
                    await rig.post(engine, f"text {number}")
                elif step == "bulk":
                    await rig.post_many(engine, [f"{number}/{at}" for at in range(3)])
                elif step == "read":
                    read(engine)
                elif step == "flush":
                    await flushed(engine)
                elif step == "head":
                    told.append(get_chain(engine, ALICE))
                else:
                    told.append(await engine.committer.record(caller, DENIED, About(status=403)))
            except WalUnavailable:
                break
        await site.kill(power_cut=power_cut)
        return told

    async def main():
        async with rig.Site() as site:
            told = await live(site)
            engine = await site.open()
            for tenant in ("acme", "other"):
                report = checked(engine, tenant)
                assert report.valid, report
            others = Caller(actor="user:alice", tenant="other")
            ids = {row.id for row in (*rows(engine), *rows(engine, others))}
            place = engine.names.number(TENANT, 0, "acme").to_bytes(4, "big")
            kept = engine.kv.scan("audit", place, place + b"\xff" * 9)
            leaves = [value[:32] for _, value in kept]
            for said in told:
                if isinstance(said, str):
                    assert said in ids
                else:
                    then, _ = merkle.grow(merkle.Tree(), leaves[: said.length])
                    assert (said.length, said.head_hash) == (then.size, hash_text(head_of(then)))
            await rig.post(engine, "after it all")
            report = checked(engine)
            assert (True, len(leaves) + 1) == (report.valid, report.length)

    asyncio.run(main())
