"""Is one thing one entity, by whatever name, and are two things two?"""

import pytest

from projectors.entities import lookup
from projectors.text import Extraction, Mention

HOME = "org:acme/user:sam"
WORK = "org:acme/ws:launch"


def named(world):
    """The entity of each subject, by the name it has now."""
    return {row.name: row for row in world.rows("entities")}


def subjects(world):
    """The ids of what the facts are about, in the order they were told."""
    facts = sorted(world.rows("facts"), key=lambda fact: fact.id)
    return [fact.subject.id for fact in facts]


def about(module, name, predicate="stage", **fields):
    return module.claim(name, predicate, 1, cardinality="multi", **fields)


@pytest.mark.parametrize(
    "other", ["acme", "ACME", "Acme Corp", "Acme Corp.", "the Acme", "Acme's", "Acme, Inc."]
)
def test_spellings_of_a_name(world, module, other):
    """Case, possessives, articles and corporate suffixes do not make another thing."""
    world.says("user:sam", about(module, "Acme"), about(module, other, "size"), on=1)
    one, same = subjects(world)

    assert one == same


def test_a_plural_is_the_same(world, module):
    """Inflection of the last word is folded too."""
    world.says("user:sam", about(module, "blue car"), about(module, "Blue cars", "size"), on=1)

    assert 1 == len(set(subjects(world)))


def test_a_name_means_one_thing_in_the_tenant(world, module):
    """Two scopes that speak of Acme speak of the same Acme."""
    world.says("user:sam", about(module, "Acme"), on=1, scope=HOME)
    world.says("user:eve", about(module, "Acme"), on=2, scope=WORK)

    assert 1 == len(set(subjects(world)))


def test_an_actor_is_known_by_its_id(world, module):
    """`I` of user:melanie is Melanie, also for those who call her so."""
    world.says("user:melanie", about(module, "user:melanie"), on=1)
    world.says("user:bob", about(module, "Melanie", "size"), on=2)
    she, also = subjects(world)

    assert she == also
    assert "user:melanie" == named(world)["Melanie"].actor


def test_one_who_never_spoke_here_is_not_meant(world, module):
    """The name in an actor's id means the actor only in scopes where it speaks."""
    world.says("user:melanie", about(module, "user:melanie"), on=1, scope=HOME)
    world.says("user:bob", about(module, "Melanie"), on=2, scope=WORK)

    assert 2 == len(set(subjects(world)))


def test_self_introduced_names_bind_in_their_scope(world, module):
    """Two users called Sam stay two, each by that name where it was said."""
    for who, scope in (("user:u1", HOME), ("user:u2", WORK)):
        world.says(
            who,
            module.claim(who, "name", module.Value(datatype="string", value="Sam")),
            about(module, "Sam"),
            on=1,
            scope=scope,
        )
    facts = [fact for fact in world.rows("facts") if fact.predicate == "stage"]
    rows = [row for row in world.rows("entities") if row.actor is not None]

    assert {row.id for row in rows} == {fact.subject.id for fact in facts}
    assert ["Sam", "Sam"] == [row.name for row in rows]
    assert [["u1"], ["u2"]] == sorted(row.aliases for row in rows)


def test_a_second_sam_in_one_scope_does_not_take_the_name(world, module):
    """The first one keeps it; the second is still known by its id."""
    for who in ("user:u1", "user:u2"):
        world.says(who, module.claim(who, "name", "Sam"), on=1)
    world.says("user:u3", about(module, "Sam"), on=2)
    (fact,) = [fact for fact in world.rows("facts") if fact.predicate == "stage"]
    (first,) = [row for row in world.rows("entities") if row.actor == "user:u1"]

    assert first.id == fact.subject.id


