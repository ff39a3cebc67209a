"""Which words has a tenant chosen for its predicates and relations?

Kept twice from one function: inline for those who read what they wrote, staged for the projectors
that map free words to terms and may not look at inline views (ADR 0003).
"""

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from schemas.entry import Directive, DropVocabulary, Entry, SetVocabulary
from schemas.vocabularies import (
    ActiveVocabularies,
    Vocabulary,
    VocabularyRow,
    active,
    vocabularies_in,
)

ACTIVE_KEY = b""


def vocabulary_key(name: str) -> bytes:
    """Names are a tenant's own and stay out of keys."""
    return sha256(name.encode()).digest()[:16]


def project(entry: Entry, view: View) -> Iterator[Change]:
    """The vocabularies after one entry: a row each, and all of them in one."""
    body = entry.body
    if not isinstance(body, Directive):
        return
    match body.command:
        case SetVocabulary(vocabulary=vocabulary):
            key = vocabulary_key(vocabulary.name)
            known: VocabularyRow | None = view.get("vocabularies", key)
            row = VocabularyRow(
                vocabulary=vocabulary,
                created_at=entry.recorded_at if known is None else known.created_at,
                updated_at=entry.recorded_at,
                by=entry.caller,
            )
            yield Put(table="vocabularies", key=key, value=row)
            yield _active(view, vocabulary.name, [vocabulary])
        case DropVocabulary(name=name):
            if view.get("vocabularies", vocabulary_key(name)) is not None:
                yield Drop(table="vocabularies", key=vocabulary_key(name))
                yield _active(view, name, [])
        case _:
            return


def _active(view: View, name: str, instead: list[Vocabulary]) -> Put:
    row: ActiveVocabularies | None = view.get("vocabularies_active", ACTIVE_KEY)
    known = () if row is None else vocabularies_in(row.encoded)
    others = [vocabulary for vocabulary in known if vocabulary.name != name]
    value = active([*others, *instead])
    return Put(table="vocabularies_active", key=ACTIVE_KEY, value=value)


_TABLES: dict[str, type[msgspec.Struct]] = {
    "vocabularies": VocabularyRow,
    "vocabularies_active": ActiveVocabularies,
}

VOCABULARIES = Projector(
    name="vocabularies", version=1, tables=_TABLES, project=project, reads_experiences=False
)
VOCABULARIES_INLINE = Projector(
    name="vocabularies_inline", version=1, tables=_TABLES, project=project, reads_experiences=False
)
