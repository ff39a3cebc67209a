"""/v1/peers: whom may an agent hand something to?  Those that an admin has made known (000)."""

from typing import Any, Final

from api.cognirelay.access import ADMIN, SURFACE, is_admin, need, peer_of
from api.cognirelay.errors import DIALECT
from api.cognirelay.homes import commit_of, home_of
from api.cognirelay.translate.coordination import PEER, Me, registered
from api.cognirelay.translate.schedule import stamp
from api.endpoint import Call, Endpoint, Reply
from engine.surface import Change, Held, Outcome, Write, change_documents
from schemas.surfaces.cognirelay.coordination import REGISTER_PEER


async def _register(call: Call) -> Reply:
    need(call, ADMIN)
    asked = REGISTER_PEER.filled(call.body)
    me = Me(peer_of(call.caller), is_admin(call))
    home = home_of({}, me.peer)

    def decide(held: Held) -> Outcome:
        known = held.get(PEER, asked["peer_id"])
        before = None if known is None else known.value
        peer = registered(asked, before, me, stamp(int(held.now.timestamp())))
        words = f"peer {peer['peer_id']} at {peer['base_url']}, {peer['trust_level']}"
        write = Write(kind=PEER, key=peer["peer_id"], scope=home, words=words, value=peer)
        return Outcome(answer=(peer, before is None), writes=[write])

    change = Change(surface=SURFACE, scopes=(home,), decide=decide)
    changed = await change_documents(call.engine, call.caller, change)
    peer, is_new = changed.answer
    return Reply(
        {"ok": True, "peer": peer, "created": is_new, "committed": True} | commit_of(changed)
    )


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/peers/register",
        _register,
        "Make a peer known, or change what is known of it.",
        "scope.write",
        body=Any,
        shape=REGISTER_PEER,
        dialect=DIALECT,
    ),
)
