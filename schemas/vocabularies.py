"""Which words does a tenant use for its predicates and relations?  (001 §7.3.1, §7.5.1, §8.14)"""

from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.envelope import IdempotencyKey
from schemas.scope import ScopePath
from schemas.times import Instant

Datatype = Literal[
    "string", "integer", "number", "boolean", "date", "duration", "money", "json", "entity"
]
Kind = Literal["predicate", "relation"]

VocabularyName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$(?!\n)", description="e.g. sales_v1")
]
TermId = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$(?!\n)")]
Phrase = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]
Aliases = Annotated[list[Phrase], Meta(max_length=limits.TERM_ALIASES_MAX)]


class PredicateTerm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A predicate, what its objects look like, and by which other words it is known.

    `closed` says that no value but these is one. Without a cardinality it is as the reader of the
    text found it: one value at a time, or many.
    """

    id: TermId
    datatype: Datatype = "string"
    values: Annotated[list[str | int | float | bool], Meta(max_length=limits.TERM_VALUES_MAX)] = []
    closed: bool = False
    cardinality: Literal["single", "multi"] | None = None
    aliases: Aliases = []
    description: Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)] | None = None


class RelationTerm(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A relation between concepts."""

    id: TermId
    inverse: TermId | None = None
    aliases: Aliases = []
    description: Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)] | None = None


class Vocabulary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A tenant's own terms. With a scope they hold there and below, without one everywhere."""

    name: VocabularyName
    kind: Kind = "predicate"
    scope: ScopePath | None = None
    predicates: Annotated[list[PredicateTerm], Meta(max_length=limits.VOCABULARY_TERMS_MAX)] = []
    relations: Annotated[list[RelationTerm], Meta(max_length=limits.VOCABULARY_TERMS_MAX)] = []


class VocabularyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A vocabulary as it stands, and how it came to that."""

    vocabulary: Vocabulary
    created_at: Instant
    updated_at: Instant
    by: str


class ActiveVocabularies(msgspec.Struct, frozen=True, kw_only=True):
    """Every vocabulary of a tenant in one row, for a projector that asks with each entry.

    They stand in one piece of bytes: `vocabularies_in` reads it once, however often it is asked.
    """

    encoded: bytes


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[Vocabulary]).decode


def active(vocabularies: list[Vocabulary]) -> ActiveVocabularies:
    """The row for these vocabularies, in the order of their names."""
    in_order = sorted(vocabularies, key=lambda vocabulary: vocabulary.name)
    return ActiveVocabularies(encoded=_pack(in_order))


@lru_cache(maxsize=256)
def vocabularies_in(encoded: bytes) -> tuple[Vocabulary, ...]:
    """The vocabularies of a tenant's row, in the order of their names."""
    return tuple(_unpack(encoded))


# ── requests and answers ─────────────────────────────────────────────────────────────────────


class VocabularyUpdate(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a vocabulary is from now on.

    `closed` and `open` are the running system's kinds: one predicate, named as the vocabulary is,
    with these `values` and no others, or with these first.
    """

    name: VocabularyName | None = None
    kind: Literal["predicate", "relation", "closed", "open"] = "predicate"
    scope: ScopePath | None = None
    predicates: Annotated[list[PredicateTerm], Meta(max_length=limits.VOCABULARY_TERMS_MAX)] = []
    relations: Annotated[list[RelationTerm], Meta(max_length=limits.VOCABULARY_TERMS_MAX)] = []
    values: Annotated[list[Phrase], Meta(max_length=limits.TERM_VALUES_MAX)] = []
    idempotency_key: IdempotencyKey | None = None


class VocabularyRequest(
    VocabularyUpdate, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A vocabulary to register."""

    name: VocabularyName


class VocabularyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A vocabulary as readers get it."""

    name: VocabularyName
    kind: Kind
    scope: ScopePath | None
    predicates: list[PredicateTerm]
    relations: list[RelationTerm]
    created_at: Instant
    updated_at: Instant


class VocabularyPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of vocabularies, in the order of their names."""

    items: list[VocabularyRecord]
    next_cursor: str | None
    has_more: bool
