"""Do tail, import, export, projectors, rebuild, token and completion work against a server?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STRATA = Path(sys.executable).parent / "strata"


def test_tail_tells_the_stages_in_order(server, strata, scope):
    """What is remembered while it listens is told, stage by stage."""
    with subprocess.Popen(
        [STRATA, "tail", "--count", "8", "--json", "--scope", scope, "--url", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tailing:
        told = []
        while tailing.poll() is None and not told:
            # It may not listen yet: then what was remembered before is not told.
            strata("remember", "Fay moved to Rome")
            told = _lines(tailing)
        tailing.wait(30)

    # Of one that was on its way when it began to listen only the later stages are told.
    first = [row["event"] for row in told].index("captured")
    whole = told[first : first + 4]
    assert ["captured", "extracted", "indexed", "consolidated"] == [row["event"] for row in whole]
    assert 1 == len({row["event_id"] for row in whole})


def _lines(process) -> list[dict]:
    """The lines of a process that is about to end, or none yet."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        return []
    return [json.loads(line) for line in process.stdout.read().splitlines()]


def test_tail_is_coloured_for_people(server, strata, scope):
    """A terminal sees the stages in colours of their own."""
    strata("remember", "Fay plays the cello")
    with subprocess.Popen(
        [STRATA, "tail", "--count", "1", "--scope", scope, "--url", server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color"},
    ) as tailing:
        assert "listening" in tailing.stderr.readline()
        strata("remember", "Fay works at Acme")
        said = tailing.stdout.read()

    assert "\x1b[" in said
    assert "captured" in said


@pytest.fixture
def memories(tmp_path):
    """What another system kept: three rows, one of them of no use."""
    rows = [
        {"id": "m1", "memory": "Lena prefers tea", "user_id": "lena"},
        {"id": "m2", "memory": "Lena lives in Cologne", "user_id": "lena"},
        {"id": "m3", "user_id": "lena"},
    ]
    path = tmp_path / "memories.json"
    path.write_text(json.dumps({"results": rows}), encoding="utf-8")
    return path


def test_import_takes_what_can_be_read(strata, memories, scope):
    """Good rows are there, the bad one is named by its line."""
    done = strata("import", "mem0", memories, "--into", scope)

    assert "completed: 3 rows, 1 of them skipped" in done.stdout
    assert "line 3" in done.stderr
    assert "3/3" in done.stderr, "a bar tells how far it is"
    assert "Lena lives in Cologne" in strata("recall", "where does Lena live?").stdout


def test_import_of_something_else(strata, tmp_path):
    """A file of which nothing could be taken is an error, whatever the job calls it."""
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")

    assert "is it of that kind?" in strata("import", "mem0", tmp_path / "hosts", code=1).stderr


def test_export_to_nowhere(strata, tmp_path):
    """A file that cannot be written is named; no traceback."""
    strata("remember", "Mira lives in Turin")
    said = strata("export", "-o", tmp_path / "none" / "mira.jsonl", code=1).stderr

    assert "mira.jsonl" in said


def test_import_tells_scripts(strata, memories, scope):
    """The job's last state, whole."""
    state = json.loads(strata("import", "mem0", memories, "--into", scope, "--json").stdout)

    assert "completed" == state["status"]
    assert 1 == state["error_count"]


def test_export_and_back(strata, tmp_path, scope):
    """What was taken out and brought to an empty directory is recalled there."""
    strata("remember", "Mira lives in Turin")
    said = strata("export", "-o", tmp_path / "mira.jsonl").stdout
    strata("import", "jsonl", tmp_path / "mira.jsonl", "--data", tmp_path / "data")
    found = strata("recall", "where does Mira live?", "--data", tmp_path / "data").stdout

    assert "1 records" in " ".join(said.split())  # a long path breaks the line anywhere
    assert "Mira lives in Turin" in found


def test_projectors_are_listed(strata):
    """By name, with their lag; as a table, and for scripts."""
    table = strata("projectors", "list").stdout
    items = json.loads(strata("projectors", "list", "--json").stdout)["items"]

    assert "lag_entries" in table
    assert {"facts", "beliefs"} <= {item["name"] for item in items}


def test_rebuild_waits_until_it_is_done(strata, tmp_path):
    """Afterwards no projector is behind, and memory is as it was."""
    place = ("--data", tmp_path / "data")
    strata("remember", "Bob moved to Lisbon", *place)
    strata("rebuild", *place)

    assert "Bob moved to Lisbon" in strata("recall", "where does Bob live?", *place).stdout


def test_a_projector_that_is_not_there(strata):
    """Its name is said back, with the exit code of what is absent."""
    assert "nobody" in strata("projectors", "retry", "nobody", code=5).stderr


def test_tokens_are_minted_and_listed(strata, tmp_path):
    """`strata token` is the reference issuer's own commands."""
    file = ("--db", tmp_path / "auth.db")
    subprocess.run([STRATA.with_name("cortex-auth-ref"), "init", *file], check=True)
    token = strata("token", "mint", "--actor", "user:alice", "--tenant", "acme", *file).stdout

    assert token.startswith("v4.public.")
    assert "user:alice" in strata("token", "list", *file).stdout


def test_a_token_is_revoked_at_the_server(strata):
    """The server is told, and says nothing against it."""
    assert "is taken no longer" in strata("token", "revoke", "jti-17").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_what_the_shell_reads(strata, shell):
    """A script that names the program and asks it."""
    said = strata("completion", shell).stdout

    assert "_STRATA_COMPLETE" in said
    assert "strata" in said


def test_bash_completes_commands():
    """What a shell asks at a tab: the commands that begin so."""
    asked = {"_STRATA_COMPLETE": "bash_complete", "COMP_WORDS": "strata rec", "COMP_CWORD": "1"}
    done = subprocess.run(
        [STRATA], env=os.environ | asked, capture_output=True, text=True, check=True
    )

    assert "plain,recall" in done.stdout.split()
