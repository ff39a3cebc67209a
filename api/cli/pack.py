"""How does a pack read in a terminal?  Layer by layer, every line with its citation."""

from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.json import JSON
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from strata_client.models import StratifiedPack

_NOTHING: Final = "Nothing is known about this here."

LAYERS: Final = {
    "understanding": ("understanding", "magenta"),
    "beliefs": ("beliefs", "green"),
    "facts": ("facts", "cyan"),
    "episodes": ("episodes", "yellow"),
    "events": ("events", "white"),
}


def pack_view(pack: StratifiedPack) -> RenderableType:
    """The whole pack."""
    markers = {citation.id: citation.marker for citation in pack.citations or []}
    parts: list[RenderableType] = []
    for name, (title, colour) in LAYERS.items():
        items = getattr(pack.layers, name)
        if items:
            parts.append(Text(title, style=f"bold {colour}"))
            parts.append(_layer(name, items, markers))
    if not parts:  # a narrative is its text, a structured pack its graph
        graph = pack.knowledge_subgraph
        told = _unfenced(pack.context_block) or _NOTHING
        parts.append(JSON.from_data(graph) if graph and graph.get("@graph") else Text(told))
    return Panel(Group(*parts), subtitle=_foot(pack), subtitle_align="left", border_style="dim")


def _unfenced(block: str) -> str:
    """The text of a context block, without the fence that is there for a model."""
    return "\n".join(line for line in block.splitlines() if not line.startswith("<<")).strip()


def _layer(name: str, items: list[Any], markers: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, expand=True)
    table.add_column(style="dim", width=5, justify="right")
    table.add_column(ratio=1, overflow="fold")
    table.add_column(style="dim", justify="right", no_wrap=True)
    for item in items:
        table.add_row(escape(markers.get(item.id, "")), _line(name, item), _aside(name, item))
    return table


def _line(layer: str, item: Any) -> Text:
    text = Text(said(layer, item))
    for mark in ("superseded", "stale", "low_trust"):
        if getattr(item, mark, False):
            text.append(f"  {mark.replace('_', ' ')}", style="yellow")
    return text


def _aside(layer: str, item: Any) -> str:
    if layer == "events":
        when = item.context.observed_at if item.context else None
        return f"{_day(when)} {escape(item.actor or '')}"
    if layer == "episodes":
        return f"{len(item.events or [])} events"
    since = f"since {_day(item.valid_from)}" if getattr(item, "valid_from", None) else ""
    sure = f"{item.confidence:.2f}" if item.confidence is not None else ""
    return "  ".join(part for part in (since, sure) if part)


def said(layer: str, item: Any) -> str:
    """What one record says, in a line."""
    if layer == "events":
        return content_text(item.content)
    if layer == "episodes":
        return str(item.name or item.summary or item.id)
    if layer == "understanding":
        return str(item.summary or item.name or item.id)
    claim = item.claim if layer == "beliefs" else item
    return claim_text(claim)


def claim_text(claim: Any) -> str:
    """A triple as a sentence."""
    parts = (
        name_of(claim.subject),
        (claim.predicate or "").replace("_", " "),
        name_of(claim.object),
    )
    return " ".join(part for part in parts if part)


def name_of(thing: Any) -> str:
    """What a subject or an object is called."""
    if thing is None:
        return ""
    value = getattr(thing, "value", None)
    return str(value) if value is not None else str(getattr(thing, "name", None) or thing.id)


def content_text(content: Any) -> str:
    """The words of an event, or what stands for them."""
    if content is None:
        return "(no content)"
    text = getattr(content, "text", None)
    if text is not None:
        return str(text)
    for told in ("data", "triple"):
        if getattr(content, told, None) is not None:
            return msgspec.json.encode(getattr(content, told)).decode()
    return f"({content.kind})"


def _day(when: Any) -> str:
    return f"{when:%Y-%m-%d}" if when is not None else ""


def _foot(pack: StratifiedPack) -> Text:
    parts = []
    if pack.budget is not None:
        parts.append(f"{pack.budget.used_tokens} of {pack.budget.max_tokens} tokens")
    read = [one for one in pack.scopes_traversed or [] if not one.denied]
    closed = [one for one in pack.scopes_traversed or [] if one.denied]
    parts.append(f"{len(read)} scope{'s' * (len(read) != 1)}")
    if closed:
        parts.append(f"{len(closed)} closed")
    if pack.partial:
        parts.append(f"partial: {pack.partial_reason}")
    return Text(" · ".join(parts), style="dim")
