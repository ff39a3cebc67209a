"""What do plain words assert?"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from projectors.text.candidates import Candidate, Mention, Value
from projectors.text.dates import resolve
from projectors.text.passages import sentences
from projectors.text.predicates import behaviour
from projectors.text.speakers import Speakers
from projectors.text.stems import singular

_QUANTITY: Final = re.compile(
    r"^([A-Z]\w+) (?:moved|went|upgraded|grew|increased|dropped) to (\d+) ([a-z]+)"
)
_PLAIN: Final = tuple(
    (re.compile(rf"\bI {words} ([^.,;!]+)"), predicate)
    for words, predicate in (
        ("live in", "lives_in"),
        ("moved to", "lives_in"),
        ("work (?:at|for)", "works_at"),
        ("(?:like|love)", "likes"),
        ("(?:hate|dislike)", "dislikes"),
    )
)


def statements(text: str, speakers: Speakers, anchor: datetime) -> Iterator[Candidate]:
    """The assertions of a text, in order."""
    for first, last in sentences(text):
        sentence = text[first:last].strip()
        if sentence.endswith("?"):
            continue
        counted = _QUANTITY.match(sentence)
        if counted is not None:
            name, number, unit = counted.groups()
            yield _found(
                Mention(text=name, kind="organisation"),
                f"{singular(unit)}_count",
                Value(datatype="integer", value=int(number)),
                sentence,
            )
        for pattern, predicate in _PLAIN:
            match = pattern.search(sentence)
            if match is not None and speakers.me is not None:
                when = resolve(sentence, anchor)
                thing = Mention(text=match[1].strip())
                found = _found(speakers.me, predicate, thing, sentence)
                yield found if when is None else _dated(found, when.start)


def _found(subject: Mention, predicate: str, value: Mention | Value, sentence: str) -> Candidate:
    known = behaviour(predicate)
    return Candidate(
        subject=subject,
        predicate=predicate,
        object=value,
        confidence=0.9,
        cardinality=known.cardinality,
        kind=known.kind,
        sentence=sentence,
    )


def _dated(found: Candidate, valid_from: datetime | None) -> Candidate:
    return Candidate(
        **{f: getattr(found, f) for f in found.__struct_fields__} | {"valid_from": valid_from}
    )
