"""Do the snippets of the client's page run, as they stand there?"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "sdk" / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.strip().splitlines()[-1][:40])
def test_a_snippet_runs(snippet, server, scope, tmp_path):
    """Each by itself, in an empty folder, against a server that the environment names."""
    if "langchain" in snippet:
        pytest.importorskip("langchain_core", reason="scripts/setup adapters installs it")
    environment = {**os.environ, "CORTEX_URL": server.url, "CORTEX_SCOPE": scope}
    done = subprocess.run(
        [sys.executable, "-c", snippet],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_the_page_names_every_group():
    """What a client has is on its page."""
    from functools import cached_property

    from strata_client.client import Client

    groups = {
        name
        for kind in Client.__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    }
    page = PAGE.read_text(encoding="utf-8")

    assert set() == {name for name in groups if f".{name}`" not in page}
