"""What is an episode, given its events?  Name, summary, actors, chain: a pure function of members.

Sealing writes down what this says; a reader of an open episode asks it as of the moment it reads,
so that a later event never changes an earlier answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from typing import Final

import msgspec

from projectors.episodes.rows import Member
from projectors.text.stems import stem
from schemas import limits
from schemas.ids import format_id
from schemas.layers import CausalLink, CausalRole, Episode
from schemas.times import from_us

DECISION: Final = 1
OUTCOME: Final = 2
"""Bits of `Member.cues`: the words of an event speak of a choice, or of a result."""

_CUE_WEIGHT: Final = 0.15
_SENTENCES_MAX: Final = 3
_ALIKE: Final = 0.6
_NAMES_SHOWN: Final = 2
_TOPICS_SHOWN: Final = 3
_WORD: Final = re.compile(r"[^\W\d_][\w-]*")


def compose(opened: Episode, members: Iterable[Member]) -> Episode:
    """The episode that these members make, under the id, scope and times of the one that opened.

    `members` are those known at the moment that is asked about (`rows.known`), at least one.
    """
    ordered = sorted(members, key=lambda member: (member.observed_us, member.recorded_us))
    assert ordered, "an episode without events is none"
    counts = Counter(topic for member in ordered for topic in member.topics)
    weights = _centralities(ordered, counts)
    events = [format_id("evt", member.event) for member in ordered]
    started_at, ended_at = from_us(ordered[0].observed_us), from_us(ordered[-1].observed_us)
    return msgspec.structs.replace(
        opened,
        name=_name(ordered, counts),
        summary=_summary(ordered, weights),
        events=events,
        started_at=started_at,
        ended_at=ended_at,
        valid_from=started_at,
        actors_involved=list(dict.fromkeys(a for member in ordered for a in member.actors)),
        centrality_score=_score(weights),
        causal_chain=_chain(ordered, events),
        supports=events,
    )


def _centralities(members: Sequence[Member], counts: Counter[str]) -> list[float]:
    """How much of what the episode is about each event is about: the cosine of their topics."""
    norm = sqrt(sum(count * count for count in counts.values()))
    return [
        sum(counts[topic] for topic in member.topics) / (sqrt(len(member.topics)) * norm)
        if member.topics
        else 0.0
        for member in members
    ]


def _score(weights: Sequence[float]) -> float:
    """How well the events hold together, and less for the few, which always do."""
    topical = [weight for weight in weights if weight > 0.0]
    if not topical:
        return 0.0
    cohesion = sum(topical) / len(topical)
    return round(min(1.0, cohesion) * len(weights) / (len(weights) + 1), 4)


def _summary(members: Sequence[Member], weights: Sequence[float]) -> str:
    """The most central sentences that do not repeat each other, in the order of events."""

    def worth(at: int) -> tuple[float, int]:
        cues = members[at].cues
        bonus = _CUE_WEIGHT * (bool(cues & DECISION) + bool(cues & OUTCOME))
        return (-(weights[at] + bonus), at)

    chosen: list[int] = []
    for at in sorted(range(len(members)), key=worth):
        if chosen and not members[at].topics:
            continue
        if not any(_alike(members[at], members[other]) for other in chosen):
            chosen.append(at)
            if len(chosen) == _SENTENCES_MAX:
                break
    return " ".join(members[at].gist for at in sorted(chosen))


def _alike(left: Member, right: Member) -> bool:
    mine, theirs = set(left.topics), set(right.topics)
    if not mine or not theirs:
        return left.gist == right.gist
    return len(mine & theirs) / len(mine | theirs) >= _ALIKE


def _name(members: Sequence[Member], counts: Counter[str]) -> str:
    """What the client says it is, else whom and what it is about, else its first words."""
    intents = Counter(member.intent for member in members if member.intent is not None)
    if intents:
        return _title(intents.most_common(1)[0][0].replace("_", " "))
    named = Counter(name for member in members for name in member.names)
    names = [name for name, _ in named.most_common(_NAMES_SHOWN)]
    spoken = " ".join((*names, *(a for member in members for a in member.actors))).casefold()
    topics = [topic for topic, _ in counts.most_common() if topic not in spoken]
    about = ", ".join(_words(topics[:_TOPICS_SHOWN], members))
    if not names and not about:
        return _title(members[0].gist)
    return _title(": ".join(part for part in (" and ".join(names), about) if part))


def _words(topics: Sequence[str], members: Sequence[Member]) -> Iterator[str]:
    """Topics are stems; these are the words they first stood for."""
    for topic in topics:
        told = (member.gist for member in members if topic in member.topics)
        words = (word for gist in told for word in _WORD.findall(gist.lower()))
        yield next((word for word in words if stem(word) == topic), topic)


def _title(text: str) -> str:
    cut = text[: limits.EPISODE_NAME_CHARS_MAX].rstrip()
    return cut[:1].upper() + cut[1:]


def _chain(members: Sequence[Member], events: Sequence[str]) -> list[CausalLink]:
    """What set it off, what was decided, what came of it; everything else was a step."""
    results = [at for at, member in enumerate(members) if at > 0 and member.cues & OUTCOME]
    outcome = results[-1] if results else None

    def role(at: int) -> CausalRole:
        if at == 0:
            return "trigger"
        if at == outcome:
            return "outcome"
        return "decision" if members[at].cues & DECISION else "step"

    return [CausalLink(event=event, role=role(at)) for at, event in enumerate(events)]
