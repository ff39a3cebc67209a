"""Do capsules follow from the log, and do their rules hold whatever is in them?  (000)"""

import asyncio
import contextlib
import copy
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from api.cognirelay.translate import capsule as capsules
from api.cognirelay.translate import listing
from api.cognirelay.translate.budget import tokens, trimmed
from api.cognirelay.translate.rules import canonical, check, normalise
from api.errors import Refusal
from engine.forget import ForgetCall, forget
from engine.surface import Change, Outcome, Write, change_documents
from schemas.forget import ForgetRequest
from schemas.limits import CAPSULE_LISTS
from schemas.surfaces.cognirelay.capsule import CAPSULE, CORE_LISTS

START = datetime(2026, 5, 1, tzinfo=UTC)
SCOPE = "ws:thread-loom"

sentences = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=24)


def listed(name: str) -> st.SearchStrategy[list[str]]:
    return st.lists(sentences, max_size=CAPSULE_LISTS[name][0])


@st.composite
def capsules_of(draw: st.DrawFn, kind: str = "thread", subject: str = "loom") -> dict:
    """A capsule of the right shape; its words are anything."""
    held = {name: draw(listed(name)) for name in CORE_LISTS}
    more = ("working_hypotheses", "trailing_notes", "curiosity_queue", "session_trajectory")
    held |= {name: draw(listed(name)) for name in more if draw(st.booleans())}
    decisions = st.fixed_dictionaries({"decision": sentences, "rationale": sentences})
    held["negative_decisions"] = draw(st.lists(decisions, max_size=3))
    held["stance_summary"] = draw(sentences)
    at = (START + timedelta(minutes=draw(st.integers(0, 5)))).isoformat()
    return {
        "subject_kind": kind,
        "subject_id": subject,
        "updated_at": at,
        "verified_at": at,
        "source": {"producer": "weaver", "update_reason": "manual"},
        "continuity": held,
        "confidence": {"continuity": 1, "relationship_model": 0},
        "metadata": draw(st.dictionaries(sentences, st.integers(-5, 5) | sentences, max_size=3)),
    }


def asked_of(made: dict, mode: str = "replace") -> dict:
    subject = {name: made[name] for name in ("subject_kind", "subject_id")}
    body = subject | {"capsule": made, "merge_mode": mode}
    return body | dict.fromkeys(("session_end_snapshot", "lifecycle_transition", "superseded_by"))


def stored_of(made: dict, stored: dict | None = None, mode: str = "replace") -> dict:
    asked = asked_of(made, mode)
    return capsules.upserted(asked, capsules.check_request(asked), stored)[0]


@given(made=capsules_of())
def test_the_plain_form_is_plain(made):
    """What was normalised once stays as it is, and a capsule stored twice is the same."""
    try:
        once = stored_of(made)
    except Refusal:
        assume(False)
    again = copy.deepcopy(once)

    assert [] == normalise(again)
    assert canonical(once) == canonical(again)
    assert canonical(once) == canonical(stored_of(made, once))
    check(again)


@given(made=capsules_of(), other=capsules_of())
def test_preserving_loses_nothing_that_was_not_given(made, other):
    """What a later capsule leaves out is as it was stored; what it says is as it says."""
    try:
        first = stored_of(made)
        other["updated_at"] = other["verified_at"] = (START + timedelta(days=1)).isoformat()
        second = stored_of(other, first, "preserve")
    except Refusal:
        assume(False)
    for name in CAPSULE_LISTS:
        given_items = other["continuity"].get(name)
        kept = name not in other["continuity"] or (name in CORE_LISTS and given_items == [])
        if kept:
            assert first["continuity"][name] == second["continuity"][name]


@given(made=capsules_of(), budget=st.integers(0, 800))
def test_a_trimmed_capsule_fits(made, budget):
    """Within the budget, or not at all; and what is not cut is as it was."""
    whole = CAPSULE.stored(made)
    kept, cut = trimmed(whole, budget)
    if tokens(whole) <= budget and any(
        whole["continuity"][n] for n in (*CORE_LISTS, "stance_summary")
    ):
        assert (whole, []) == (kept, cut)
    if kept is not None:
        assert tokens(kept) <= budget
        assert whole["updated_at"] == kept["updated_at"]


@given(made=st.lists(capsules_of(), min_size=2, max_size=5))
def test_the_order_of_salience_is_total(made):
    """No two capsules of two subjects have the same key."""
    keys = [
        listing.salience_key(listing.salience(CAPSULE.stored(one), START), "thread", f"s{number}")
        for number, one in enumerate(made)
    ]

    assert len(keys) == len(set(keys))


steps = st.one_of(
    st.tuples(st.just("upsert"), capsules_of()),
    st.tuples(st.just("preserve"), capsules_of()),
    st.tuples(st.just("delete")),
    st.tuples(st.just("erase"), st.integers(0, 9)),
)


class Story:
    """One life of an engine that keeps a capsule."""

    def __init__(self, rig, site):
        self.rig, self.site, self.engine = rig, site, site.engine
        self.events = []

    async def change(self, decide):
        change = Change(surface="cognirelay", scopes=(SCOPE,), decide=decide)
        changed = await change_documents(self.engine, self.rig.ALICE, change)
        self.events += [row.event_id for row in changed.documents]

    def writing(self, value, words, state="current"):
        return Write(
            kind=capsules.CAPSULE_KIND,
            key="thread-loom",
            scope=SCOPE,
            words=words,
            value=value,
            state=state,
            labels=tuple(words.split()[:4]),
        )

    async def play(self, step, *given_one):
        match step:
            case "upsert" | "preserve":
                asked = asked_of(given_one[0], "preserve" if step == "preserve" else "replace")
                made = capsules.check_request(asked)

                def decide(held):
                    row = held.get(capsules.CAPSULE_KIND, "thread-loom")
                    stored = capsules.active(row)
                    capsule, _ = capsules.upserted(asked, made, stored)
                    if stored is not None:
                        capsules.check_conflict(capsule["updated_at"], stored)
                    return Outcome(writes=[self.writing(capsule, capsules.words_of(capsule))])

                await self.change(decide)
            case "delete":
                write = self.writing(None, "it was deleted", capsules.GONE)
                await self.change(lambda held: Outcome(writes=[write]))
            case "erase" if self.events:
                await self.site.settle()
                name = self.events[given_one[0] % len(self.events)]
                chosen = {"selector": {"memory_ids": [name]}, "cascade": "redact_events"}
                body = msgspec.convert({"scope": SCOPE} | chosen, ForgetRequest)
                await forget(self.engine, self.rig.ALICE, ForgetCall(body=body, wait_s=0))


@given(story=st.lists(steps, max_size=8), batch=st.sampled_from([1, 100]))
@settings(max_examples=15, deadline=None)
def test_capsules_replayed_are_capsules_kept(rig, story, batch):
    """I4 with capsules in the log, written, refused, deleted and erased."""

    async def live():
        async with rig.Site(batch_entries=batch) as site:
            await site.open()
            life = Story(rig, site)
            for step in story:
                with contextlib.suppress(Refusal):
                    await life.play(*step)
            await site.settle()
            engine = site.engine
            kept, replayed = rig.kept(engine), rig.replayed(engine, site.projection)
            assert kept.keys() == replayed.keys()
            for name in kept:
                assert kept[name] == replayed[name], name
            rig.verify(engine)

    asyncio.run(live())
