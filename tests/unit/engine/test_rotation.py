"""Does a tenant's wrapping key change under those who read and write, and after a kill?"""

import asyncio

import pytest

from engine.engine import open_engine
from engine.read import EventsRequest, list_events
from engine.rotation import rotate
from engine.settings import Settings
from engine.state import vault as vault_state
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


@pytest.mark.parametrize("step", ["begin_rotation", "rewrap", "end_rotation"])
async def test_killed_in_the_middle(rig, settings, step, monkeypatch):
    """Nothing is lost, and the next change leaves one key, of a generation after all others."""

    class Killed(Exception):
        """The process ended here."""

    done = getattr(vault_state.Vault, step)

    def cut_off(vault, *given):
        done(vault, *given)
        raise Killed

    async with open_engine(settings) as engine:
        for at in range(5):
            await rig.post(engine, f"t{at}", scope=SCOPE)
        number = engine.tenant_no(rig.ALICE)
        with monkeypatch.context() as patch:
            patch.setattr(vault_state.Vault, step, cut_off)
            with pytest.raises(Killed):
                await rotate(engine, number)
    async with open_engine(settings) as engine:
        between = list_events(engine, rig.ALICE, EventsRequest(scope=SCOPE)).value.items
        await rotate(engine, number)
        await rig.post(engine, "after", scope=SCOPE)
    names = [path.name for path in (settings.data / "keys" / "tenants").iterdir()]

    assert 5 == len(between)
    assert ["1-3.key"] == names
    assert verify(settings, silent, replay=True).is_good
