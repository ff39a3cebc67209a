"""Which scopes does a recall walk, and which of them may this caller read?"""

from typing import TYPE_CHECKING

from engine import policy
from engine.recall.plan import Barred, Place, Walk
from engine.state.names import SCOPE
from schemas import limits
from schemas.caller import Caller
from schemas.errors import Denied, InvalidParameter
from schemas.scope import ancestors

if TYPE_CHECKING:
    from engine.engine import Engine

Way = tuple[list[Place], list[Barred]]


def walk_scopes(
    engine: "Engine", caller: Caller, tenant_no: int | None, scope: str, walk: Walk
) -> Way:
    """The scopes of a view: those that may be read, and on the way down those that may not."""
    if walk == "down":
        return _down(engine, caller, tenant_no, scope)
    paths = ancestors(scope) if walk == "up" else [scope]
    # An ancestor that the caller may not read is left out, as if it were empty (DESIGN §8.10).
    readable = [
        path
        for path in paths
        if path == scope or policy.may(engine, caller, "scope.read.local", path)
    ]
    return [Place(path, _number(engine, tenant_no, path)) for path in readable], []


def _number(engine: "Engine", tenant_no: int | None, path: str) -> int | None:
    return None if tenant_no is None else engine.names.known(SCOPE, tenant_no, path)


def _down(engine: "Engine", caller: Caller, tenant_no: int | None, scope: str) -> Way:
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
        said = denied_reason(engine, caller, path)
        if said is None:
            places.append(Place(path, number))
        else:
            barred.append(Barred(path, number, said))
    return places or [Place(scope, None)], barred


def denied_reason(engine: "Engine", caller: Caller, path: str) -> str | None:
    """Which tier says no, and to what; None when the scope may be read (001 §18.2.4)."""
    try:
        policy.require(engine, caller, "scope.read.local", path)
    except Denied as error:
        tier = error.details.get("denied_by_tier", "deployment")
        return f"{error.code} by {tier}: scope.read.local"
    return None
