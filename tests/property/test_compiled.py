"""Do compiled modules say what their sources say?  (ADR 0040)"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDING = Path(__file__).with_name("folding.py")


@pytest.fixture
def compiled() -> str:
    """The folder of compiled modules that this run was started with."""
    first = os.environ.get("PYTHONPATH", "").partition(os.pathsep)[0]
    if not first or not any(Path(first).glob("strata__mypyc*")):
        pytest.skip("nothing is compiled: run with PYTHONPATH=$(scripts/compile)")
    return first


def folded(packages: str) -> tuple[str, list[str]]:
    """What a process with these packages is made of, and the rows that it leaves."""
    environment = {**os.environ, "PYTHONPATH": packages, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDING), str(ROOT)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    made_of, *tables = done.stdout.splitlines()
    return made_of, tables


def test_compiled_projectors_leave_the_same_rows(compiled):
    """I4: what follows from a log does not depend on how the projectors are run."""
    plain, rows = folded(str(ROOT))
    native, again = folded(compiled)

    assert ("plain", "compiled") == (plain, native)
    assert len(rows) > 20
    assert rows == again


def test_a_plain_fold_says_the_same_twice():
    """The corpus has nothing of chance in it, whatever the seed of hashes is."""
    assert folded(str(ROOT)) == folded(str(ROOT))
