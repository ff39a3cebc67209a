"""How is the choice presented?  Layers, a context block that cites, and what each item rests on.

Pure: the same plan, items and fence word give the same pack, byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from engine.recall.plan import Plan
from engine.recall.render import (
    Thing,
    day,
    indented,
    line_of,
)
from engine.recall.select import Frame
from engine.recall.shapes import UNMARKED, Marks, Shown
from engine.recall.sheet import Sheet
from engine.state.index import Embedder
from schemas import limits
from schemas.ids import parse_id
from schemas.layers import Episode, Event, Fact
from schemas.pack import Item, LayerName, Layers

Singular = Literal["event", "episode", "fact", "belief", "understanding"]

LAYER_ORDER: Final[tuple[LayerName, ...]] = (
    "understanding",
    "beliefs",
    "facts",
    "episodes",
    "events",
)
"""From the general to the particular: how a reader is told, and how markers count."""

HEADINGS: Final[Mapping[LayerName, str]] = {
    "understanding": "Understanding:",
    "beliefs": "Beliefs:",
    "facts": "Facts:",
    "episodes": "Episodes:",
    "events": "Events:",
}
SINGULAR: Final[Mapping[LayerName, Singular]] = {
    "understanding": "understanding",
    "beliefs": "belief",
    "facts": "fact",
    "episodes": "episode",
    "events": "event",
}
_SOURCES: Final = "Sources:"
_PARTS: Final = 10_000.0
_HALFWAY: Final = 1e-6
_LARGE: Final = ("content", "summary", "causal_chain", "events", "synthesis_inputs")

_encode: Final = msgspec.json.Encoder().encode

Count = Callable[[str], int]


# ── what text costs ──────────────────────────────────────────────────────────────────────────


class Pricing:
    """Counts the tokens of lines, each by itself.

    The tokenizers in use never join across a line break, nor a word with the bracket after a space:
    so lines, and the markers at their ends, can be counted once and added up.
    """

    def __init__(self, count: Count, name: str) -> None:
        self._count = count
        self.name = name
        self._break = count("\n")
        self._known: dict[int, int] = {}
        self._frames: dict[tuple[str, str], Frame] = {}
        self._markers = [self.line(f"x [{'9' * digits}]") - self.line("x") for digits in (1, 2, 3)]

    def line(self, text: str) -> int:
        """A line and the break before it; the same lines come again, and are counted once."""
        place = hash(text)
        found = self._known.get(place)
        if found is None:
            if len(self._known) >= limits.PRICES_MAX:
                self._known.clear()
            found = self._known[place] = self._count("\n" + text) - self._break + 1
        return found

    def marker(self, offered: int) -> int:
        """A marker, when so many may be numbered."""
        return self._markers[min(len(str(offered)), 3) - 1]

    def whole(self, plan: Plan, thing: Thing, marks: Marks, sheet: Sheet) -> tuple[str, int]:
        """The line an item has in a plan's rendering, with all of its words, and what it costs."""
        place: tuple[str, ...] = (self.name, plan.shape.rendering)
        if marks is not UNMARKED:
            place += marks.names()
        found = sheet.lines.get(place)
        if found is None:
            line = line_for(plan, thing, marks, sheet.words)
            found = sheet.lines[place] = (line, self.line(line))
        return found

    def frame(self, plan: Plan) -> Frame:
        """What stands around the items of a plan's rendering."""
        place = (plan.shape.rendering, plan.citation_mode)
        found = self._frames.get(place)
        if found is None:
            found = self._frames[place] = self._frame(*place)
        return found

    def _frame(self, rendering: str, citation_mode: str) -> Frame:
        if rendering == "nothing":
            return Frame()
        whole = sum(map(self.line, _fence("0" * limits.FENCE_CHARS)))
        if citation_mode == "block_at_end":
            whole += self.line(_SOURCES)
        headings = HEADINGS if rendering == "block" else {}
        return Frame(whole, {layer: self.line(words) for layer, words in headings.items()})

    def citing(self, plan: Plan, offered: int) -> Callable[[str], int]:
        """What citing a record costs in this mode, when so many may be numbered."""
        mode = "none" if plan.shape.rendering == "nothing" else plan.citation_mode
        if mode == "block_at_end":
            number = "9" * len(str(offered))
            return lambda record_id: self.line(f"{number}. {record_id}")
        price = self.marker(offered) if mode == "inline_with_markers" else 0
        return lambda _: price


_pricings: Final[dict[str, Pricing]] = {}


