"""A deal over three months, told out of order, with a correction and a retraction.

January, February and March 2026; day 1 is the second of January. What happened:

- day 5: Acme asks for a demonstration; the deal is at *intro*.
- day 20: a trial begins; the deal is at *poc*. Carol is the contact.
- day 40: Acme wants 200 seats.
- day 55: Carol leaves, and Dan is the contact.
- day 70: Acme signs. The seats are 250.

What was told, and when:

- day 6: Alice notes the demonstration.
- day 41: she notes the seats; 150, she writes, and means 200.
- day 45: she tells of the trial that began on day 20, and of Carol.
- day 50: she corrects the seats.
- day 60: a tool reports that the deal is lost, which was another deal: nobody believes it.
- day 65: Bob writes that Acme signed on day 64. He was wrong, and takes it back on day 68.
- day 72: Alice tells of the signature, of the seats, and that Carol left on day 55.
"""

import pytest

from schemas.entry import Cancel

ALICE, BOB = "user:alice", "user:bob"


@pytest.fixture
def deal(world, module):
    """The log of the deal."""

    def stage(name, **fields):
        value = module.Value(datatype="string", value=name)
        return module.claim("Acme", "deal_stage", value, **fields)

    def seats(count, **fields):
        return module.claim("Acme", "seat_count", count, **fields)

    def contact(who, **fields):
        return module.claim("Acme", "contact", who, cardinality="multi", **fields)

    world.says(ALICE, stage("intro", valid_from=module.day(5)), on=6)
    world.says(ALICE, seats(150, valid_from=module.day(40)), on=41)
    trial = module.day(20)
    world.says(ALICE, stage("poc", valid_from=trial), contact("Carol", valid_from=trial), on=45)
    world.says(ALICE, seats(200, corrects=True), on=50)
    world.says("tool:crm", stage("lost", confidence=0.4), on=60, modality="tool_result")
    wrong = world.says(BOB, stage("signed", valid_from=module.day(64)), on=65)
    world.orders(Cancel(event_id=wrong, offset=6, stages=[]), on=68)
    world.says(
        ALICE,
        stage("signed", valid_from=module.day(70)),
        seats(250, valid_from=module.day(70)),
        contact("Carol", ends=True, valid_to=module.day(55)),
        contact("Dan", valid_from=module.day(55)),
        on=72,
    )
    return world


QUESTIONS = [
    # known on, about: stage, seats, contact
    (7, 6, ["intro", None, None]),
    (42, 41, ["intro", "150", None]),
    (42, 30, ["intro", None, None]),
    (46, 30, ["poc", None, "Carol"]),
    (51, 45, ["poc", "200", "Carol"]),
    (49, 45, ["poc", "150", "Carol"]),
    (61, 61, ["poc", "200", "Carol"]),
    (66, 66, ["signed", "200", "Carol"]),
    (69, 66, ["poc", "200", "Carol"]),
    (73, 66, ["poc", "200", "Dan"]),
    (73, 73, ["signed", "250", "Dan"]),
    (73, 50, ["poc", "200", "Carol"]),
    (90, 4, [None, None, None]),
]


@pytest.mark.parametrize("known, about, expected", QUESTIONS)
def test_what_was_known_on_a_day_about_another(deal, known, about, expected):
    """Every pair of times has its own answer, and it does not change when more is told."""
    answers = [deal.values(known, about, name) for name in ("deal_stage", "seat_count", "contact")]

    assert expected == [answer[0] if answer else None for answer in answers]
    assert all(len(answer) <= 1 for answer in answers)


def test_the_timeline_as_it_is_known_at_the_end(deal, module):
    """One stage after another, without a gap, and none twice."""
    found = [
        fact
        for fact in deal.facts(
            module.day(90), valid=None, valid_at=None, valid_during=module.during(0, 90)
        )
        if fact.predicate == "deal_stage"
    ]
    found.sort(key=lambda fact: fact.valid_from)
    line = [(f.object.value, (f.valid_from - module.START).days) for f in found]

    assert [("intro", 5), ("poc", 20), ("signed", 70)] == line
    assert [f.valid_from for f in found[1:]] == [f.valid_to for f in found[:-1]]
    assert [f.id for f in found[1:]] == [f.superseded_by for f in found[:-1]]


def test_what_nobody_believed_is_on_record(deal):
    """The tool's word is a conflict, with both facts and the reason."""
    (conflict,) = deal.rows("conflicts")
    standing = deal.fact("poc")

    assert (standing.id, "kept_standing") == (conflict.standing, conflict.resolution)
    assert "below_confidence_band" == conflict.reason


def test_told_in_the_order_it_happened(deal, module, world):
    """The order of telling moves what was known when, and not what is known in the end."""
    twin = module.World()
    entries = [e for e in world.entries if e.offset in world.extractions]
    told = [
        c for e in entries if e.offset not in (5, 6) for c in world.extractions[e.offset].candidates
    ]
    told.sort(key=lambda one: one.valid_from or one.valid_to or module.day(41))
    for at, one in enumerate(told):
        twin.says(ALICE, one, on=41, recorded=80 + at)

    ends = [(known, about) for known, about, _ in QUESTIONS if known >= 73]
    assert [deal.values(95, about) for _, about in ends] == [
        twin.values(95, about) for _, about in ends
    ]
