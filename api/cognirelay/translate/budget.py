"""What of a capsule is kept when there is room for less?  (000, the two-phase trim order)

The order is part of the contract: whole optional parts go first, then the rest is shortened, and
the lists that orient an agent last of all. Tokens are estimated at four characters each.
"""

import copy
import math
from typing import Any, Final

from api.cognirelay.translate.rules import Capsule

_CHARS_PER_TOKEN: Final = 4
_SHARE: Final = 4
"""What is shortened may keep a quarter of the budget."""
_DROPPED: Final = (
    "metadata",
    "canonical_sources",
    "freshness",
    "attention_policy.presence_bias_overrides",
    "continuity.relationship_model.sensitivity_notes",
    "continuity.relationship_model.preferred_style",
    "continuity.retrieval_hints.avoid",
    "continuity.retrieval_hints.load_next",
    "continuity.trailing_notes",
    "continuity.curiosity_queue",
    "continuity.rationale_entries",
    "continuity.negative_decisions",
    "continuity.working_hypotheses",
    "stable_preferences",
)
_SHORTENED: Final = (
    "retrieval_hints.must_include",
    "relationship_model",
    "long_horizon_commitments",
    "stance_summary",
    "drift_signals",
    "open_loops",
    "active_constraints",
    "active_concerns",
    "top_priorities",
)
_VANISHES: Final = ("must_include", "long_horizon_commitments")
"""Lists that go when nothing is left of them; the others stay, empty."""
_NEEDED: Final = (
    "top_priorities",
    "active_concerns",
    "active_constraints",
    "open_loops",
    "drift_signals",
    "stance_summary",
)
"""Of these something must be left, or the capsule is no orientation."""


def tokens(value: Any) -> int:
    """Tokens that a value comes to, as it would be read out."""
    return math.ceil(len(_rendered(value)) / _CHARS_PER_TOKEN)


def _rendered(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value)
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_rendered(item)}" for key, item in value.items())
    return str(value)


def trimmed(capsule: Capsule, budget: int) -> tuple[Capsule | None, list[str]]:
    """The capsule within a budget, and what was cut; None when no orientation would be left."""
    kept, cut = copy.deepcopy(capsule), list[str]()
    for path in _DROPPED:
        if tokens(kept) <= budget:
            break
        owner, name = _owner(kept, path)
        if owner is not None and name in owner:
            del owner[name]
            cut.append(path)
    for path in _SHORTENED:
        if tokens(kept) <= budget:
            break
        cut += _shorten(kept["continuity"], path, max(1, budget // _SHARE))
    is_left = any(kept["continuity"].get(name) for name in _NEEDED)
    return (kept if is_left and tokens(kept) <= budget else None), cut


def _owner(capsule: Capsule, path: str) -> tuple[Capsule | None, str]:
    *places, name = path.split(".")
    owner: Any = capsule
    for place in places:
        owner = owner.get(place) if isinstance(owner, dict) else None
    return owner, name


def _shorten(held: Capsule, path: str, share: int) -> list[str]:
    """Cut one part down to a share of the budget; what of it was cut."""
    if path == "relationship_model":
        return _shorten_model(held)
    owner, name = _owner(held, path)
    if owner is None or name not in owner:
        return []
    before = owner[name]
    after = _short_text(before, share) if isinstance(before, str) else _short_list(before, share)
    owner[name] = after
    if not after and name in _VANISHES:
        del owner[name]
    return [] if after == before else [f"continuity.{path}"]


def _shorten_model(held: Capsule) -> list[str]:
    """One field of what is known of a relationship, the level of trust first."""
    model = held.get("relationship_model")
    if model is None:
        return []
    names = ["trust_level"] if "trust_level" in model else sorted(model)[:1]
    for name in names:
        del model[name]
    if not model:
        del held["relationship_model"]
    return [f"continuity.relationship_model.{name}" for name in names]


def _short_list(items: list[Any], share: int) -> list[Any]:
    kept = list(items)
    while kept and tokens(kept) > share:
        kept.pop()
    return kept


def _short_text(text: str, share: int) -> str:
    most = share * _CHARS_PER_TOKEN
    return text if len(text) <= most else f"{text[: most - 3]}..."
