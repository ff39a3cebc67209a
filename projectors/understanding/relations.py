"""How do two things hang together?  A predicate as a relation between concepts (001 §7.5.1)."""

from functools import lru_cache
from typing import Final, NamedTuple

from schemas.layers import Fact
from schemas.vocabularies import RelationTerm, vocabularies_in

DEFAULT: Final = "default"
"""The vocabulary of the relations that need not be registered."""


class Relation(NamedTuple):
    """What leads from the subject to the object, and what back."""

    name: str
    back: str
    vocabulary: str = DEFAULT


_PREDICATES: Final = {
    Relation("is_a", "generalizes"): "is_a is type_of instance_of kind_of works_as has_role",
    Relation("part_of", "related_to"): (
        "part_of member_of belongs_to works_at works_for employed_by located_in lives_in based_in "
        "reports_to owned_by studies_at"
    ),
    Relation("specializes", "generalizes"): "specializes subclass_of variant_of",
    Relation("generalizes", "specializes"): "generalizes superclass_of",
    Relation("depends_on", "related_to"): "depends_on requires needs uses relies_on blocked_by",
    Relation("causes", "related_to"): "causes leads_to triggers results_in",
    Relation("contradicts", "contradicts"): "contradicts conflicts_with excludes",
    Relation("co_occurs_with", "co_occurs_with"): "co_occurs_with appears_with",
}
_RELATIONS: Final = {
    word: relation for relation, words in _PREDICATES.items() for word in words.split()
}
TOGETHER: Final = Relation("co_occurs_with", "co_occurs_with")
_OTHERWISE: Final = Relation("related_to", "related_to")


def relation_of(fact: Fact, encoded: bytes | None) -> Relation:
    """The relation that a fact between two things stands for: a registered one before ours."""
    word = fact.predicate.casefold()
    if encoded is not None:
        for scope, terms in _terms(encoded):
            is_here = scope is None or fact.scope == scope or fact.scope.startswith(f"{scope}/")
            if is_here and word in terms:
                return terms[word]
    return _RELATIONS.get(word, _OTHERWISE)


@lru_cache(maxsize=256)
def _terms(encoded: bytes) -> tuple[tuple[str | None, dict[str, Relation]], ...]:
    """The registered relations by every word they are known by, and where they hold."""
    return tuple(
        (
            vocabulary.scope,
            {
                word.casefold(): _registered(term, vocabulary.name)
                for term in vocabulary.relations
                for word in (term.id, *term.aliases)
            },
        )
        for vocabulary in vocabularies_in(encoded)
        if vocabulary.kind == "relation"
    )


def _registered(term: RelationTerm, vocabulary: str) -> Relation:
    return Relation(term.id, term.inverse or "related_to", vocabulary)
