"""What does an agent ask for when it wants its bearings?  (000, context/retrieve)"""

from typing import Final

from schemas.limits import (
    CAPSULE_ENTRIES,
    COGNIRELAY_ID_CHARS_MAX,
    CONTEXT_CAPSULES_MAX,
    CONTEXT_ITEMS,
    CONTEXT_TOKENS,
    CONTEXT_WINDOW_DAYS,
)
from schemas.surfaces.cognirelay.capsule import KIND, SUBJECT
from schemas.surfaces.shapes import Choice, Field, Items, Maybe, Model, Number, Text


def _bounded(bounds: tuple[int, int, int]) -> Field:
    default, least, most = bounds
    return Field(Number(least, most), default)


SELECTOR: Final = Model("ContinuitySelector", {"subject_kind": KIND, "subject_id": SUBJECT})
RETRIEVE: Final = Model(
    "ContextRetrieveRequest",
    {
        "task": Text(),
        "subject_kind": Field(Maybe(KIND), None),
        "subject_id": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "continuity_mode": Field(Choice(("auto", "required", "off")), "auto"),
        "continuity_verification_policy": Field(
            Choice(("allow_degraded", "prefer_healthy", "require_healthy")), "allow_degraded"
        ),
        "continuity_resilience_policy": Field(
            Choice(("allow_fallback", "prefer_active", "require_active")), "allow_fallback"
        ),
        "continuity_selectors": Field(Items(SELECTOR, CAPSULE_ENTRIES["selectors"]), list),
        "continuity_max_capsules": Field(Number(1, CONTEXT_CAPSULES_MAX), 1),
        "max_tokens_estimate": _bounded(CONTEXT_TOKENS),
        "include_types": Field(Items(Text()), list),
        "time_window_days": _bounded(CONTEXT_WINDOW_DAYS),
        "limit": _bounded(CONTEXT_ITEMS),
    },
)
