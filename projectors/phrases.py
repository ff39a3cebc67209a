"""Which words has a tenant given a stretch of time?  (001 §8.17)

Inline: who has registered a phrase asks with it next.
"""

from collections.abc import Iterator
from hashlib import sha256

from projectors.base import Change, Drop, Projector, Put, View
from schemas.entry import Directive, DropPhrase, Entry, SetPhrase
from schemas.temporal import PhraseRow


def phrase_key(name: str) -> bytes:
    """Names are a tenant's own and stay out of keys."""
    return sha256(name.encode()).digest()[:16]


def project(entry: Entry, view: View) -> Iterator[Change]:
    """The phrases after one entry."""
    body = entry.body
    if not isinstance(body, Directive):
        return
    match body.command:
        case SetPhrase(phrase=phrase):
            row = PhraseRow(phrase=phrase, created_at=entry.recorded_at, by=entry.caller)
            yield Put(table="phrases", key=phrase_key(phrase.name), value=row)
        case DropPhrase(name=name):
            if view.get("phrases", phrase_key(name)) is not None:
                yield Drop(table="phrases", key=phrase_key(name))
        case _:
            return


PHRASES = Projector(
    name="phrases",
    version=1,
    tables={"phrases": PhraseRow},
    project=project,
    reads_experiences=False,
)
