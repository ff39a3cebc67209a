"""What does each record of a pack say, in words?  For programs that take texts and not layers."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from strata_client.models import (
    BeliefItem,
    BlobContent,
    ConceptItem,
    EpisodeItem,
    EventItem,
    FactItem,
    JsonContent,
    LiteralValue,
    StratifiedPack,
    TripleContent,
)

LAYERS: Final = ("beliefs", "facts", "episodes", "events", "understanding")
Item = BeliefItem | FactItem | EpisodeItem | EventItem | ConceptItem


class Passage(Struct, frozen=True, kw_only=True):
    """A record of a pack as a text, with what is needed to cite it."""

    id: str
    layer: str
    text: str
    score: float
    scope: str | None = None
    at: datetime | None = None
    """When it was observed, or since when it is so."""


def passages(pack: StratifiedPack) -> list[Passage]:
    """Every record of a pack that has words, the best first."""
    found = [
        passage
        for layer in LAYERS
        for item in getattr(pack.layers, layer)
        for passage in _passage(layer, item)
    ]
    return sorted(found, key=lambda passage: -passage.score)


def _passage(layer: str, item: Item) -> Iterator[Passage]:
    text = text_of(item)
    if text:
        at = item.context.observed_at if isinstance(item, EventItem) and item.context else None
        if not isinstance(item, EventItem):
            at = item.valid_from
        yield Passage(id=item.id, layer=layer, text=text, score=item.score, scope=item.scope, at=at)


def text_of(item: Item) -> str:
    """The words of one record; with `exclude_content` it has none."""
    match item:
        case EventItem():
            return _content(item.content)
        case FactItem():
            return _triple(item.subject, item.predicate, item.object, item.polarity)
        case BeliefItem(claim=claim):
            return "" if claim is None else _triple(claim.subject, claim.predicate, claim.object)
        case EpisodeItem() | ConceptItem():
            return item.summary or ""


def _content(content: Any) -> str:
    match content:
        case None:
            return ""
        case JsonContent(data=data, text=text):
            return text or str(data)
        case BlobContent(text=text, transcript=transcript):
            return text or transcript or ""
        case TripleContent(triple=triple, text=text):
            return text or _triple(triple.subject, triple.predicate, triple.object)
        case _:
            return str(content.text)


def _triple(subject: Any, predicate: Any, value: Any, polarity: str | None = None) -> str:
    if predicate is None:
        return ""
    denied = "not " if polarity == "negative" else ""
    return f"{_name(subject)} {denied}{str(predicate).replace('_', ' ')} {_name(value)}"


def _name(node: Any) -> str:
    if isinstance(node, LiteralValue):
        return str(node.value)
    return str(getattr(node, "name", None) or getattr(node, "id", None) or node)