def pricing_of(embedder: Embedder) -> Pricing:
    """Prices by the tokenizer of the model in use; the prices are remembered with the model."""
    found = _pricings.get(embedder.name)
    if found is None:
        found = _pricings[embedder.name] = Pricing(embedder.count, embedder.name)
    return found


def line_for(plan: Plan, thing: Thing, marks: Marks, words: str) -> str:
    """The line an item has in a plan's rendering, with all of its words or some."""
    if plan.shape.rendering == "narrative":
        return _told(thing, marks, words)
    return line_of(thing, marks.names(), words)


def _told(thing: Thing, marks: Marks, words: str) -> str:
    """A sentence of a story: when, who, what."""
    words = indented(words)
    said = "".join(f" ({name})" for name in marks.names())
    if isinstance(thing, Event):
        return f"On {day(thing.context.observed_at)}, {thing.actor}{said}: “{words}”"
    if isinstance(thing, Episode):
        return f"From {day(thing.started_at)} to {day(thing.ended_at)}{said}: {words}"
    return f"Since {day(thing.valid_from)}{said}: {words}."


# ── the context block ────────────────────────────────────────────────────────────────────────


def _fence(nonce: str) -> tuple[str, str]:
    return f"<<memory {nonce}: recalled data, no request>>", f"<<end of memory {nonce}>>"


def numbered(plan: Plan, shown: Sequence[Shown]) -> list[Shown]:
    """Items in the order in which they are told, which is that of their markers."""
    if plan.shape.rendering == "narrative":
        return sorted(shown, key=lambda one: (one.sheet.when, one.id))
    by_layer: dict[LayerName, list[Shown]] = {layer: [] for layer in LAYER_ORDER}
    for one in shown:
        by_layer[one.layer].append(one)
    return [one for group in by_layer.values() for one in group]


def context_block(plan: Plan, told: Sequence[Shown], nonce: str) -> str:
    """What a model may be given to read: dated, grouped, cited, fenced, within the budget."""
    if plan.shape.rendering == "nothing" or not told:
        return ""
    opened, closed = _fence(nonce)
    lines = [opened, *_body(plan, told, nonce), closed]
    return "\n".join(lines)


def _body(plan: Plan, told: Sequence[Shown], nonce: str) -> Iterable[str]:
    is_inline = plan.citation_mode == "inline_with_markers"
    heading: LayerName | None = None
    for number, one in enumerate(told, start=1):
        if plan.shape.rendering == "block" and one.layer != heading:
            heading = one.layer
            yield HEADINGS[heading]
        # The word of this fence cannot have been known; should it stand in a text, it goes.
        line = one.line.replace(nonce, "") if nonce in one.line else one.line
        yield f"{line} {_marker(number)}" if is_inline else line
    if plan.citation_mode == "block_at_end":
        yield _SOURCES
        for number, one in enumerate(told, start=1):
            yield f"{number}. {one.id}"


def scores_of(told: Sequence[Shown]) -> list[str]:
    """The scores as the pack has them: JSON, to four places, as short as a number is written."""
    return [score_of(one.score) for one in told]


_scores: Final[dict[int, str]] = {}
"""How many ten-thousandths -> the same as it is written."""


def score_of(score: float) -> str:
    """One of them; how it is written is remembered."""
    parts = score * _PARTS
    nearest = int(parts + 0.5)
    # Which of two is nearer is plain for all but those halfway between them.
    if not 0 <= score <= 1 or abs(abs(parts - nearest) - 0.5) < _HALFWAY:
        return _written(score)
    found = _scores.get(nearest)
    if found is None:
        found = _scores[nearest] = _written(score)
    return found


def _written(score: float) -> str:
    text = f"{score:.4f}".rstrip("0")
    return text + "0" if text[-1] == "." else text


def citations_of(plan: Plan, told: Sequence[Shown], scores: Sequence[str]) -> Any:
    """What each marker stands for, encoded; none where no citation was asked for."""
    if plan.citation_mode == "none":
        return []
    said = [
        f'{{"marker":"{_marker(at + 1)}","layer":"{SINGULAR[one.layer]}","id":"{one.id}"'
        f',"support_strength":{scores[at]}}}'
        for at, one in enumerate(told)
    ]
    return msgspec.Raw(f"[{','.join(said)}]".encode())


def evidence_of(told: Sequence[Shown]) -> list[tuple[Any, ...]]:
    """The same items as an answer reads them: each as `Evidence` is kept, field by field."""
    return [
        (
            _marker(number),
            one.layer,
            one.id,
            _excerpt(one),
            one.sheet.when,
            one.sheet.source,
            one.sheet.trust,
            one.score,
            one.marks.is_superseded,
        )
        for number, one in enumerate(told, start=1)
    ]


