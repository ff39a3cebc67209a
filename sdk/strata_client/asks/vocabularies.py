"""Written by scripts/client: asks of vocabularies."""

from typing import Literal, Required, TypedDict


class PredicateTerm(TypedDict, total=False):
    """A predicate, what its objects look like, and by which other words it is known."""

    id: Required[str]
    datatype: Literal[
        "string", "integer", "number", "boolean", "date", "duration", "money", "json", "entity"
    ]
    values: list[str | int | float | bool]
    closed: bool
    cardinality: Literal["single", "multi"] | None
    aliases: list[str]
    description: str | None


class RelationTerm(TypedDict, total=False):
    """A relation between concepts."""

    id: Required[str]
    inverse: str | None
    aliases: list[str]
    description: str | None


class VocabularyRequest(TypedDict, total=False):
    """A vocabulary to register."""

    kind: Literal["predicate", "relation", "closed", "open"]
    scope: str | None
    predicates: list[PredicateTerm]
    relations: list[RelationTerm]
    values: list[str]
    idempotency_key: str | None


class VocabularyUpdate(TypedDict, total=False):
    """What a vocabulary is from now on."""

    kind: Literal["predicate", "relation", "closed", "open"]
    scope: str | None
    predicates: list[PredicateTerm]
    relations: list[RelationTerm]
    values: list[str]
    idempotency_key: str | None
