"""Why is it believed?  From a belief to the events, as far as the caller may see (001 §8.7.6)."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from engine import policy
from engine.layers.beliefs import get_belief
from engine.layers.lookup import known_at
from engine.read import event_of
from engine.records import as_known, get_versions, present, raw_id
from engine.temporal import moment
from projectors.beliefs.why import Found, why
from schemas.caller import Caller
from schemas.ids import parse_id
from schemas.layers import Concept, Event
from schemas.reads import Why

if TYPE_CHECKING:
    from engine.engine import Engine

_LAYERS: Final = {"ep": "episodes", "fact": "facts", "belief": "beliefs"}


def explain_belief(
    engine: "Engine", caller: Caller, belief_id: str, as_of: str | None = None
) -> Why:
    """What a belief rests on, and what that comes to in words."""
    policy.require(engine, caller, "scope.read.local")
    belief = get_belief(engine, caller, belief_id, as_of)
    at = present(engine) if as_of is None else moment(as_of, "as_of")
    return why(belief, _Records(engine, caller, at).find)


class _Records:
    """Records and events as they were known at a moment, where the caller may read."""

    def __init__(self, engine: "Engine", caller: Caller, at: datetime) -> None:
        self._engine = engine
        self._caller = caller
        self._at = at
        self._tenant_no = engine.tenant_no(caller) or 0
        self._found: dict[str, Found | None] = {}

    def find(self, record_id: str) -> Found | None:
        """One of them by its id; None when it is not there, or not for this caller."""
        if record_id not in self._found:
            found = self._event(record_id) or self._record(record_id)
            is_open = found is not None and policy.may(
                self._engine, self._caller, "scope.read.local", found.scope
            )
            self._found[record_id] = found if is_open else None
        return self._found[record_id]

    def _event(self, event_id: str) -> Event | None:
        raw, engine = parse_id("evt", event_id), self._engine
        offset = None if raw is None else engine.directory.find(self._tenant_no, raw)
        if offset is None or offset > engine.log.head():
            return None
        return event_of(engine, self._tenant_no, engine.entry_of(engine.log.read_many([offset])[0]))

    def _record(self, record_id: str) -> Found | None:
        layer = _LAYERS.get(record_id.partition("_")[0])
        raw = None if layer is None else raw_id(layer, record_id)
        if layer is None or raw is None:
            return None
        versions = get_versions(self._engine, self._tenant_no, layer, raw)
        record = known_at(versions, self._at)
        if record is not None:
            record = as_known(self._engine, self._tenant_no, raw, record, self._at)
        return None if isinstance(record, Concept) else record
