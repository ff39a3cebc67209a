"""Which capsules give an agent its bearings, and how much of each?  (000, context/retrieve)"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from api.cognirelay.access import slug
from api.cognirelay.errors import refuse
from api.cognirelay.translate import listing, trust
from api.cognirelay.translate.budget import tokens, trimmed
from api.cognirelay.translate.rules import Capsule

COMPACT: Final = "trust_signals_compact"
_TRUNCATED: Final = "continuity_capsule_truncated_to_zero"
_TRUNCATED_ONE: Final = "continuity_truncated_to_zero"
_SALIENCE_OMITTED: Final = "continuity_salience_omitted"
_HEALTH: Final = {"degraded": "continuity_degraded", "conflicted": "continuity_conflicted"}
_NO_TRUST_TOKENS: Final = 5
_NO_SALIENCE_TOKENS: Final = 4
"""What the absence of a block costs: its name, and null."""
_INFERRED: Final = re.compile(r"(task|thread):(.+)")


class Selected(NamedTuple):
    """A subject whose capsule is wanted, and whether it was named or read out of the task."""

    kind: str
    subject_id: str
    resolution: str = "explicit"

    @property
    def label(self) -> str:
        """As it is listed."""
        return f"{self.kind}:{self.subject_id}"


class Loaded(NamedTuple):
    """A capsule that was found for a subject, and whether it stands or is a fallback."""

    selected: Selected
    capsule: Capsule
    source: str


class Notes:
    """What a reader is warned of; with explicit selectors each warning names its subject."""

    def __init__(self, *, is_multi: bool) -> None:
        self._is_multi = is_multi
        self.warnings: list[str] = []
        self.recovery: list[str] = []
        self.omitted: list[str] = []
        self.fallback_used = False

    def of(self, selected: Selected, warning: str) -> str:
        """A warning as it is said of a subject."""
        if self._is_multi:
            return f"{warning}:{selected.label}"
        return _TRUNCATED_ONE if warning == _TRUNCATED else warning

    def warn(self, selected: Selected, *warnings: str) -> None:
        """Warn of a capsule."""
        self.warnings += [self.of(selected, warning) for warning in warnings]

    def recover(self, selected: Selected, *warnings: str) -> None:
        """Warn of how a capsule was come by."""
        self.recovery += [self.of(selected, warning) for warning in warnings]


def selection(asked: Mapping[str, Any]) -> tuple[list[Selected], list[str], list[str]]:
    """The subjects to load, all that were asked for, and those beyond the limit."""
    named = [(one["subject_kind"], one["subject_id"]) for one in asked["continuity_selectors"]]
    kind, subject_id = asked["subject_kind"], asked["subject_id"]
    if kind and subject_id:
        named.insert(0, (kind, subject_id))
    distinct: dict[tuple[str, str], Selected] = {}
    for one in named:
        distinct.setdefault((one[0], slug(one[1])), Selected(*one))
    chosen = list(distinct.values())
    if not chosen:
        if bool(kind) != bool(subject_id):
            raise refuse(400, "subject_kind and subject_id must be provided together")
        match = _INFERRED.fullmatch(asked["task"].strip())
        if match is not None and match[2].strip():
            chosen = [Selected(match[1], match[2].strip(), "inferred")]
    labels, most = [one.label for one in chosen], asked["continuity_max_capsules"]
    return chosen[:most], labels, labels[most:]


def empty_state(budget: int) -> dict[str, Any]:
    """What is said of capsules when there are none."""
    return {
        "present": False,
        "requested_selectors": [],
        "omitted_selectors": [],
        "capsules": [],
        "selection_order": [],
        "budget": {
            "requested_max_tokens_estimate": budget,
            "token_budget_hint": budget,
            "continuity_tokens_reserved": budget,
            "continuity_tokens_used": 0,
        },
        "warnings": [],
        "fallback_used": False,
        "recovery_warnings": [],
        "trust_signals": None,
        "salience_metadata": None,
    }


def is_fresh(one: Loaded, notes: Notes, now: datetime) -> bool:
    """Whether it has not expired; that it is stale or has an heir is warned of."""
    heir = trust.superseded_warning(one.capsule)
    if heir is not None:
        notes.recover(one.selected, heir)
    notes.warn(one.selected, *trust.phase_warnings(one.capsule, now))
    is_over = trust.phase_of(one.capsule, now) in ("expired", "expired_by_age")
    if is_over:
        notes.omitted.append(one.selected.label)
    return not is_over


def healthy_enough(loaded: Sequence[Loaded], policy: str, notes: Notes) -> list[Loaded]:
    """Those that policy lets through."""
    if policy != "require_healthy":
        return list(loaded)
    sound = [one for one in loaded if trust.health_of(one.capsule)[0] == "healthy"]
    notes.omitted += [one.selected.label for one in loaded if one not in sound]
    return sound


def by_salience(loaded: Sequence[Loaded], now: datetime) -> list[Loaded]:
    """What matters most first."""

    def key(one: Loaded) -> tuple[Any, ...]:
        signals = listing.salience(one.capsule, now)
        return listing.salience_key(signals, one.selected.kind, one.selected.subject_id)

    return sorted(loaded, key=key)


def fitted(
    loaded: Sequence[Loaded], budget: int, notes: Notes, now: datetime
) -> list[tuple[Loaded, Capsule]]:
    """The capsules that fit, each within its share of the budget, with what to think of it."""
    share, rest = divmod(budget, len(loaded))
    kept: list[tuple[Loaded, Capsule]] = []
    for at, one in enumerate(loaded):
        allowed = share + (1 if at < rest else 0)
        capsule = _fit(one, allowed, len(kept) + 1, notes, now)
        if capsule is None:
            notes.omitted.append(one.selected.label)
            notes.warn(one.selected, _TRUNCATED)
            continue
        kept.append((one, capsule))
        health = trust.health_of(one.capsule)[0]
        if health in _HEALTH:
            notes.warn(one.selected, _HEALTH[health])
    return kept


def _fit(one: Loaded, allowed: int, rank: int, notes: Notes, now: datetime) -> Capsule | None:
    """One capsule within its share. Trust is paid for first; salience only if there is room."""
    full = trust.trust_signals(one.capsule, now, one.source)
    compact = trust.compact_signals(one.capsule, now, one.source)
    signals: trust.Signals | None = next(
        (signals for signals in (full, compact) if tokens(signals) < allowed), None
    )
    cost = _NO_TRUST_TOKENS if signals is None else tokens(signals)
    block = {"rank": 0, "sort_key": listing.salience(one.capsule, now)}
    price = tokens(block)
    capsule, cut = trimmed(one.capsule, allowed - cost - price)
    is_placed = capsule is not None
    if capsule is None:
        capsule, cut = trimmed(one.capsule, allowed - cost - _NO_SALIENCE_TOKENS)
        if capsule is None:
            return None
        notes.recover(one.selected, _SALIENCE_OMITTED)
    capsule["source_state"] = one.source
    if signals is full:
        signals = trust.trust_signals(one.capsule, now, one.source, cut)
        shorter = trust.compact_signals(one.capsule, now, one.source, cut)
        body, grown = tokens(capsule), tokens(signals)
        is_over = grown > cost and body + grown > allowed
        if is_over and body + tokens(shorter) <= allowed:
            signals = shorter
            notes.recover(one.selected, COMPACT)
    elif signals is compact:
        signals = trust.compact_signals(one.capsule, now, one.source, cut)
        notes.recover(one.selected, COMPACT)
    capsule["trust_signals"] = signals
    has_room = is_placed and tokens(capsule) + price <= allowed
    if is_placed and not has_room:
        notes.recover(one.selected, _SALIENCE_OMITTED)
    capsule["salience"] = block | {"rank": rank} if has_room else None
    return capsule


def whole_state(
    state: dict[str, Any], kept: Sequence[tuple[Loaded, Capsule]], now: datetime
) -> dict[str, Any]:
    """What is said of the capsules that are there."""
    shown = [capsule for _, capsule in kept]
    each = [capsule["trust_signals"] for capsule in shown if capsule["trust_signals"] is not None]
    requested, omitted = len(state["requested_selectors"]), len(state["omitted_selectors"])
    return state | {
        "present": True,
        "capsules": shown,
        "selection_order": [f"{one.selected.resolution}:{one.selected.label}" for one, _ in kept],
        "trust_signals": trust.aggregate_signals(each, requested, len(shown), omitted),
        "salience_metadata": listing.salience_metadata(
            [listing.salience(one.capsule, now) for one, _ in kept]
        ),
        "budget": state["budget"] | {"continuity_tokens_used": sum(map(tokens, shown))},
    }
