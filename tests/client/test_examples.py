"""Do the examples run as they are, and do what they say?"""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_RUN_S = 240


def run(name, *arguments, said=""):
    """What an example prints, given this on its standard input."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=_RUN_S,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_chat_remembers_after_it_ended(tmp_path):
    """What was said in one run is known in the next; what was never said is not made up."""
    data = ["--data", str(tmp_path / "data")]
    before = run("chat", *data, said="Where is the dog?\nMy dog Bruno is at the vet.\n")
    after = run("chat", *data, said="Where is Bruno?\n")

    assert ["I do not know yet.", "I will remember that."] == before
    assert "My dog Bruno is at the vet" in after[0]


def test_the_chat_talks_to_a_server_too(server, scope):
    """The same program, over HTTP."""
    flags = ["--url", server.url, "--scope", scope]
    _, answer = run("chat", *flags, said="Acme moved to 200 seats.\nHow many seats has Acme?\n")

    assert "200 seats" in answer


def test_the_subscriber_hears_what_is_written(server, connect, scope):
    """Four lines an event, as they happen."""
    command = [sys.executable, EXAMPLES / "subscriber.py", "--url", server.url]
    with subprocess.Popen(
        [*command, "--scope", scope, "--count", "4"], stdout=subprocess.PIPE, text=True
    ) as listening:
        assert listening.stdout is not None
        assert f"listening to {scope}\n" == listening.stdout.readline()
        event_id = connect().experience("Acme moved to 200 seats").event_id
        lines = [line.split() for line in listening.stdout]

    assert [
        [stage, event_id, scope] for stage in ("captured", "extracted", "indexed", "consolidated")
    ] == lines
    assert 0 == listening.returncode


def test_the_replay_finds_everything_twice(tmp_path):
    """Questions of now and of then are answered; a second run over the same data adds nothing."""
    recording = str(EXAMPLES / "conversation.jsonl")
    first = run("replay", recording, "--data", str(tmp_path / "data"))
    second = run("replay", recording, "--data", str(tmp_path / "data"))

    assert "3 of 3 found" == first[-1]
    assert first == second


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_says_how_to_run_it(path):
    """Its first lines are its manual."""
    assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
