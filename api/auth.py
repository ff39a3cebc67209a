"""Who is calling?  The only place where headers become an identity."""

from engine.policy import PRESETS
from engine.settings import Settings
from schemas.caller import Caller, Origin
from schemas.errors import InvalidActor, MissingToken
from schemas.scope import CALLER_TYPES, is_actor

LOCAL_ACTOR = "user:local"
LOCAL_TENANT = "local"


def identify(settings: Settings, headers: dict[bytes, bytes], origin: Origin) -> Caller:
    """The caller. Under `dev_local` the actor is taken at its word (001 §5.3.4)."""
    if PRESETS[settings.preset].require_signed:
        raise MissingToken(reason=f"preset {settings.preset} takes signed callers only")
    asserted = headers.get(b"x-cortex-actor")
    actor = _checked_actor(asserted) if asserted else LOCAL_ACTOR
    return Caller(actor=actor, tenant=LOCAL_TENANT, origin=origin)


def _checked_actor(asserted: bytes) -> str:
    actor = asserted.decode("latin-1")
    if not is_actor(actor) or actor.partition(":")[0] not in CALLER_TYPES:
        kinds = ", ".join(sorted(CALLER_TYPES))
        raise InvalidActor(field="X-Cortex-Actor", reason=f"expected type:id, type one of {kinds}")
    return actor
