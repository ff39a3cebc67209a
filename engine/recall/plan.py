"""How will this question be answered?  Views and profiles as tables, a request as a plan.

Pure: the request, the question as it was read, the scopes the caller may walk and the moments that
are meant go in; everything the later stages need to know comes out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from msgspec import structs

from engine.reach import Barred, Place, Reach
from engine.recall.candidates import QueryKind
from engine.recall.filters import Filters
from engine.recall.select import LAMBDA_DEFAULT
from engine.temporal import Window
from schemas import limits
from schemas.errors import InvalidParameter
from schemas.pack import (
    LAYER_NAMES,
    Budgets,
    CitationMode,
    Diagnostics,
    LayerCaps,
    LayerName,
    PackView,
    RecallRequest,
    Treatment,
    Treatments,
)

Rendering = Literal["block", "narrative", "nothing"]
Caps = Mapping[LayerName, int]


@dataclass(frozen=True)
class Shape:
    """What a view fills and what it writes (001 §9.1); `engine/reach.py` has what it walks."""

    layers: tuple[LayerName, ...] = LAYER_NAMES
    shows_layers: bool = True
    rendering: Rendering = "block"
    shows_graph: bool = False
    caps: Caps | None = None


SHAPES: Final[Mapping[PackView, Shape]] = {
    "holistic": Shape(),
    "local": Shape(),
    "descend": Shape(),
    "raw": Shape(layers=("events",), rendering="nothing", caps={"events": 50}),
    "granular": Shape(rendering="nothing"),
    "narrative": Shape(shows_layers=False, rendering="narrative"),
    "structured": Shape(shows_layers=False, rendering="nothing", shows_graph=True),
}

PROFILES: Final[Mapping[QueryKind, Caps]] = {
    "lookup": {"events": 20, "episodes": 3, "facts": 20, "beliefs": 10, "understanding": 3},
    "temporal": {"events": 20, "episodes": 8, "facts": 20, "beliefs": 5, "understanding": 2},
    "multi_hop": {"events": 30, "episodes": 5, "facts": 30, "beliefs": 10, "understanding": 5},
    "preference": {"events": 20, "episodes": 3, "facts": 25, "beliefs": 15, "understanding": 5},
    "summary": {"events": 20, "episodes": 12, "facts": 20, "beliefs": 10, "understanding": 8},
}
"""How many of each layer a question of a kind takes, when neither request nor view says."""


@dataclass(frozen=True)
class Plan:
    """Everything decided before anything is looked for."""

    name: str
    view: PackView
    kind: QueryKind
    shape: Shape
    layers: tuple[LayerName, ...]
    places: tuple[Place, ...]
    barred: tuple[Barred, ...]
    window: Window
    filters: Filters
    caps: Caps
    max_tokens: int
    mmr_lambda: float
    treatments: Treatments
    citation_mode: CitationMode
    diagnostics: Diagnostics
    excludes_content: bool
    is_past: bool
    """The request pins a moment: nothing recorded later may be looked at."""
    warnings: tuple[str, ...]

    def said(self) -> dict[str, Any]:
        """The plan as a stream tells it (001 §10.1)."""
        return {"plan": self.name, "filters_applied": self.filters.applied()}

    def leaving_out(self, layer: LayerName) -> "Plan":
        """The same plan without a layer the caller may not read."""
        caps = {name: cap for name, cap in self.caps.items() if name != layer}
        return replace(self, layers=tuple(name for name in self.layers if name != layer), caps=caps)

    @property
    def scope_numbers(self) -> list[int]:
        """The scopes that can hold anything."""
        return [place.number for place in self.places if place.number is not None]


VALID_IGNORED: Final = "valid_during_ignored_for_view_raw"
"""001 §18.2.17: events have no validity to filter by."""


def make_plan(
    request: RecallRequest,
    kind: QueryKind,
    reach: Reach,
    *,
    window: Window,
    filters: Filters,
    is_past: bool = False,
) -> Plan:
    """The plan of one recall; `is_past` when its window pins a moment that has gone by."""
    shape = SHAPES[request.view]
    layers = _layers(request, shape)
    budgets = _budgets(request)
    warnings = window.warnings
    superseded: Treatment = request.treatments.superseded or (
        "demote" if request.include_superseded or window.include_superseded else "exclude"
    )
    if window.include_superseded != (superseded != "exclude"):
        window = replace(window, include_superseded=superseded != "exclude")
    if request.view == "raw" and window.valid_during:
        warnings = (*warnings, VALID_IGNORED)
    return Plan(
        name=f"{kind}.{request.view}".upper().replace(".", "_"),
        view=request.view,
        kind=kind,
        shape=shape,
        layers=layers,
        places=tuple(reach.places),
        barred=tuple(reach.barred),
        window=window,
        filters=filters,
        caps=_caps(layers, budgets, shape, kind),
        max_tokens=_tokens(budgets),
        mmr_lambda=LAMBDA_DEFAULT if request.mmr_lambda is None else request.mmr_lambda,
        treatments=structs.replace(request.treatments, superseded=superseded),
        citation_mode=request.citation_mode,
        diagnostics=request.diagnostics,
        excludes_content=request.exclude_content,
        is_past=is_past,
        warnings=warnings,
    )


def asked_layers(request: RecallRequest) -> list[LayerName] | None:
    """The layers a request names itself; None when it leaves them to the view."""
    if request.include is not None and request.layers is not None:
        raise InvalidParameter(field="layers", reason="older name of `include`; give one of them")
    named = request.include or request.layers
    if not named:
        return None
    return ["understanding" if name == "concepts" else name for name in named]


def _layers(request: RecallRequest, shape: Shape) -> tuple[LayerName, ...]:
    asked = asked_layers(request)
    return tuple(layer for layer in shape.layers if asked is None or layer in asked)


def _budgets(request: RecallRequest) -> Budgets:
    if request.budgets is not None and request.limits is not None:
        raise InvalidParameter(field="limits", reason="another name of `budgets`; give one of them")
    return request.budgets or request.limits or Budgets()


def _tokens(budgets: Budgets) -> int:
    if budgets.max_tokens is not None and budgets.total_tokens is not None:
        raise InvalidParameter(field="budgets.total_tokens", reason="the same as max_tokens")
    given = budgets.max_tokens if budgets.total_tokens is None else budgets.total_tokens
    return limits.PACK_TOKENS_DEFAULT if given is None else given


def _caps(
    layers: Sequence[LayerName], budgets: Budgets, shape: Shape, kind: QueryKind
) -> dict[LayerName, int]:
    if budgets.per_layer is not None and budgets.per_layer_limits is not None:
        raise InvalidParameter(field="budgets.per_layer", reason="the same as per_layer_limits")
    said = budgets.per_layer or budgets.per_layer_limits or LayerCaps()
    usual = shape.caps or PROFILES[kind]
    found: dict[LayerName, int] = {}
    for layer in layers:
        own: int | None = getattr(said, layer)
        if own is None and layer == "events":
            own = budgets.max_events
        found[layer] = usual.get(layer, 0) if own is None else own
    return found
