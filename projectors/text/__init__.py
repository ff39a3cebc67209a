"""What does this text say?  Pure: an entry in, candidates out; it looks nothing up.

The rest of the house reads `extract` and the shapes in `candidates`.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import UNSET

from projectors.text.candidates import Candidate, Extraction, Mention, Passage, Value
from projectors.text.exact import from_json, from_model, from_triple, mention_of
from projectors.text.passages import names_in, passages, topics
from projectors.text.prose import statements as read_prose
from projectors.text.speakers import speakers_of
from schemas import limits
from schemas.entry import Annotation, Entry, Experience
from schemas.envelope import (
    MODALITIES,
    BlobContent,
    Content,
    Envelope,
    JsonContent,
    Message,
    PlainText,
    TripleContent,
)

__all__ = ["Candidate", "Extraction", "Mention", "Passage", "Value", "extract", "was_read"]

_NOTHING: Final = Extraction()
_last: tuple[Entry | None, Extraction] = (None, _NOTHING)


def extract(entry: Entry) -> Extraction:
    """All that an entry says. Several projectors ask of the same entry: the last is remembered."""
    global _last  # noqa: PLW0603 - one pair, swapped at once; what it holds follows from the entry
    asked, found = _last
    if asked is not entry:
        found = _extract(entry)
        _last = (entry, found)
    return found


def was_read(entry: Entry, found: Extraction) -> None:
    """This is what an entry says: `extract` of it, by another process of the same code."""
    global _last  # noqa: PLW0603 - as above
    _last = (entry, found)


def _extract(entry: Entry) -> Extraction:
    body = entry.body
    if isinstance(body, Experience):
        return _experienced(body.envelope, entry.caller)
    if isinstance(body, Annotation):
        found = tuple(from_model(body.output, entry.recorded_at))
        return Extraction(candidates=found, mentions=_mentioned(found), extractor=body.model)
    return _NOTHING


def _experienced(envelope: Envelope, caller: str) -> Extraction:
    text = text_of(envelope.content)
    read = text[: limits.EXTRACT_CHARS_MAX]
    candidates: tuple[Candidate, ...] = ()
    # 001 §3.5.3: an unknown modality is kept as it came, and read for nothing.
    if envelope.modality in MODALITIES and _wants(envelope, "facts"):
        candidates = tuple(islice(_stated(envelope, caller, read), limits.CANDIDATES_MAX))
    is_named = _wants(envelope, "entities") and not isinstance(envelope.content, TripleContent)
    return Extraction(
        candidates=candidates,
        mentions=_mentioned(candidates, read if is_named else ""),
        topics=topics(read),
        passages=passages(text),
    )


def text_of(content: Content) -> str:
    """The words of an experience; empty when it has none."""
    match content:
        case Message() | PlainText():
            return content.text
        case BlobContent():
            parts = (content.text, content.transcript)
            return "\n".join(part for part in parts if part is not UNSET)
    return content.text if content.text is not UNSET else ""


def _wants(envelope: Envelope, layer: str) -> bool:
    """Whether the client's own list of layers, when it gave one, has this one."""
    directives = envelope.directives
    return directives is None or directives.extract is UNSET or layer in directives.extract


def _stated(envelope: Envelope, caller: str, text: str) -> Iterable[Candidate]:
    """Exact content speaks for itself; words are read where there is nothing better."""
    content, speakers = envelope.content, speakers_of(envelope, caller)
    match content:
        case TripleContent():
            return from_triple(content.triple, envelope)
        case JsonContent() if isinstance(content.data, dict | list):
            return from_json(content.data, speakers.me or mention_of(caller))
    weight = _weight(envelope)
    return read_prose(text, speakers, envelope.context.observed_at, weight) if weight else ()


def _weight(envelope: Envelope) -> float:
    """How much a plain statement is to be believed; 0 when the words are not read for facts.

    A system prompt commands, a machine repeats and guesses, and the rules know English only.
    """
    language = envelope.language
    if language is not None and not language.lower().startswith(("en", "und", "mul")):
        return 0.0
    role = envelope.content.role if isinstance(envelope.content, Message) else "user"
    if role == "system":
        return 0.0
    if role != "user" or envelope.modality == "tool_result":
        return 0.7
    return 0.85 if envelope.modality == "document" else 0.9


def _mentioned(candidates: Iterable[Candidate], text: str = "") -> tuple[Mention, ...]:
    """Everything the candidates name, and the names the text drops besides, once each."""
    named: dict[Mention, None] = {}
    for candidate in candidates:
        named[candidate.subject] = None
        if isinstance(candidate.object, Mention):
            named[candidate.object] = None
    known = {mention.text for mention in named}
    for name in names_in(text):
        if name not in known and len(named) < limits.CANDIDATES_MAX:
            named[Mention(text=name)] = None
    return tuple(named)
