"""What does an entry claim, of what, from when to when, and on whose word?

Candidates become claims: their ends are entities or literals, their predicates terms where a
vocabulary has one, their times microseconds, and their speakers trusted more or less.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from projectors.base import View
from projectors.facts.keys import line_key, said, value_of
from projectors.facts.rows import DENIED, SAID, Contrary
from projectors.facts.shapes import Claim, Shape, Source
from projectors.text import Candidate, Extraction, Value
from projectors.text.shapes import Term
from projectors.text.speakers import speakers_of
from projectors.text.terms import best
from schemas.entry import Annotation, Entry, envelope_of
from schemas.envelope import Directives, Envelope, JsonContent, Message, TripleContent
from schemas.layers import Cardinality, ConceptRef, EntityRef, LiteralValue, Node, Polarity
from schemas.times import seconds_of, to_us
from schemas.vocabularies import vocabularies_in

_MACHINES: Final = frozenset({"agent", "service", "tool", "system"})
_PEOPLE: Final = frozenset({"person", "actor"})
LOW: Final = 0
HIGH: Final = 1
FIRST_US: Final = to_us(datetime.min.replace(tzinfo=UTC))


def source_of(entry: Entry, extraction: Extraction) -> Source | None:
    """The source of an entry's claims; None when it makes none.

    A model's reading of an event claims what the event does: the words are the same speaker's.
    """
    body = entry.body
    envelope = envelope_of(body)
    if envelope is None:
        return None
    asked = envelope.directives or Directives()
    ttl = asked.ttl_for_event_layer
    me = speakers_of(envelope, entry.caller).me
    return Source(
        event_id=body.about if isinstance(body, Annotation) else entry.event_id,
        scope=entry.home_scope,
        scope_no=entry.home_scope_no,
        observed_at=envelope.context.observed_at,
        speaker=_speaker(envelope, entry.caller) if me is None else me.actor,
        is_exact=isinstance(envelope.content, TripleContent | JsonContent),
        is_machine=_is_machine(envelope, entry.caller),
        extractor=extraction.extractor,
        floor=asked.confidence_floor or 0.0,
        no_supersede=asked.no_supersede,
        ttl_s=None if ttl is None else seconds_of(ttl),
    )


def _speaker(envelope: Envelope, caller: str) -> str:
    return envelope.observed_actor.id if envelope.observed_actor is not None else caller


def _is_machine(envelope: Envelope, caller: str) -> bool:
    """Whether the words are a machine's own: a tool's result, an assistant's turn, an agent's."""
    content = envelope.content
    role = content.role if isinstance(content, Message) else "user"
    actor = _speaker(envelope, caller)
    return (
        role in {"assistant", "tool"}
        or envelope.modality == "tool_result"
        or (envelope.subject is None and actor.partition(":")[0] in _MACHINES)
    )


def trust_in(source: Source, candidate: Candidate) -> int:
    """Whom to believe about what (ADR 0022): hearsay less, and machines less about people."""
    if candidate.source is not None:
        return LOW
    about = candidate.subject
    is_own = about.actor is not None and about.actor == source.speaker
    if source.is_exact or is_own or not source.is_machine:
        return HIGH
    return LOW if about.actor is not None or about.kind in _PEOPLE else HIGH


def claims_of(source: Source, extraction: Extraction, named: Any, view: View) -> Iterator[Claim]:
    """The claims of candidates; `named` is what the mentions of the same entry mean."""
    vocabularies = _vocabularies(view, source.scope)
    for at, candidate in enumerate(extraction.candidates):
        confidence = _share(candidate.confidence)
        times = _times(candidate, source.observed_at)
        if confidence < source.floor or times is None:
            continue
        subject, value = named.subjects[at], named.objects[at]
        if not subject.id or not candidate.predicate or (value is not None and not value.id):
            continue
        node = _literal(candidate.object) if value is None else _thing(value.id, value.name)
        shape = _mapped(candidate, node, vocabularies)
        yield _claim(
            source.scope_no,
            candidate,
            shape,
            subject=_thing(subject.id, subject.name),
            roots=(subject.root, None if value is None else value.root),
            times=times,
            weight=(confidence, trust_in(source, candidate)),
        )


def _claim(
    scope_no: int,
    candidate: Candidate,
    shape: Shape,
    *,
    subject: Node,
    roots: tuple[str, str | None],
    times: tuple[int, int | None, bool],
    weight: tuple[float, int],
) -> Claim:
    root, predicate, what = roots[0], shape.predicate, said(shape.object, roots[1])
    polarity: Polarity = candidate.polarity
    contrary = None
    value = SAID if polarity == "positive" else DENIED
    if shape.cardinality == "single":
        # All values of a predicate that holds one at a time lie on one line; what is denied of
        # each lies on a line of its own.
        main, other = (
            line_key(scope_no, "values", root, predicate),
            line_key(scope_no, "object", root, predicate, what),
        )
        contrary, value = Contrary(other, DENIED), value_of(what)
        if polarity == "negative":
            main, contrary, value = other, Contrary(main, value), DENIED
    else:
        # Something that happened twice is two facts: each day has a line of its own.
        is_dated = candidate.kind == "event" and candidate.valid_from is not None
        day = candidate.valid_from.date().isoformat() if is_dated and candidate.valid_from else ""
        main = line_key(scope_no, "object", root, predicate, what, day)
    return Claim(
        subject=subject,
        root=root,
        predicate=predicate,
        object=shape.object,
        polarity=polarity,
        cardinality=shape.cardinality,
        kind=candidate.kind,
        confidence=weight[0],
        trust=weight[1],
        from_us=times[0],
        to_us=times[1],
        is_dated=candidate.valid_from is not None,
        ends=times[2],
        is_end_dated=candidate.valid_to is not None,
        corrects=candidate.corrects,
        scope_no=scope_no,
        said=what,
        main=main,
        value=value,
        contrary=contrary,
        vocabulary=shape.vocabulary,
        vocabulary_confidence=shape.confidence,
    )


def _share(confidence: float) -> float:
    """A confidence between 0 and 1, whatever was given."""
    return round(min(max(confidence, 0.0), 1.0), 4) if confidence == confidence else 0.0  # noqa: PLR0124 - not a number


def _times(candidate: Candidate, observed_at: datetime) -> tuple[int, int | None, bool] | None:
    """From when to when it is so, and whether that it is over is what is said.

    Of what is over, and nobody said when it began, the first is when it was still so. None when the
    text says that it ended before it began.
    """
    began_at, ended_at = candidate.valid_from, candidate.valid_to
    if candidate.ends and ended_at is None:
        ended_at = observed_at
    is_over = candidate.ends or (
        began_at is None and ended_at is not None and ended_at <= observed_at
    )
    to = None if ended_at is None else to_us(ended_at)
    if began_at is None and is_over and to is not None:
        start = to - 1
    else:
        start = to_us(began_at or observed_at)
    if start < FIRST_US or (to is not None and to <= start):
        return None
    return start, to, is_over


def _thing(entity_id: str, name: str) -> Node:
    if entity_id.startswith("concept_"):
        return ConceptRef(id=entity_id, name=name)
    return EntityRef(id=entity_id, name=name)


def _literal(value: object) -> Node:
    assert isinstance(value, Value), "a mention that was not resolved"
    return LiteralValue(datatype=value.datatype, value=value.value)


def expiry_us(source: Source, recorded_at: datetime) -> int | None:
    """When what rests on an event alone is known no more: with the event itself."""
    if source.ttl_s is None:
        return None
    try:
        return to_us(recorded_at + timedelta(seconds=source.ttl_s))
    except OverflowError:
        return None


# ── vocabularies (001 §7.3.1) ────────────────────────────────────────────────────────────────

_Vocabularies = tuple[tuple[str, tuple[Term, ...]], ...]


def _vocabularies(view: View, scope: str) -> _Vocabularies:
    row = view.get("vocabularies_active", b"")
    return () if row is None else _terms_in(row.encoded, scope)


@lru_cache(maxsize=1024)
def _terms_in(encoded: bytes, scope: str) -> _Vocabularies:
    """The terms that hold in a scope: those of the tenant, of the scope and of those above it."""
    return tuple(
        (
            one.name,
            tuple(
                Term(
                    id=term.id,
                    datatype=term.datatype,
                    values=tuple(term.values),
                    cardinality=term.cardinality,
                    aliases=tuple(term.aliases),
                )
                for term in one.predicates
            ),
        )
        for one in vocabularies_in(encoded)
        if one.kind == "predicate"
        and (one.scope is None or one.scope == scope or scope.startswith(f"{one.scope}/"))
    )


def _mapped(candidate: Candidate, node: Node, vocabularies: _Vocabularies) -> Shape:
    """The predicate as a term, when a vocabulary has one near enough; else as it was said."""
    value = node.value if isinstance(node, LiteralValue) else node.name
    found = [
        (match.confidence, name, match)
        for name, terms in vocabularies
        if (match := best(candidate.predicate, value, terms)) is not None
    ]
    if not found:
        return Shape(candidate.predicate, node, candidate.cardinality)
    confidence, name, match = max(found, key=lambda one: one[0])
    cardinality: Cardinality = candidate.cardinality
    if match.term.cardinality is not None:
        cardinality = "single" if match.term.cardinality == "single" else "multi"
    if isinstance(node, LiteralValue) and match.value is not None:
        node = LiteralValue(datatype=match.term.datatype or node.datatype, value=match.value)
    return Shape(match.term.id, node, cardinality, name, confidence)
