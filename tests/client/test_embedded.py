"""Does the engine run in process, behind the same methods?"""

import asyncio
import subprocess
import sys

import pytest

from strata_client import AsyncClient, Client, EmbeddedError, NotFound, StrataError

SMALL = {"ballast_mb": 1, "disk_low_water_mb": 16}
SEATS = "Acme moved to 200 seats"


@pytest.fixture
def data(tmp_path):
    """A data directory of the test's own."""
    return tmp_path / "data"


def test_what_is_experienced_is_recalled_and_outlives_the_process_of_it(data):
    """No server: the same two lines, and the directory holds it when it is opened again."""
    with Client.embedded(data, SMALL) as memory:
        memory.experience(SEATS, wait="indexed")
        assert SEATS in memory.recall("how many seats has Acme?").context_block
    with Client.embedded(data, SMALL) as memory:
        assert [SEATS] == [event.content.text for event in memory.events.list()]
        with pytest.raises(NotFound):
            memory.events.get("evt_nowhere")


def test_streams_work_without_a_socket(data):
    """Announcements and pieces of a pack come as they happen, not when all is over."""
    with Client.embedded(data, SMALL) as memory:
        with memory.lifecycle.stream() as heard:
            memory.experience(SEATS, wait="indexed")
            stages = [next(heard).event for _ in range(4)]
        pieces = [piece.event for piece in memory.recall_stream("how many seats?")]

    assert ["captured", "extracted", "indexed", "consolidated"] == stages
    assert ("plan", "done") == (pieces[0], pieces[-1])


def test_a_stream_that_is_read_late_is_whole(data):
    """The engine waits for its reader as it would on a socket, and goes on with the rest."""
    with Client.embedded(data, SMALL) as memory, memory.lifecycle.stream() as heard:
        for _ in range(3):
            memory.experience_bulk([f"turn {number}" for number in range(200)], wait="indexed")
        stages = [next(heard) for _ in range(2_400)]

    assert 600 == sum(each.event == "captured" for each in stages)
    assert len({each.lifecycle_id for each in stages}) == len(stages)


def test_the_same_awaited(data):
    """An AsyncClient opens the engine when its block begins, and streams from it."""

    async def told():
        async with (
            AsyncClient.embedded(data, SMALL) as memory,
            memory.lifecycle.stream() as heard,
        ):
            await memory.experience(SEATS, wait="indexed")
            first = await anext(heard)
            pack = await memory.recall("how many seats has Acme?")
            return first.event, pack.context_block

    event, block = asyncio.run(told())
    assert "captured" == event
    assert SEATS in block


def test_a_directory_in_use_is_said(data):
    """One process at a time: the error names the directory and what to do."""
    with (
        Client.embedded(data, SMALL),
        pytest.raises(EmbeddedError, match=r"data is in use: close what holds it"),
    ):
        Client.embedded(data, SMALL)


def test_closing_lets_go_of_the_directory_even_with_a_stream_open(data):
    """A stream that nobody closed does not hold the engine up."""
    memory = Client.embedded(data, SMALL)
    heard = memory.lifecycle.stream()
    heard.__enter__()
    memory.close()

    with Client.embedded(data, SMALL) as again:
        assert again.admin.ready().ready
    with pytest.raises(StrataError, match="was closed"):
        memory.recall("anything?")


def test_a_setting_that_cannot_be_used_is_said(data):
    """The engine's own word for it comes through."""
    with pytest.raises(EmbeddedError, match="projection"):
        Client.embedded(data, {"projection": "many"})


def test_a_program_that_forgets_to_close_ends_well(data):
    """What was acknowledged is there, and the process ends with nothing to say."""
    program = (
        "from strata_client import Client\n"
        f"memory = Client.embedded({str(data)!r}, {SMALL!r})\n"
        f"memory.experience({SEATS!r})\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    with Client.embedded(data, SMALL) as memory:
        assert [SEATS] == [event.content.text for event in memory.events.list()]


def test_without_the_engine_it_says_what_to_install(data):
    """The client alone is a client of servers."""
    program = (
        "import sys\n"
        "sys.modules['api'] = None\n"  # what an import finds where the distribution is not
        "from strata_client import Client, EmbeddedError\n"
        "try:\n"
        f"    Client.embedded({str(data)!r})\n"
        "except EmbeddedError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "strata-memory" in done.stdout
