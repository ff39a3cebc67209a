"""What does a reader mean by a name?"""

from typing import TYPE_CHECKING

from engine.records import TenantRows
from projectors.entities import Meaning, lookup

if TYPE_CHECKING:
    from engine.engine import Engine


def meaning_of(engine: "Engine", tenant_no: int, text: str, scope_no: int) -> Meaning | None:
    """What an id, an actor or a name means in a scope; None when nothing there is called so."""
    found = lookup(TenantRows(engine, tenant_no), text, scope_no)
    return found if found is not None and found.id else None
