"""How can a record be found?  An event verbatim, what was derived as a sentence. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET

from engine.state.index import Document, Layer
from engine.statements import statement
from projectors.text import text_of
from projectors.text.passages import passages
from projectors.text.statements import day
from schemas import limits
from schemas.entry import Entry
from schemas.envelope import Content, Envelope, JsonContent, Message, TripleContent
from schemas.ids import parse_id
from schemas.layers import Belief, Concept, Episode, Fact, Record
from schemas.times import to_us


class Unplaced(Exception):
    """Where a record belongs is not known here."""


def event_documents(entry: Entry) -> list[Document]:
    """The documents of an experience: one, or for a long text one for the whole and its passages.

    None when the entry is something else, was erased, or has no words.
    """
    envelope = entry.envelope
    if envelope is None:
        return []
    said = words_of(envelope.content)
    if not said:
        return []
    actor = envelope.observed_actor
    subject = envelope.subject
    session = (actor.session if actor else None) or (subject.session if subject else None)
    directives = envelope.directives

    def document(text: str, gist: str, passage: int = 0) -> Document:
        return Document(
            layer="events",
            raw=entry.id,
            tenant_no=entry.tenant_no,
            scope_no=entry.scope_no,
            offset=entry.offset,
            text=text,
            gist=gist,
            observed_us=to_us(envelope.context.observed_at),
            recorded_us=to_us(entry.recorded_at),
            actor=actor.id if actor else entry.caller,
            session=session or "",
            role=envelope.content.role if isinstance(envelope.content, Message) else "",
            passage=passage,
            embeds=directives is None or directives.embed != "none",
        )

    heading = _heading(envelope, entry.caller)
    pieces = passages(said) if len(said) > limits.WHOLE_CHARS_MAX else ()
    if not pieces:
        return [document(heading + said, said)]
    parts = [
        document(heading + piece.text, piece.text, number)
        for number, piece in enumerate(pieces[: limits.PASSAGES_MAX], start=1)
    ]
    return [document("", said), *parts]


def record_document(
    layer: Layer, record: Record, *, place: tuple[int, int], offset: int, known_from: datetime
) -> Document:
    """The document of a derived record, as it is known last.

    `place` is its tenant and scope; `offset` that of the first event it rests on; `known_from` is
    when its first version was recorded, so that a search as of an earlier moment finds the record
    and the views tell how it was known then.
    """
    said, when, actor = _told(record)
    raw = parse_id(record.id.partition("_")[0], record.id)
    assert raw is not None, f"{record.id} is not an id"
    tenant_no, scope_no = place
    return Document(
        layer=layer,
        raw=raw,
        tenant_no=tenant_no,
        scope_no=scope_no,
        offset=offset,
        text=f"{said} {day(when)}",
        gist=said,
        observed_us=to_us(when),
        recorded_us=to_us(known_from),
        actor=actor,
        session=(record.session or "") if isinstance(record, Episode) else "",
    )


def first_event(record: Record) -> str | None:
    """The event that a record rests on first, where the record itself says so."""
    if isinstance(record, Belief):
        named: Sequence[str] = [evidence.id for evidence in record.supports]
    else:
        named = record.events if isinstance(record, Episode) else record.supports
    return next((name for name in named if name.startswith("evt_")), None)


def _told(record: Record) -> tuple[str, datetime, str]:
    """(what it says, when that began, who is behind it)."""
    match record:
        case Fact():
            said = statement(record.subject, record.predicate, record.object, record.polarity)
            return said, record.valid_from, record.asserted_by or ""
        case Belief():
            claim = record.claim
            return (
                statement(claim.subject, claim.predicate, claim.object),
                record.valid_from,
                "",
            )
        case Episode():
            return _joined(record.name, record.summary), record.started_at, ""
        case Concept():
            named = ", ".join([record.name, *record.aliases])
            return _joined(named, record.summary), record.valid_from, ""


def _joined(name: str, summary: str) -> str:
    return summary if name in summary else f"{name}. {summary}"


# ── the words of an experience ───────────────────────────────────────────────────────────────


def words_of(content: Content) -> str:
    """Everything an experience says in words: its text, its triple or JSON, its captions."""
    parts = [text_of(content)]
    if isinstance(content, TripleContent):
        triple = content.triple
        parts.append(statement(triple.subject, triple.predicate, triple.object))
    elif isinstance(content, JsonContent):
        parts.append("; ".join(_leaves(content.data, "")))
    if content.media is not UNSET:
        parts.extend(media.caption or "" for media in content.media)
    return "\n".join(part.strip() for part in parts if part.strip())


def _leaves(data: Any, name: str) -> Iterator[str]:
    """JSON as words: each value after the name it has."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, str(key).replace("_", " "))
    elif isinstance(data, list):
        for value in data:
            yield from _leaves(value, name)
    elif data is not None:
        yield f"{name} {data}".strip()


def _heading(envelope: Envelope, caller: str) -> str:
    """Day and speaker before what was said: questions name both."""
    actor = envelope.observed_actor.id if envelope.observed_actor else caller
    speaker = actor.partition(":")[2].replace("_", " ").replace("-", " ")
    return f"[{day(envelope.context.observed_at)}] {speaker}: "
