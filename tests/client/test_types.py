"""Does a type checker know what a call gives?  mypy reads a program that uses both clients."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from strata_client import AsyncClient, Client

blocking, awaited = Client(), AsyncClient()
reveal_type(blocking.recall("x"))
reveal_type(awaited.recall("x"))
reveal_type(blocking.facts.list())
reveal_type(awaited.facts.list())
reveal_type(blocking.lifecycle.stream())
reveal_type(blocking.scopes.delete("user:ines"))
blocking.facts.list(nonsense=1)
blocking.recall("x", view="sideways")
blocking.beliefs.why()
"""


def test_a_type_checker_tells_the_two_apart_and_knows_the_parameters(tmp_path):
    """A forgotten await, a parameter that is none, a wrong word, one missing: each is an error."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", str(program)]
    done = subprocess.run(command, cwd=ROOT / "sdk", capture_output=True, text=True, check=False)

    told = re.findall(r'Revealed type is "(.*)"', done.stdout)
    short = [re.sub(r"strata_client\.(\w+\.)+", "", each) for each in told]
    assert [
        "StratifiedPack",
        "typing.Coroutine[Any, Any, StratifiedPack]",
        "Pages[Fact]",
        "AsyncPages[Fact]",
    ] == short[:4]
    assert "Stream[" == short[4][:7]
    assert "None" == short[5]
    wrong = [int(line) for line in re.findall(r"program\.py:(\d+): error", done.stdout)]
    assert [6, 11, 12, 13] == wrong, done.stdout
