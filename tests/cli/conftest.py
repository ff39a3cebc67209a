"""What do the tests of the commands share?  `strata`, in this process, against a server."""

import os

import pytest
from click.testing import CliRunner

from api.cli import main


@pytest.fixture
def strata(server, scope, monkeypatch):
    """`strata(*arguments)` against the shared server, in a scope of the test's own."""
    for name in [name for name in os.environ if name.startswith(("CORTEX_", "STRATA_"))]:
        monkeypatch.delenv(name)
    for name, value in {"CORTEX_URL": server.url, "CORTEX_SCOPE": scope, "COLUMNS": "160"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CORTEX_BALLAST_MB", "1")
    monkeypatch.setenv("CORTEX_DISK_LOW_WATER_MB", "16")

    def run(*arguments, code=0, told=None):
        done = CliRunner().invoke(main, [str(one) for one in arguments], input=told)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert code == done.exit_code, done.output
        return done

    return run
