"""Written by scripts/client: models of vocabularies."""

from datetime import datetime

from msgspec import Struct


class PredicateTerm(Struct, frozen=True, kw_only=True):
    """A predicate, what its objects look like, and by which other words it is known."""

    id: str
    datatype: str = "string"
    values: list[str | int | float | bool] = []
    closed: bool = False
    cardinality: str | None = None
    aliases: list[str] = []
    description: str | None = None


class RelationTerm(Struct, frozen=True, kw_only=True):
    """A relation between concepts."""

    id: str
    inverse: str | None = None
    aliases: list[str] = []
    description: str | None = None


class VocabularyRecord(Struct, frozen=True, kw_only=True):
    """A vocabulary as readers get it."""

    name: str
    kind: str
    scope: str | None
    predicates: list[PredicateTerm]
    relations: list[RelationTerm]
    created_at: datetime
    updated_at: datetime


class VocabularyPage(Struct, frozen=True, kw_only=True):
    """A page of vocabularies, in the order of their names."""

    items: list[VocabularyRecord]
    next_cursor: str | None
    has_more: bool