@pytest.mark.parametrize(
    "fields", [{"polarity": "negative"}, {"ends": True}], ids=["denied", "ended"]
)
def test_what_is_no_introduction(world, module, fields):
    """`My name is not Sam` binds nothing."""
    world.says("user:u1", module.claim("user:u1", "name", "Sam", **fields), on=1)

    assert {"u1", "Sam"} == set(named(world))


def test_another_s_introduction_binds_nothing(world, module):
    """Only the one who is speaking can say what it is called."""
    world.says("user:bob", module.claim("user:u1", "name", "Sam"), on=1)
    (row,) = [row for row in world.rows("entities") if row.actor == "user:u1"]

    assert "u1" == row.name


def test_a_client_s_id_is_kept(world, module):
    """`ent_acme_corp` stays `ent_acme_corp`, and its name leads to it."""
    given = Mention(text="Acme Corp", ref="ent_acme_corp")
    world.says("service:crm", about(module, given), on=1)
    world.says("user:sam", about(module, "Acme", "size"), on=2)

    assert ["ent_acme_corp", "ent_acme_corp"] == subjects(world)


def test_an_id_for_what_was_known_by_name(world, module):
    """What was said of the name is known of the id: the new value supersedes the old."""
    given = Mention(text="Acme Corp", ref="ent_acme_corp")
    world.says("user:sam", module.claim("Acme", "seats", 100), on=1)
    world.says("service:crm", module.claim(given, "seats", 200), on=2)
    world.says("user:sam", module.claim("Acme", "seats", 300), on=3)
    rows = named(world)

    assert ["300"] == world.values(4)
    assert "ent_acme_corp" == world.fact(300).subject.id
    assert rows["Acme"].root == rows["Acme Corp"].root == rows["Acme"].id


def test_two_ids_of_a_client_are_two_things(world, module):
    """Whatever it calls them."""
    for ref in ("ent_acme_us", "ent_acme_eu"):
        given = Mention(text="Acme", ref=ref)
        world.says("service:crm", module.claim(given, "seats", 100), on=1)

    assert ["100", "100"] == world.values(2)
    assert 2 == len({row.root for row in world.rows("entities") if row.is_given})


def test_a_concept_s_id_is_no_entity(world, module):
    """It is kept as it is."""
    given = Mention(text="budget", ref="concept_x")
    world.says("service:crm", about(module, given), on=1)

    assert ["concept_x"] == subjects(world)
    assert "Budget" not in named(world)


def test_a_name_that_names_nothing(world, module):
    """Punctuation alone is no entity, and what is said of it no fact."""
    world.says("user:sam", about(module, "..."), module.claim("Acme", "owner", "?!"), on=1)

    assert [] == world.rows("facts")


def test_mentions_alone_make_entities(world, module):
    """What is spoken of is known, also when nothing is said of it."""
    world.says("user:sam", on=1)
    world.extractions[1] = Extraction(mentions=(Mention(text="Berlin", kind="place"),))

    assert "place" == named(world)["Berlin"].kind
    assert ["Berlin"] == [one.name for one in world.rows("entities_named")[0].all]


def test_who_is_looked_up(world, module):
    """Readers find an entity by id, by actor, by a name of its scope, by any name."""
    world.says("user:melanie", about(module, "user:melanie"), about(module, "Acme"), on=1)
    store = world.fold()
    view = world.view()
    acme, she = named(world)["Acme"], named(world)["Melanie"]

    assert [she.id] * 2 + [acme.id] * 2 == [
        lookup(view, name, 1).id for name in ("user:melanie", "Melanie", "Acme Inc", acme.id)
    ]
    assert lookup(view, "Melanie", 2) is None
    assert lookup(view, "nobody", 1) is None
    assert store is world.store


def test_no_name_is_in_a_key(world, module):
    """Names are personal: keys hold numbers and hashes only."""
    world.says("user:melanie", module.claim("user:melanie", "name", "Melanie"), on=1)
    keys = b"".join(key for _, _, key in world.fold().rows)

    assert b"elanie" not in keys
