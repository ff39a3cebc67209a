"""Is the published command line of CortexDB at home here?  Its own program, our server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CORTEXDB = Path(sys.executable).parent / "cortexdb"
ME = "user:ines"


@pytest.fixture
def cortexdb(realm, tmp_path, scope):
    """Run a command as a user with a token would; what it printed, as JSON."""

    def run(*command):
        flags = ["--endpoint", realm.server.url, "--api-key", realm.token(ME), "--actor", ME]
        home = {"CORTEXDB_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
        done = subprocess.run(
            [CORTEXDB, *flags, "--scope", scope, "--json", *command],
            capture_output=True,
            text=True,
            env=home,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def test_verify_passes(cortexdb):
    """A marker is written, waited for and recalled: the vendor's own proof of a working server."""
    report = cortexdb("verify", "--keep")

    assert report["ok"]
    assert {"pass": 3, "fail": 0, "skip": 0, "blocked": 0} == report["counts"]
    assert report["stages"][-1]["data"]["recalled"]


def test_what_is_remembered_is_recalled(cortexdb):
    """Remember, recall, search, answer: the four words of its front page."""
    cortexdb("remember", "Acme moved to 200 seats.", "--wait", "indexed")
    pack = cortexdb("recall", "How many seats has Acme?", "--max-tokens", "500")
    answer = cortexdb("answer", "How many seats has Acme?")
    found = cortexdb("search", "Acme seats", "--limit", "3")

    assert "Acme moved to 200 seats." in pack["context_block"]
    assert "Acme moved to 200 seats." in answer["answer"]
    assert "Acme moved to 200 seats." in json.dumps(found)
