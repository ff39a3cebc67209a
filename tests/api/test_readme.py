"""Does the first page a newcomer reads work as it is written?"""

import os
import re
import subprocess
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def first_session() -> str:
    section = README.read_text(encoding="utf-8").split("## A first session")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return block[1]


def test_the_first_session_runs_as_written(run_server):
    """Posted, watched to the end, replayed, read back: every command of the page, unchanged."""
    server = run_server()
    environment = os.environ | {"STRATA": server.url}

    done = subprocess.run(
        ["bash", "-eu", "-c", first_session()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    stages = re.findall(r"^event: (\w+)", done.stdout, re.MULTILINE)
    events = set(re.findall(r'"event_id":"(evt_[0-9a-f-]+)"', done.stdout))

    assert ["captured", "extracted", "indexed", "consolidated"] == stages
    assert 1 == len(events)
    assert "x-cortex-replay: true" in done.stdout
    assert re.search(r'"context_block":"[^"]*200', done.stdout), "the recall finds it"
    assert re.search(r'"answer":"[^"]*200', done.stdout), "and so does the answer"
    assert '"status":"healthy"' in done.stdout
