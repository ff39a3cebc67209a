"""What of an event matters to the episode it belongs to?  Its times, session, topics and cues."""

import re
from typing import Final

from projectors.episodes.compose import DECISION, OUTCOME
from projectors.episodes.rows import Member
from projectors.episodes.shapes import Signs
from projectors.text import extract, text_of
from projectors.text.passages import sentences
from projectors.text.stems import word_set
from schemas import limits
from schemas.entry import Entry
from schemas.envelope import Envelope
from schemas.times import to_us

_DECISIONS: Final = word_set(
    """
    accept accepted accepting agree agreed agrees approval approve approved approves choose chooses
    choosing chose chosen commit commits committed confirm confirmed confirms decide decided decides
    deciding decision decisions opted picked rejected rejects settled signed voted
    """
)
_OUTCOMES: Final = word_set(
    """
    achieved cancelled canceled closed completed concluded delivered deployed done failed fails
    failure finished fixed launched lost merged paid passed released resolved result results shipped
    signed solved succeeded success won
    """
)
_WORD: Final = re.compile(r"[a-z]+")
_NAMED: Final = frozenset({"person", "organisation", "place"})
_RESULTS: Final = frozenset({"tool_result"})


def signs_of(entry: Entry, envelope: Envelope) -> Signs:
    """What the grouping needs to know of an experience."""
    context = envelope.context
    actor, subject = envelope.observed_actor, envelope.subject
    found = extract(entry)
    text = text_of(envelope.content)[: limits.EPISODE_TEXT_CHARS_MAX]
    topics = found.topics[: limits.TOPICS_MAX]
    named = (mention.text for mention in found.mentions if mention.kind in _NAMED)
    actors = [actor.id if actor is not None else entry.caller]
    if subject is not None and subject.id not in actors:
        actors.append(subject.id)
    member = Member(
        event=entry.id,
        observed_us=to_us(context.observed_at),
        recorded_us=to_us(entry.recorded_at),
        actors=tuple(actors),
        gist=_gist(text, topics) or envelope.modality,
        topics=topics,
        names=tuple(dict.fromkeys(named))[: limits.EPISODE_EVENT_NAMES_MAX],
        cues=_cues(text, envelope.modality),
        intent=context.intent,
    )
    session = (actor.session if actor is not None else None) or (
        subject.session if subject is not None else None
    )
    return Signs(
        member=member,
        scope_no=entry.scope_no,
        session=session,
        preceded_by=tuple(context.preceded_by[: limits.EPISODE_NAMED_MAX]),
    )


def _gist(text: str, topics: tuple[str, ...]) -> str:
    """The sentence that says most of what the event is about, cut to a length."""
    if len(text) > limits.EPISODE_GIST_CHARS_MAX:
        cuts = [text[start:end] for start, end in sentences(text)]
        # A stem stands at the beginning of its words; the first of equals is taken.
        text = max(cuts, key=lambda cut: _mentioned(cut.lower(), topics), default="")
    line = " ".join(text.split())
    if len(line) <= limits.EPISODE_GIST_CHARS_MAX:
        return line
    return line[: limits.EPISODE_GIST_CHARS_MAX - 1].rstrip() + "…"


def _mentioned(text: str, topics: tuple[str, ...]) -> int:
    return sum(topic in text for topic in topics)


def _cues(text: str, modality: str) -> int:
    words = set(_WORD.findall(text.lower()))
    decision = 0 if words.isdisjoint(_DECISIONS) else DECISION
    has_outcome = modality in _RESULTS or not words.isdisjoint(_OUTCOMES)
    return decision | (OUTCOME if has_outcome else 0)
