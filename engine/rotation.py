"""How does a tenant's wrapping key change, so that older backups open with nothing that is left?

The new key and a new payload key are durable first; what stays is given rows under the new one,
then the old one is destroyed (docs/adr/0033). A kill anywhere leaves both keys, and the next change
goes on from there.
"""

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from schemas.errors import WalUnavailable

if TYPE_CHECKING:
    from engine.engine import Engine

_STEP: Final = 2048
_POLL_S: Final = 0.005


async def rotate(engine: "Engine", tenant_no: int) -> int:
    """Change the wrapping key of a tenant; the generation that is in use from now on."""
    vault = engine.vault
    if not vault.can_rotate:
        return 0  # a store in memory, of which nobody has a copy
    async with vault.rotating:
        fresh = await asyncio.to_thread(vault.begin_rotation, tenant_no)
        if fresh is None:
            # What a crash left is no substitute: a copy made since then holds its new key.
            await _move(engine, tenant_no)
            fresh = await asyncio.to_thread(vault.begin_rotation, tenant_no)
            assert fresh is not None, "one rotation at a time"
        # Here, on the loop, no entry is half-way between its key and its row.
        vault.adopt(tenant_no, fresh)
        return await _move(engine, tenant_no)


async def _move(engine: "Engine", tenant_no: int) -> int:
    """Move every payload that is there to the newest key, and destroy the others."""
    log = engine.log
    target = log.written
    await log.sync_buffered()
    while log.head() < target:  # an offset that a power cut takes back may not keep a key
        if log.failure is not None:
            raise WalUnavailable(reason=log.failure)
        await asyncio.sleep(_POLL_S)
    await asyncio.to_thread(_rewrap, engine, tenant_no, target)
    return await asyncio.to_thread(engine.vault.end_rotation, tenant_no)


def _rewrap(engine: "Engine", tenant_no: int, until: int) -> None:
    wanted = (
        (tenant_no, header.offset, header.key_commitment)
        for header, _, _ in engine.log.headers(engine.log.base_offset + 1, until + 1)
        if header.tenant_no == tenant_no
    )
    while step := list(islice(wanted, _STEP)):
        engine.vault.rewrap(step)
