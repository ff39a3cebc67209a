"""What does a reader mean by a name?"""

from typing import TYPE_CHECKING

from engine.records import TenantRows
from projectors.entities import entity_key, lookup
from projectors.entities.rows import EntityRow, Meaning

if TYPE_CHECKING:
    from engine.engine import Engine


def meaning_of(engine: "Engine", tenant_no: int, text: str, scope_no: int) -> Meaning | None:
    """What an id, an actor or a name means in a scope; None when nothing there is called so."""
    found = lookup(TenantRows(engine, tenant_no), text, scope_no)
    return found if found is not None and found.id else None


def actor_called(engine: "Engine", tenant_no: int, scope_no: int, name: str) -> str | None:
    """The actor who goes by a name in a scope; None when nobody does, or something else does."""
    found = meaning_of(engine, tenant_no, name, scope_no)
    if found is None:
        return None
    row: EntityRow | None = TenantRows(engine, tenant_no).get("entities", entity_key(found.root))
    return None if row is None else row.actor
