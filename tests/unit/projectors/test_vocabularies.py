"""Which vocabularies follow from an entry?"""

import pytest

from projectors.base import Drop
from projectors.vocabularies import (
    ACTIVE_KEY,
    VOCABULARIES,
    VOCABULARIES_INLINE,
    vocabulary_key,
)
from schemas.entry import Directive, DropVocabulary, SetVocabulary
from schemas.vocabularies import PredicateTerm, Vocabulary, vocabularies_in

SALES = Vocabulary(name="sales_v1", predicates=[PredicateTerm(id="seat_count", datatype="integer")])
PEOPLE = Vocabulary(name="people", predicates=[PredicateTerm(id="lives_in", datatype="entity")])


def take(entry, overlay, projector=VOCABULARIES):
    """Fold one entry; what it changed."""
    changes = list(projector.project(entry, overlay.of(entry.tenant_no)))
    for change in changes:
        overlay.apply(entry.tenant_no, change)
    return changes


def active(overlay):
    """What a projector that asks with every entry would find."""
    row = overlay.get(1, "vocabularies_active", ACTIVE_KEY)
    return [] if row is None else list(vocabularies_in(row.encoded))


def setting(vocabulary):
    return Directive(command=SetVocabulary(vocabulary=vocabulary))


@pytest.mark.parametrize("projector", [VOCABULARIES, VOCABULARIES_INLINE])
def test_a_vocabulary_is_kept_by_a_hash_of_its_name(entry, overlay, projector):
    """One row of its own; no name in a key."""
    first = entry(1, setting(SALES))
    take(first, overlay, projector)
    row = overlay.get(1, "vocabularies", vocabulary_key("sales_v1"))

    assert (SALES, first.recorded_at, first.recorded_at, "user:alice") == (
        row.vocabulary,
        row.created_at,
        row.updated_at,
        row.by,
    )
    assert b"sales" not in vocabulary_key("sales_v1")


def test_all_of_a_tenant_stand_in_one_row(entry, overlay):
    """In the order of their names, so that one `get` finds them, whatever came first."""
    take(entry(1, setting(SALES)), overlay)
    take(entry(2, setting(PEOPLE)), overlay)

    assert [PEOPLE, SALES] == active(overlay)


def test_a_later_one_of_the_same_name_takes_its_place(entry, overlay):
    """It began when the first came, and is as the last says."""
    later = Vocabulary(name="sales_v1", predicates=[PredicateTerm(id="deal_stage")])
    first, second = entry(1, setting(SALES)), entry(2, setting(later))
    take(first, overlay)
    take(second, overlay)
    row = overlay.get(1, "vocabularies", vocabulary_key("sales_v1"))

    assert (first.recorded_at, second.recorded_at) == (row.created_at, row.updated_at)
    assert [later] == active(overlay)


def test_a_dropped_one_is_gone(entry, overlay):
    """From its own row and from the row of all."""
    take(entry(1, setting(SALES)), overlay)
    take(entry(2, setting(PEOPLE)), overlay)
    changes = take(entry(3, Directive(command=DropVocabulary(name="sales_v1"))), overlay)

    assert Drop(table="vocabularies", key=vocabulary_key("sales_v1")) in changes
    assert [PEOPLE] == active(overlay)


def test_dropping_what_is_not_there_changes_nothing(entry, overlay):
    """A second delete in the log is harmless."""
    assert [] == take(entry(1, Directive(command=DropVocabulary(name="none"))), overlay)


def test_other_entries_change_nothing(entry, said, overlay):
    """An experience costs one look at its kind."""
    assert [] == take(said(1), overlay)
    assert [] == take(entry(2, None), overlay)
