"""What do the facts of a scope speak of, and under which id?

Entities are a tenant's, names are said in scopes: a reader is told the names that facts of the
scope have for a thing, and no others.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from engine import policy
from engine.layers.naming import meaning_of
from engine.layers.pages import Ground, LayerRequest, survey
from engine.records import visible_version
from engine.temporal import Window
from projectors.entities import entity_key
from projectors.entities.rows import EntityRow
from projectors.records import fact_about_key
from schemas import limits
from schemas.caller import Caller
from schemas.errors import NotFound
from schemas.layers import EntityRef, Fact
from schemas.reads import Entity, EntityPage

if TYPE_CHECKING:
    from engine.engine import Engine

_TABLE: Final = "facts_about"
_GROUP: Final = 12
"""A key begins with a scope's number and eight bytes that stand for a thing."""
_NAMED_BY: Final = 32
"""Facts that are looked at for what they call a thing."""


class EntitiesRequest(LayerRequest, frozen=True, kw_only=True):
    """A page of entities; with a name, what is called so."""

    name: str | None = None


def list_entities(engine: "Engine", caller: Caller, request: EntitiesRequest) -> EntityPage:
    """A page of the things that a scope's facts are about, in no order that means anything."""
    policy.require_view(engine, caller, request.scope, request.view)
    ground = survey(engine, caller, request)
    if request.name is not None:
        named = [_named(engine, ground, number, request.name) for number in ground.reach.numbers]
        items = [entity for entity in named if entity is not None][: request.limit]
        return EntityPage(items=items, next_cursor=None, has_more=False)
    question = (caller.tenant, "entities", msgspec.structs.replace(request, cursor=None, limit=0))
    position = b"" if request.cursor is None else engine.cursors.read(request.cursor, *question)
    walk = _Walk(engine, ground, position)
    items = []
    while len(items) < request.limit and (group := walk.next()) is not None:
        found = walk.entity(group)
        if found is not None:
            items.append(found)
    more = walk.has_more()
    return EntityPage(
        items=items,
        next_cursor=engine.cursors.make(walk.position, *question) if more else None,
        has_more=more,
    )


def get_entity(engine: "Engine", caller: Caller, entity_id: str, scope: str) -> Entity:
    """One entity by its id, an actor or a name, as a scope knows it."""
    policy.require(engine, caller, "scope.read.local", scope)
    ground = survey(engine, caller, LayerRequest(scope=scope))
    named = (_named(engine, ground, number, entity_id) for number in ground.reach.numbers)
    found = next((entity for entity in named if entity is not None), None)
    if found is None:
        raise NotFound(f"Nothing in {scope} is called {entity_id[:80]!r}.", id=entity_id[:80])
    return found


def _named(engine: "Engine", ground: Ground, scope_no: int, name: str) -> Entity | None:
    """What an id, an actor or a name means in one scope."""
    assert ground.tenant_no is not None, "a scope with a number has a tenant"
    meaning = meaning_of(engine, ground.tenant_no, name, scope_no)
    if meaning is None:
        return None
    return _Walk(engine, ground, b"").entity(fact_about_key(scope_no, meaning.root))


class _Walk:
    """The things that scopes' facts are about, one scope after the other, a bounded number."""

    def __init__(self, engine: "Engine", ground: Ground, position: bytes) -> None:
        self._engine = engine
        self._ground = ground
        self._numbers = sorted(ground.reach.numbers)
        self._looked = 0
        self._window = Window(known_at=ground.window.known_at, valid_at=None)
        self.position = position

    def next(self) -> bytes | None:
        """The next group of keys; None at the end, or when this call has looked at enough."""
        if self._looked >= limits.PAGE_SCAN_MAX:
            return None
        self._looked += 1
        group = next(self._groups(), None)
        if group is not None:
            self.position = group
        return group

    def has_more(self) -> bool:
        """Whether anything lies beyond the last one."""
        return next(self._groups(), None) is not None

    def _groups(self) -> Iterator[bytes]:
        staged, tenant_no = self._engine.staged, self._ground.tenant_no
        if tenant_no is None or _TABLE not in staged.owner:
            return
        for number in self._numbers:
            first = number.to_bytes(4, "big")
            last = first + b"\xff" * 33
            if self.position > last:
                continue
            start = max(first, self.position + b"\xff" * 25 if self.position else b"")
            found = staged.between(tenant_no, _TABLE, start, last, last_first=False, limit=1)
            if found:
                yield found[0][0][:_GROUP]

    def entity(self, group: bytes) -> Entity | None:
        """What a group of facts is about; None when nothing of it is known any more."""
        tenant_no = self._ground.tenant_no
        assert tenant_no is not None, "there are groups only where there is a tenant"
        staged = self._engine.staged
        keys = staged.between(
            tenant_no,
            _TABLE,
            group,
            group + b"\xff" * 25,
            last_first=True,
            limit=limits.COUNTED_MAX,
        )
        facts = [
            fact
            for key, _ in sorted(keys, key=lambda row: row[0][-16:], reverse=True)[:_NAMED_BY]
            if isinstance(fact := self._fact(tenant_no, key[-16:]), Fact)
        ]
        subjects = [fact.subject for fact in facts if isinstance(fact.subject, EntityRef)]
        if not subjects:
            return None
        row: EntityRow | None = staged.get(tenant_no, "entities", entity_key(subjects[0].id))
        names = list(dict.fromkeys(one.name for one in subjects if one.name))
        return Entity(
            id=subjects[0].id,
            scope=facts[0].scope,
            name=names[0] if names else subjects[0].id,
            names=names,
            kind="thing" if row is None else row.kind,
            fact_count=len(keys),
        )

    def _fact(self, tenant_no: int, raw: bytes) -> object:
        return visible_version(self._engine, tenant_no, "facts", raw, self._window)
