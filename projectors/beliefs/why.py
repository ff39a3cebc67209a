"""Why is it believed?  The graph from a belief to the events, and the same in words (001 §8.7.6).

Pure, for readers: what a belief names is looked up as it was known at the moment asked about. The
narrative is put together from the records and says nothing that they do not: what is held, on which
facts, since when, how surely, against what. It claims no cause that was not recorded.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from projectors.beliefs import calibration
from projectors.beliefs.rows import Held
from projectors.text import text_of
from projectors.text.statements import day, statement
from schemas import limits
from schemas.layers import (
    Belief,
    Episode,
    Event,
    Evidence,
    Fact,
    Stance,
)
from schemas.reads import SupportGraph, Why, WhyEdge, WhyNode

Found = Belief | Fact | Episode | Event
Lookup = Callable[[str], Found | None]
"""A record or an event by its id, as the reader may know it; None when it may not, or it is gone.
"""

NARRATOR: Final = "template"

_HELD: Final[dict[Stance, str]] = {
    "supported": "I believe that {claim}.",
    "contradicted": "I do not believe that {claim}.",
    "uncertain": "I am not sure that {claim}.",
    "deprecated": "That {claim} is no longer kept up.",
}


def as_known(belief: Belief, at: datetime, held: Held | None = None) -> Belief:
    """A version as it was at a moment, with what made it partial then.

    `held` is the row of `beliefs_held` when the version is the latest; a former one carries it.
    """
    if belief.partial:
        return belief
    since = belief.held_from if held is None else held.since
    if since is not None and since <= at:
        return _partial(belief, "revision_in_progress")
    if calibration.is_stale(belief.calibration, at):
        return _partial(belief, "calibration_stale")
    return belief


def _partial(belief: Belief, reason: str) -> Belief:
    return msgspec.structs.replace(belief, partial=True, partial_reason=reason)


def why(belief: Belief, lookup: Lookup) -> Why:
    """The belief, all that it rests on down to the events, and what that comes to in words."""
    return Why(
        belief=belief,
        support_graph=_Graph(belief, lookup).graph(),
        narrative=narrative(belief, lookup),
        narrative_model=NARRATOR,
    )


# ── the graph ────────────────────────────────────────────────────────────────────────────────


class _Graph:
    """Nodes and edges in the order they are come upon, each once."""

    def __init__(self, belief: Belief, lookup: Lookup) -> None:
        self._lookup = lookup
        self._nodes: dict[str, WhyNode] = {}
        self._edges: dict[tuple[str, str, str], WhyEdge] = {}
        self._events = 0
        self._node(WhyNode(id=belief.id, type="belief", summary=_summary(belief)))
        for evidence in belief.supports:
            self._evidence(belief, evidence)
        for rival in belief.contradicts:
            self._rival(belief, rival.belief_id)

    def graph(self) -> SupportGraph:
        """All of it."""
        return SupportGraph(nodes=list(self._nodes.values()), edges=list(self._edges.values()))

    def _node(self, node: WhyNode) -> None:
        self._nodes.setdefault(node.id, node)

    def _edge(self, start: str, to: str, relation: str) -> None:
        edge = msgspec.convert({"from": start, "to": to, "relation": relation}, WhyEdge)
        self._edges.setdefault((start, to, relation), edge)

    def _evidence(self, belief: Belief, evidence: Evidence) -> None:
        found = self._lookup(evidence.id)
        summary = _summary(found) if found is not None else "no longer to be looked at"
        self._node(
            WhyNode(
                id=evidence.id,
                type=evidence.type,
                summary=summary,
                weight=evidence.weight,
                polarity=evidence.polarity,
            )
        )
        relation = "supported_by" if evidence.polarity == "supports" else "opposed_by"
        self._edge(belief.id, evidence.id, relation)
        if isinstance(found, Fact):
            for event_id in found.supports:
                self._event(found.id, event_id)

    def _event(self, fact_id: str, event_id: str) -> None:
        if self._events >= limits.CITED_EVENTS_MAX and event_id not in self._nodes:
            return
        event = self._lookup(event_id)
        if not isinstance(event, Event):
            return
        self._events += event_id not in self._nodes
        self._node(WhyNode(id=event_id, type="event", summary=_summary(event)))
        self._edge(fact_id, event_id, "extracted_from")
        for name in event.derives:
            episode = self._lookup(name) if name.startswith("ep_") else None
            if isinstance(episode, Episode):
                self._node(WhyNode(id=name, type="episode", summary=_summary(episode)))
                self._edge(name, event_id, "contains")

    def _rival(self, belief: Belief, rival_id: str) -> None:
        rival = self._lookup(rival_id)
        if isinstance(rival, Belief):
            self._node(WhyNode(id=rival_id, type="belief", summary=_summary(rival)))
            self._edge(belief.id, rival_id, "contradicts")


def _summary(found: Found) -> str:
    said = _words(found)
    return said if len(said) <= limits.SUMMARY_CHARS_MAX else f"{said[: limits.SUMMARY_CHARS_MAX]}…"


def _words(found: Found) -> str:
    if isinstance(found, Fact):
        return statement(found.subject, found.predicate, found.object, found.polarity)
    if isinstance(found, Belief):
        return statement(found.claim.subject, found.claim.predicate, found.claim.object)
    if isinstance(found, Episode):
        return found.summary or found.name
    return text_of(found.content) or f"{found.modality} by {found.actor}"


# ── in words ─────────────────────────────────────────────────────────────────────────────────


def narrative(belief: Belief, lookup: Lookup) -> str:
    """What the records say about a belief, in order: the claim, the evidence, the times."""
    claim = statement(belief.claim.subject, belief.claim.predicate, belief.claim.object)
    parts = [_HELD[belief.stance].format(claim=claim), _sureness(belief)]
    for polarity, verb in (("supports", "for"), ("against", "against")):
        evidence = [one for one in belief.supports if one.polarity == polarity]
        if evidence:
            parts.append(_spoken(evidence, verb, lookup))
    unnamed = belief.evidence_count - len(belief.supports)
    if unnamed > 0:
        parts.append(f"{_count(unnamed, 'further fact')} weighed in and {_are(unnamed)} not named.")
    if belief.supporting_evidence_redacted:
        share = f"{belief.supporting_evidence_redacted_fraction:.0%}"
        parts.append(f"{share} of the evidence was redacted.")
    parts.append(_validity(belief))
    parts.append(_revisions(belief))
    parts += [
        f"It is at odds with {one.belief_id} (tension {one.tension:.2f}, {one.resolution})."
        for one in belief.contradicts
    ]
    return " ".join(parts)


def _sureness(belief: Belief) -> str:
    interval = belief.confidence_interval
    return (
        f"The confidence is {belief.confidence:.2f}, with a {interval.level:.0%} interval "
        f"from {interval.lower:.2f} to {interval.upper:.2f}."
    )


def _spoken(evidence: list[Evidence], verb: str, lookup: Lookup) -> str:
    """The facts on one side, heaviest first."""
    ordered = sorted(evidence, key=lambda one: (-one.weight, one.id))
    named = "; ".join(_told(one, lookup(one.id)) for one in ordered[: limits.NARRATED_MAX])
    more = len(ordered) - limits.NARRATED_MAX
    rest = f"; and {more} more" if more > 0 else ""
    speak = "speaks" if len(ordered) == 1 else "speak"
    return f"{_count(len(ordered), 'fact')} {speak} {verb} it: {named}{rest}."


def _told(evidence: Evidence, found: Found | None) -> str:
    if not isinstance(found, Fact):
        return f"{evidence.id}, which can no longer be looked at"
    said = statement(found.subject, found.predicate, found.object, found.polarity)
    by = f" by {found.asserted_by}" if found.asserted_by is not None else ""
    return (
        f"“{said}”, so from {day(found.valid_from)}, told{by} "
        f"with confidence {found.confidence:.2f} ({found.id})"
    )


def _validity(belief: Belief) -> str:
    if belief.valid_to is None:
        return f"It holds from {day(belief.valid_from)} on."
    until = f"It held from {day(belief.valid_from)} until {day(belief.valid_to)}"
    return until + (f", then came {belief.superseded_by}." if belief.superseded_by else ".")


def _revisions(belief: Belief) -> str:
    if belief.revision_count == 0:
        return f"It was first held on {day(belief.last_revised_at)} and has not been revised."
    times = _count(belief.revision_count, "time")
    return f"It was revised {times}, last on {day(belief.last_revised_at)}."


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
