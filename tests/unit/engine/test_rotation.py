"""Does a tenant's wrapping key change under those who read and write, and after a kill?"""

import asyncio
from dataclasses import replace

import pytest

from engine.engine import open_engine, open_stores
from engine.read import EventsRequest, list_events
from engine.rotation import rotate
from engine.settings import Settings
from engine.state.kv import StoreWriteFailed
from engine.upkeep import verify

SCOPE = "org:acme/user:alice"


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path / "data", embedder="hashing", disk_low_water_mb=1, ballast_mb=0)


def silent(*_):
    """Progress nobody watches."""


async def test_beside_writers(rig, settings):
    """Entries come in while the key is changed three times: each can be read, and a replay too."""
    async with open_engine(settings) as engine:
        await rig.post(engine, "first", scope=SCOPE)
        number = engine.tenant_no(rig.ALICE)

        async def write():
            for at in range(60):
                await rig.post(engine, f"t{at}", scope=SCOPE)

        async def change():
            return [await rotate(engine, number) for _ in range(3)]

        _, generations = await asyncio.gather(write(), change())
        both = await asyncio.gather(rotate(engine, number), rotate(engine, number))
    async with open_engine(settings) as engine:
        page = list_events(engine, rig.ALICE, EventsRequest(scope=SCOPE, limit=100)).value

    assert [2, 3, 4] == generations
    assert [5, 6] == sorted(both)
    assert 61 == len(page.items)
    assert verify(settings, silent, replay=True).is_good


class Fuse:
    """A store that stops working after so many operations on its disk."""

    def __init__(self, kv):
        self._kv = kv
        self.left = 1 << 30

    def __getattr__(self, name):
        return getattr(self._kv, name)

    def _burn(self):
        if self.left <= 0:
            raise StoreWriteFailed("the process ended here")
        self.left -= 1

    def write(self, batch):
        """Write, unless it is over."""
        self._burn()
        self._kv.write(batch)

    def sync(self):
        """Sync, unless it is over."""
        self._burn()
        self._kv.sync()


async def test_killed_in_the_middle(rig, settings):
    """At any write or sync: nothing is lost, and the next change leaves one key, of its own."""
    async with open_engine(settings) as engine:
        for at in range(5):
            await rig.post(engine, f"t{at}", scope=SCOPE)
    kept, was_cut = 0, True
    while was_cut:
        stores = open_stores(settings)
        fuse = Fuse(stores.vault_kv)
        async with open_engine(settings, stores=replace(stores, vault_kv=fuse)) as engine:
            number = engine.tenant_no(rig.ALICE)
            fuse.left = kept
            try:
                await rotate(engine, number)
                was_cut = False
            except StoreWriteFailed:
                kept += 1
            fuse.left = 1 << 30
        async with open_engine(settings) as engine:
            between = list_events(engine, rig.ALICE, EventsRequest(scope=SCOPE)).value.items
            generation = await rotate(engine, number)
            again = list_events(engine, rig.ALICE, EventsRequest(scope=SCOPE)).value.items
        names = [path.name for path in (settings.data / "keys" / "tenants").iterdir()]

        assert 5 == len(between) == len(again), kept
        assert [f"1-{generation}.key"] == names, kept
    assert kept >= 4
    assert verify(settings, silent, replay=True).is_good
