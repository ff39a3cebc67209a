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

    def run(*command, code=0, url=realm.server.url):
        flags = ["--endpoint", url, "--api-key", realm.token(ME), "--actor", ME]
        home = {"CORTEXDB_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
        done = subprocess.run(
            [CORTEXDB, *flags, "--scope", scope, "--json", *command],
            capture_output=True,
            text=True,
            env=home,
            check=False,
        )
        assert code == done.returncode, done.stdout + done.stderr
        return json.loads(done.stdout) if code == 0 else done.stdout + done.stderr

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


READS = [
    ("episodes", "list"),
    ("entities", "list"),
    ("entities", "get", "Acme"),
    ("facts", "list", "--subject", "Acme"),
    ("facts", "timeline", "--subject", "Acme", "--predicate", "seat_count"),
    ("beliefs", "list"),
    ("scopes", "list"),
    ("auth", "whoami"),
    ("policy", "effective"),
    ("policy", "deployment"),
    ("admin", "health"),
    ("admin", "usage"),
    ("audit", "chain"),
    ("audit", "verify"),
    ("recall", "seats", "--view", "granular", "--include", "facts", "--diagnostics", "none"),
]


def test_every_reading_command_answers(cortexdb):
    """One after the other over the same memory, each with what it prints as JSON."""
    cortexdb("remember", "Acme moved to 200 seats.", "--tags", "a,b", "--wait", "indexed")
    answers = {command: cortexdb(*command) for command in READS}

    assert "Acme" in json.dumps(answers["facts", "list", "--subject", "Acme"])
    assert "200" in json.dumps(answers[READS[4]])
    assert answers["beliefs", "list"]["items"]


def test_the_diagnoses_pass(cortexdb, server):
    """Both look at `health` without their token, so it is an unsigned server that they pass."""
    for command in ("preflight", "doctor"):
        assert cortexdb(command, url=server.url)["ok"]


def test_why_something_is_believed(cortexdb):
    """By the id that its own listing gave."""
    cortexdb("remember", "Acme moved to 200 seats.", "--wait", "indexed")
    (belief,) = cortexdb("beliefs", "list")["items"]
    why = cortexdb("beliefs", "why", belief["id"])

    assert belief["id"] == why["belief"]["id"]


def test_writing_commands(cortexdb, tmp_path):
    """Links, imports line by line and scopes are written, and read back by its own commands."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "Bruno is a dog."}\n{"text": "Dana owns Bruno."}\n')
    cortexdb("entities", "link", "--source", "Ines", "--target", "Dana", "--relationship", "knows")
    cortexdb("experience", "Acme moved to 200 seats.")
    cortexdb("import", str(rows))
    cortexdb("scopes", "register", "org:acme/ws:outside", "--owner", ME)
    members = cortexdb("scopes", "members", "org:acme/ws:outside")
    found = cortexdb("recall", "Bruno")

    assert ME in json.dumps(members)
    assert "Bruno" in found["context_block"]


def test_forgetting_commands(cortexdb):
    """A preview, then a single memory by its id."""
    written = cortexdb("remember", "The code is 4711.", "--wait", "indexed")
    shown = cortexdb("forget", "--subject", "code", "--preview")
    gone = cortexdb("forget", "--memory-id", written["event_id"], "--reason", "asked", "--yes")

    assert shown["preview_id"]
    assert gone["audit_id"]


BEYOND = [
    ("compose", "digest"),
    ("beliefs", "build"),
    ("beliefs", "create", "so", "--confidence", "0.9"),
    ("conflicts", "list"),
    ("claims", "history", "--subject", "Acme", "--predicate", "owns"),
    ("concepts", "list"),
    ("concepts", "coverage"),
    ("understanding", "list"),
    ("auth", "tokens", "--subject", "user:bob"),
    ("admin", "layers"),
    ("admin", "retention", "show"),
    ("admin", "wal", "status"),
    ("code", "matrix"),
]


@pytest.mark.parametrize("command", BEYOND, ids=" ".join)
def test_what_the_seed_does_not_have_ends_with_a_word(cortexdb, command):
    """Its own error, not a traceback: the server's 404 is in the envelope it reads."""
    said = cortexdb(*command, code=1)

    assert "Traceback" not in said
    assert "404" in said or "405" in said or "not" in said.lower()
