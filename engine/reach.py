"""Which scopes does a read walk, and which of them may this caller read?  (001 §3.4.2, §18.2.4)"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine import policy
from engine.state.names import SCOPE
from schemas import limits
from schemas.caller import Caller
from schemas.errors import Denied, InvalidParameter
from schemas.scope import ancestors

if TYPE_CHECKING:
    from engine.engine import Engine

View = Literal["local", "holistic", "descend", "raw", "granular", "narrative", "structured"]
"""One enumeration for traversal and shape (DESIGN §8.1): holistic and descend traverse."""


@dataclass(frozen=True)
class Place:
    """A scope on the way: its number is None when nothing was ever written there."""

    path: str
    number: int | None


@dataclass(frozen=True)
class Barred:
    """A scope below that the caller may not read, and who says so."""

    path: str
    number: int
    reason: str


@dataclass(frozen=True)
class Reach:
    """The scopes of a view: those that may be read, and on the way down those that may not."""

    places: list[Place]
    barred: list[Barred]

    @property
    def numbers(self) -> list[int]:
        """Those that were ever written to."""
        return [place.number for place in self.places if place.number is not None]


def reach_of(
    engine: "Engine", caller: Caller, tenant_no: int | None, scope: str, view: View
) -> Reach:
    """The scopes that a view walks from a scope the caller may read."""
    if view == "descend":
        return _down(engine, caller, tenant_no, scope)
    paths = ancestors(scope) if view == "holistic" else [scope]
    # An ancestor that the caller may not read is left out, as if it were empty (DESIGN §8.10).
    readable = [
        path
        for path in paths
        if path == scope or policy.may(engine, caller, "scope.read.local", path)
    ]
    return Reach([Place(path, _number(engine, tenant_no, path)) for path in readable], [])


def _number(engine: "Engine", tenant_no: int | None, path: str) -> int | None:
    return None if tenant_no is None else engine.names.known(SCOPE, tenant_no, path)


def _down(engine: "Engine", caller: Caller, tenant_no: int | None, scope: str) -> Reach:
    """The scope and everything below it; what is closed to the caller is said to be there."""
    below = scope + "/"
    named = [] if tenant_no is None else engine.names.all(SCOPE, tenant_no)
    found = sorted((path, no) for no, path in named if path == scope or path.startswith(below))
    if len(found) > limits.DESCEND_SCOPES_MAX:
        reason = f"{len(found)} scopes lie below; at most {limits.DESCEND_SCOPES_MAX} are walked"
        raise InvalidParameter(field="view", reason=reason)
    places: list[Place] = []
    barred: list[Barred] = []
    for path, number in found:
        reason_said = denied_reason(engine, caller, path)
        if reason_said is None:
            places.append(Place(path, number))
        else:
            barred.append(Barred(path, number, reason_said))
    return Reach(places or [Place(scope, None)], barred)


def denied_reason(engine: "Engine", caller: Caller, path: str) -> str | None:
    """Which tier says no, and to what; None when the scope may be read (001 §18.2.4)."""
    try:
        policy.require(engine, caller, "scope.read.local", path)
    except Denied as error:
        tier = error.details.get("denied_by_tier", "deployment")
        return f"{error.code} by {tier}: scope.read.local"
    return None