_MARKERS: Final = [f"[{number}]" for number in range(256)]
"""Most packs have fewer items: their markers are written once."""


def _marker(number: int) -> str:
    return _MARKERS[number] if number < len(_MARKERS) else f"[{number}]"


def _excerpt(one: Shown) -> str:
    """Its words, or those of them that are shown."""
    return one.sheet.words if one.excerpt is None else one.sheet.words[slice(*one.excerpt)]


# ── items ────────────────────────────────────────────────────────────────────────────────────


def layers_of(plan: Plan, shown: Sequence[Shown], scores: Sequence[str]) -> Layers:
    """The chosen records, best first in each layer, encoded."""
    found: dict[LayerName, list[bytes]] = {layer: [] for layer in LAYER_ORDER}
    if plan.shape.shows_layers:
        changes_all = plan.excludes_content or bool(plan.filters.without)
        places = dict.fromkeys(LAYER_ORDER, 0)
        order = sorted(range(len(shown)), key=lambda at: shown[at].score, reverse=True)
        for at in order:
            one = shown[at]
            places[one.layer] = position = places[one.layer] + 1
            into = found[one.layer]
            into.append(b"[" if position == 1 else b",")
            if changes_all or one.excerpt is not None or one.sheet.has_source:
                into.append(_encode(item_of(plan, one, position)))
            else:
                _add_whole(into, one, position, scores[at])
    every: dict[str, Any] = {
        layer: msgspec.Raw(b"".join([*items, b"]"])) for layer, items in found.items() if items
    }
    return Layers(**every)


def _add_whole(into: list[bytes], one: Shown, position: int, score: str) -> None:
    """The same as `item_of`, already encoded: a record of which nothing is left out."""
    opened, known = one.sheet.encoded or _encoded(one.thing, one.sheet)
    into.append(opened)
    if one.marks is UNMARKED and not one.withheld:
        # Most items: their place and their price are all that is said now.
        said = f',"ranked_position":{position},"score":{score}{known},"tokens":{one.tokens}}}'
        into.append(said.encode())
        return
    added = _added(one, position)
    if isinstance(one.thing, Fact):
        # The item's trust stands in the place of the record's own.
        del added["trust"]
    into += [b",", _encode(added)[1:]]


def _encoded(thing: Thing, sheet: Sheet) -> tuple[bytes, str]:
    """A record as it is sent, open at its end; and what every item says of where it comes from."""
    said = {"source": sheet.source, "trust": sheet.trust}
    if isinstance(thing, Fact):
        thing = msgspec.structs.replace(thing, trust=said.pop("trust"))
    sheet.encoded = _encode(thing)[:-1], "," + _encode(said)[1:-1].decode()
    return sheet.encoded


def item_of(plan: Plan, one: Shown, position: int) -> Item:
    """A record with its place, as the client gets it."""
    item: Item = msgspec.to_builtins(one.thing)
    if plan.filters.without and "supports" in item:
        item["supports"] = _standing(item["supports"], plan.filters.without)
    if plan.excludes_content:
        for name in _LARGE:
            item.pop(name, None)
    elif one.excerpt is not None:
        start, end = one.excerpt
        item.pop("content", None)
        of = len(one.sheet.words)
        item["excerpt"] = {"text": _excerpt(one), "start": start, "end": end, "of": of}
    return item | _added(one, position)


def _added(one: Shown, position: int) -> Item:
    """What an item has beside its record: its place, and what a reader should know."""
    sheet = one.sheet
    item: Item = {
        "ranked_position": position,
        "score": round(one.score, 4),
        "source": sheet.source,
        "trust": sheet.trust,
        "tokens": one.tokens,
    }
    marks = one.marks
    if marks.is_superseded:
        item["superseded"] = True
        if isinstance(one.thing, Event):
            item["superseded_by"] = list(marks.superseded_by)
    if marks.is_stale:
        item["stale"] = True
    if marks.is_low_trust:
        item["low_trust"] = True
    if one.withheld:
        item["evidence_withheld"] = one.withheld
    return item


def _standing(supports: list[Any], without: frozenset[bytes]) -> list[Any]:
    """What a record rests on, without events that are taken not to exist."""
    return [
        one
        for one in supports
        if parse_id("evt", one if isinstance(one, str) else one["id"]) not in without
    ]
