"""Does every snippet of the pages run as it is written, and print what the page says it prints?

The blocks of one page are one session, from top to bottom: `sh` blocks share a folder and their
exported variables, `python` blocks their names. A `text` block right after one of them is what it
prints, line by line, where `…` stands for anything. One server answers all pages.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from strata_client import Client

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("docs/adr/", "docs/deviations.md")
"""Pages without snippets: decisions and differences."""
LANGUAGES = {"sh", "python", "json", "yaml", "text"}
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if not path.relative_to(ROOT).as_posix().startswith(ELSEWHERE)
)
EXTRAS = {"docs/howto/frameworks.md": ("langchain_core", "llama_index.core")}
"""What a page needs beyond the development tools; scripts/test installs it."""
_SHELL_S = 240
_CARRIED = """set -a; [ -f .exports ] && . ./.exports; set +a
{code}
export -p > .exports"""


@dataclass
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    code: str
    printed: str | None = None
    """What the page says that it prints."""


@dataclass
class Desk:
    """What a reader has before them: names of the Python session, and clients that are open."""

    names: dict
    clients: list


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks: list[Block] = []
    end = 0
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        block = Block(page, line, found["language"], found["code"])
        runs = bool(blocks) and blocks[-1].language in ("sh", "python")
        if block.language == "text" and runs and not text[end : found.start()].strip():
            blocks[-1].printed = block.code
        else:
            blocks.append(block)
        end = found.end()
    return blocks


@pytest.fixture(scope="module")
def docs_server(tmp_path_factory, start_server):
    """The server that every page talks to."""
    running = start_server(tmp_path_factory.mktemp("docs") / "data")
    yield running
    running.stop()


@pytest.fixture
def reader(docs_server, tmp_path, monkeypatch):
    """A reader's desk: an empty folder, the commands on the path, the server's address."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("CORTEX_", "STRATA_"))]:
        monkeypatch.delenv(name)
    for name in ("CORTEX_URL", "STRATA"):
        monkeypatch.setenv(name, docs_server.url)
    small = {"CORTEX_BALLAST_MB": "1", "CORTEX_DISK_LOW_WATER_MB": "16", "COLUMNS": "120"}
    for name, value in small.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CORTEX_DATA_DIR", str(docs_server.data))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    desk = Desk({"__name__": "__main__"}, [])
    yield desk
    for client in desk.clients:
        client.close()


def run_shell(block: Block) -> str:
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", _CARRIED.format(code=block.code)],
        capture_output=True,
        text=True,
        timeout=_SHELL_S,
        check=False,
    )
    assert 0 == done.returncode, f"{block.page}:{block.line}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_python(block: Block, desk: Desk) -> str:
    said = io.StringIO()
    # Lines of the page, so that a failure points into it.
    code = compile("\n" * block.line + block.code, str(ROOT / block.page), "exec")
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, desk.names)
    # A page may use a name again: what it stood for is closed all the same, at the end.
    desk.clients += [one for one in desk.names.values() if isinstance(one, Client)]
    return said.getvalue()


def check_printed(block: Block, said: str) -> None:
    """Every line that the page shows comes in the output, in its order."""
    at = 0
    lines = said.splitlines()
    for line in (block.printed or "").splitlines():
        wanted = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        while at < len(lines) and not re.fullmatch(wanted, lines[at].rstrip()):
            at += 1
        assert at < len(lines), f"{block.page}:{block.line} does not print {line!r}:\n{said}"
        at += 1


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_as_written(page, reader):
    """A reader who copies every block of a page, in order, gets what the page shows."""
    for package in EXTRAS.get(page, ()):
        pytest.importorskip(package)
    for block in blocks_of(page):
        if block.language == "sh":
            check_printed(block, run_shell(block))
        elif block.language == "python":
            check_printed(block, run_python(block, reader))
        elif block.language == "json":
            json.loads(block.code)
        elif block.language == "yaml":
            yaml.safe_load(block.code)


@pytest.mark.parametrize("page", PAGES)
def test_fences_say_what_they_hold(page):
    """A block of a language that nobody runs or reads would be a snippet that nobody tests."""
    strange = {block.language for block in blocks_of(page)} - LANGUAGES

    assert set() == strange


COMMAND = re.compile(r"^(\$ )?([A-Z_]+=\S+ )*(strata|scripts/\w+|curl|python|docker|pip)\b")
NOT_RUN = {
    ("README.md", "scripts/run"): "the tests run a server of their own; scripts/newcomer runs it",
    ("README.md", "strata serve"): "a table of the commands",
    ("docs/quickstart.md", "scripts/run"): "as in the README",
    ("docs/operations/run.md", "strata serve"): "goes on until it is stopped",
    ("docs/operations/run.md", "scripts/compile"): "takes minutes; scripts/test does it",
    ("docs/operations/workers.md", "CORTEX_REDIS_URL="): "needs a Redis; tests/integration has one",
    ("docs/howto/tokens.md", "CORTEX_DEPLOYMENT_PRESET="): "goes on until it is stopped",
    ("docs/howto/model.md", "CORTEX_LLM_URL="): "needs a model; tests/integration has one",
}
"""Blocks with commands that are shown and not run: page, how they begin, why."""


def test_commands_that_are_not_run_are_few():
    """A command in a block that nobody runs needs a reason, and a reason needs its command."""
    shown = {
        (page, block.code)
        for page in PAGES
        for block in blocks_of(page)
        if block.language == "text" and COMMAND.match(block.code)
    }
    excused = {
        (page, code)
        for page, code in shown
        if any(page == where and code.startswith(begins) for where, begins in NOT_RUN)
    }

    assert set() == shown - excused
    assert len(NOT_RUN) == len(excused)


def test_a_wrong_promise_is_seen():
    """The check of what a page shows can fail."""
    block = Block("page", 1, "sh", "", "a…c\nlast\n")

    check_printed(block, "abc\nbetween\nlast\n")
    with pytest.raises(AssertionError, match="does not print 'last'"):
        check_printed(block, "abc\nbetween\n")
