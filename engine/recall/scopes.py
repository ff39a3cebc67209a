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


class Walker:
    """Finds a caller's way through the scopes of its tenant."""

    def __init__(self, engine: "Engine", caller: Caller) -> None:
        self._engine = engine
        self._caller = caller
        self._tenant_no = engine.tenant_no(caller)

    def walk(self, scope: str, walk: Walk) -> Way:
        """The scopes of a view: those that may be read, and on the way down those that may not."""
        if walk == "down":
            return self._down(scope)
        paths = ancestors(scope) if walk == "up" else [scope]
        # An ancestor that the caller may not read is left out, as if it were empty (DESIGN §8.10).
        readable = [path for path in paths if path == scope or self._may_read(path)]
        return [Place(path, self._number(path)) for path in readable], []

    def _may_read(self, path: str) -> bool:
        return policy.may(self._engine, self._caller, "scope.read.local", path)

    def _number(self, path: str) -> int | None:
        tenant_no = self._tenant_no
        return None if tenant_no is None else self._engine.names.known(SCOPE, tenant_no, path)

    def _down(self, scope: str) -> Way:
        """The scope and everything below it; what is closed to the caller is said to be there."""
        below = scope + "/"
        tenant_no = self._tenant_no
        named = [] if tenant_no is None else self._engine.names.all(SCOPE, tenant_no)
        found = sorted((path, no) for no, path in named if path == scope or path.startswith(below))
        if len(found) > limits.DESCEND_SCOPES_MAX:
            most = limits.DESCEND_SCOPES_MAX
            reason = f"{len(found)} scopes lie below; at most {most} are walked"
            raise InvalidParameter(field="view", reason=reason)
        places: list[Place] = []
        barred: list[Barred] = []
        for path, number in found:
            said = self._denied(path)
            if said is None:
                places.append(Place(path, number))
            else:
                barred.append(Barred(path, number, said))
        return places or [Place(scope, None)], barred

    def _denied(self, path: str) -> str | None:
        """Which tier says no, and to what; None when the scope may be read (001 §18.2.4)."""
        try:
            policy.require(self._engine, self._caller, "scope.read.local", path)
        except Denied as error:
            tier = error.details.get("denied_by_tier", "deployment")
            return f"{error.code} by {tier}: scope.read.local"
        return None
