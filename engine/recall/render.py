"""How does a record read, and how is what was recalled kept from speaking for itself?

Every line is data: control and direction characters are made visible, a text of several lines is
indented so that it can begin no line of ours, and a fence with a word nobody could know beforehand
stands around the whole.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from engine.statements import statement
from projectors.text import text_of
from projectors.text.passages import sentences
from schemas.envelope import JsonContent, TripleContent
from schemas.layers import Belief, Concept, Episode, Event, Fact, Record

Thing = Event | Record

_LINE_BREAKS: Final = dict.fromkeys((0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029), "\n")
_INVISIBLE: Final = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        0x00AD,  # soft hyphen
        0x061C,
        0x180E,
        0x200B,
        0x200E,
        0x200F,
        *range(0x202A, 0x202F),  # direction: embeddings and overrides
        *range(0x2060, 0x2070),  # word joiner, isolates, invisible operators
        0xFEFF,
        *range(0xFFF9, 0xFFFC),
        *range(0xE0000, 0xE0080),  # tags: text that no reader sees and a model reads
    ),
    "\N{REPLACEMENT CHARACTER}",
)
_NEUTRAL: Final = _INVISIBLE | _LINE_BREAKS
_SUSPECT: Final = re.compile("[" + "".join(map(re.escape, map(chr, _NEUTRAL))) + "]")
_INDENT: Final = "\n  "
_EXTERNAL: Final = frozenset({"document", "tool_result", "imported"})
_plain_json: Final = msgspec.json.Encoder().encode


def neutral(text: str) -> str:
    """The text without characters that hide, reorder or break lines on their own."""
    if text.isprintable():  # most are, and that is told a hundred times faster
        return text
    text = text.replace("\r\n", "\n")
    return text.translate(_NEUTRAL) if _SUSPECT.search(text) else text


def indented(text: str) -> str:
    """Text whose every further line stands in from the margin."""
    text = neutral(text).strip()
    return text.replace("\n", _INDENT) if "\n" in text else text


# ── what a record says ───────────────────────────────────────────────────────────────────────


def words_of(thing: Thing) -> str:
    """What a record says, in words: an event verbatim, anything derived as a sentence."""
    match thing:
        case Event():
            return event_words(thing)
        case Fact():
            return statement(thing.subject, thing.predicate, thing.object, thing.polarity)
        case Belief():
            claim = thing.claim
            return statement(claim.subject, claim.predicate, claim.object)
        case Episode():
            return (
                thing.summary if thing.name in thing.summary else f"{thing.name}. {thing.summary}"
            )
        case Concept():
            name, summary = thing.name, thing.summary
            return summary if summary.startswith(name) else f"{name}: {summary}"


def event_words(event: Event) -> str:
    """The words of an event; what has none of its own is told."""
    content = event.content
    said = text_of(content)
    if said:
        return said
    if isinstance(content, TripleContent):
        triple = content.triple
        return statement(triple.subject, triple.predicate, triple.object)
    if isinstance(content, JsonContent):
        return _plain_json(content.data).decode()
    return f"{content.__struct_config__.tag} {getattr(content, 'blob_id', '')}".strip()


# ── where it comes from ──────────────────────────────────────────────────────────────────────


def source_of(thing: Thing) -> str:
    """Who says so."""
    match thing:
        case Event():
            return thing.actor
        case Fact():
            return thing.asserted_by or thing.extractor
        case Concept():
            return thing.synthesis_inputs.synthesizer
    return "derived"


def trust_of(thing: Thing) -> str:
    """How it is known: at first hand, from elsewhere, or derived. A state, not a score."""
    if not isinstance(thing, Event):
        return "derived"
    is_external = thing.modality in _EXTERNAL or getattr(thing.content, "role", "") == "tool"
    return "external" if is_external else "first_hand"


def when_of(thing: Thing) -> datetime:
    """The moment a line is dated by."""
    match thing:
        case Event():
            return thing.context.observed_at
        case Episode():
            return thing.started_at
    return thing.valid_from


def day(moment: datetime) -> str:
    """A date as people sort it."""
    return moment.isoformat()[:10]


def line_of(thing: Thing, marks: Sequence[str], words: str) -> str:
    """One line of the context block, without its marker."""
    words = indented(words)
    said = ", ".join([*_attributes(thing), *marks])
    match thing:
        case Event():
            moment = thing.context.observed_at.isoformat(" ")[:16]
            more = f" ({said})" if said else ""
            return f"- {moment} {thing.actor}{more}: {words}"
        case Episode():
            start, end = day(thing.started_at), day(thing.ended_at)
            return f"- {start if start == end else f'{start} to {end}'}: {words} ({said})"
    return f"- {words} ({said})"


def _attributes(thing: Thing) -> list[str]:
    """What a line says in brackets: since when, how sure, how it is known."""
    match thing:
        case Event():
            return [] if trust_of(thing) == "first_hand" else ["external"]
        case Episode():
            return [f"{len(thing.events)} events", "derived"]
        case Fact():
            until = [] if thing.valid_to is None else [f"until {day(thing.valid_to)}"]
            since = [f"since {day(thing.valid_from)}"]
            return [*since, *until, f"confidence {thing.confidence:.2f}", "derived"]
        case Belief():
            return [thing.stance, f"confidence {thing.confidence:.2f}", "derived"]
        case Concept():
            return [f"confidence {thing.confidence:.2f}", "derived"]


# ── excerpts ─────────────────────────────────────────────────────────────────────────────────


def excerpt_of(text: str, terms: Iterable[str], chars_max: int) -> tuple[int, int]:
    """Where the part of a long text begins and ends that says most about some words.

    Whole sentences where they fit: the run of them that holds most of the words.
    """
    wanted = [term.lower() for term in terms]
    spans = _bounded(text, chars_max)
    lowered = text.lower()
    worth = [sum(term in lowered[a:b] for term in wanted) for a, b in spans]
    best, best_worth = (0, min(len(text), chars_max)), -1
    first, total = 0, 0
    for last, (_, end) in enumerate(spans):
        total += worth[last]
        while end - spans[first][0] > chars_max:
            total -= worth[first]
            first += 1
        if total > best_worth:
            best, best_worth = (spans[first][0], end), total
    return best


def _bounded(text: str, chars_max: int) -> list[tuple[int, int]]:
    """Sentences, none longer than the bound."""
    found = []
    for first, last in sentences(text):
        found += [(at, min(at + chars_max, last)) for at in range(first, last, chars_max)]
    return found or [(0, min(len(text), chars_max))]
