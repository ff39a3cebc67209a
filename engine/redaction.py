"""How do payloads leave, once their directive is durable?

The directive and a row that says what is still to be done are one batch: whoever was killed between
them and the end is followed by the next start. Everything here can be done twice.
"""

import asyncio
from typing import TYPE_CHECKING

from engine.blobs import destroy
from engine.commit import Desk
from engine.lifecycle import stages_key, unpack_stages
from engine.state.log import erasure_due
from engine.state.names import TENANT
from engine.state.views import prefix_end
from schemas.caller import SYSTEM, Caller
from schemas.entry import Directive, DropBlob, Entry, Forget
from schemas.ids import raw_of

if TYPE_CHECKING:
    from engine.engine import Engine

_DUE = b"erase."


def command_of(entry: Entry) -> Forget:
    """The forget that an entry holds."""
    assert isinstance(entry.body, Directive), "a directive names what is to be erased"
    assert isinstance(entry.body.command, Forget), "and it is a forget"
    return entry.body.command


async def redact(engine: "Engine", caller: Caller, entry: Entry, *, is_last: bool = True) -> None:
    """Destroy the payloads a directive names, and what only they held up; at last rebuild."""
    command = command_of(entry)
    offsets = [offset for event in command.events for offset in event.offsets]
    await asyncio.to_thread(_destroy, engine, entry.tenant_no, offsets)
    for blob_id in sorted({blob for event in command.events for blob in event.blobs}):
        await release_blob(engine, caller, entry.tenant_no, blob_id)
    engine.packs.drop(lambda tenant, _: tenant == entry.tenant)
    if is_last:
        engine.daemon.request_rebuild()
    batch = engine.kv.batch()
    batch.delete("meta", erasure_due(entry.offset))
    engine.kv.write(batch)


def _destroy(engine: "Engine", tenant_no: int, offsets: list[int]) -> None:
    engine.log.erase(offsets)
    batch = engine.kv.batch()
    tenant = tenant_no.to_bytes(4, "big")
    for offset in offsets:
        # Announcements name actors; that there were some is all that stays.
        stages = unpack_stages(engine.kv.get("stages", stages_key(tenant_no, offset)))
        for raw in stages:
            if raw is not None:
                batch.delete("lifecycle", tenant + raw)
    # Vectors and tokens say much of a text, and are found by the text alone: all are made again.
    batch.delete_range("embeddings", tenant, prefix_end(tenant) or tenant)
    engine.kv.write(batch)


async def release_blob(engine: "Engine", caller: Caller, tenant_no: int, blob_id: str) -> bool:
    """Take a blob away that no event cites any more; False while one does."""
    raw = raw_of("blob", blob_id)
    offset: int | None = await engine.committer.submit(_Release(caller, tenant_no, blob_id))
    if offset is not None:
        await asyncio.to_thread(destroy, engine, tenant_no, raw, offset)
    return offset is not None


class _Release:
    """A proposal to take away a blob that nothing cites."""

    entry_count = 1
    byte_count = 512

    def __init__(self, caller: Caller, tenant_no: int, blob_id: str) -> None:
        self._caller = caller
        self._tenant_no = tenant_no
        self._blob_id = blob_id

    def decide(self, desk: Desk) -> int | None:
        """The offset of its key; None when it is cited, or gone already."""
        raw = raw_of("blob", self._blob_id)
        row = desk.overlay.get(self._tenant_no, "blobs", raw)
        if row is None or any(True for _ in desk.overlay.scan(self._tenant_no, "blob_uses", raw)):
            return None
        desk.add(self._caller, Directive(command=DropBlob(blob_id=self._blob_id)))
        offset: int = row.offset
        return offset


async def resume(engine: "Engine") -> int:
    """At start: erase what directives named and a crash left; how many directives."""
    rows = list(engine.kv.scan("meta", _DUE, prefix_end(_DUE)))
    for key, _ in rows:
        offset = int.from_bytes(key[len(_DUE) :], "big")
        entry = engine.entry_of(engine.log.read_many([offset])[0])
        tenant = engine.names.name(TENANT, 0, entry.tenant_no)
        caller = Caller(actor=SYSTEM.actor, tenant=tenant)
        await redact(engine, caller, entry)
    return len(rows)
