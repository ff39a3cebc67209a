"""Is every command in the table, with a help that tells, and do errors say what to do?"""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from api.cli import COMMANDS, main
from api.cli.exits import EXITS


def walk(command, names=()):
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*names, name))


EVERY = dict(walk(main))
LEAVES = {
    " ".join(names): command
    for names, command in EVERY.items()
    if names and not isinstance(command, click.Group)
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_table_names_the_command(name):
    """What the table leads to is called so; its help begins with a sentence."""
    command = EVERY[(name,)]

    assert name == command.name
    assert command.help


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_options_say_what_they_are_for(name):
    """An option without a help is a riddle, except where its name and choices say it all."""
    riddles = [
        option.name
        for option in LEAVES[name].params
        if isinstance(option, click.Option)
        and not option.help
        and not isinstance(option.type, click.Choice)
        and option.name != "output"
    ]

    assert [] == riddles


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_help_ends_with_examples(name):
    """Something to copy: of the command itself, or of the group it stands in."""
    group = EVERY[tuple(name.split()[:1])]
    shown = [command.epilog or "" for command in (LEAVES[name], group)]

    assert any("Examples:" in epilog and f"strata {name}" in epilog for epilog in shown)


def test_help_needs_no_engine():
    """`strata --help` and completion import nothing that is slow."""
    code = (
        "import sys; from api.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print({'engine', 'numpy', 'rocksdict', 'rich', 'httpx'} & set(sys.modules), 'loaded')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.rstrip().endswith("set() loaded")


def test_talking_to_a_server_needs_no_engine():
    """A command that asks a server does not load RocksDB to do so."""
    code = (
        "import sys; from api.cli import main\n"
        "main(['recall', '--help'], standalone_mode=False)\n"
        "print({'engine', 'numpy', 'rocksdict'} & set(sys.modules), 'loaded')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.rstrip().endswith("set() loaded")


# ── errors ───────────────────────────────────────────────────────────────────────────────────


def test_no_server(strata):
    """It says where it looked, and the three ways out."""
    said = strata("recall", "x", "--url", "http://127.0.0.1:9", code=3).stderr

    assert "no server answers at http://127.0.0.1:9" in said
    assert "strata serve" in said
    assert "--data" in said


def test_a_refusal_carries_its_remedy(strata):
    """Message, what to do, code and request id; no traceback."""
    said = strata("recall", "x", "--scope", "no scope", code=1).stderr

    assert "`scope`" in said
    assert "Change the request" in said
    assert "INVALID_SCOPE_GRAMMAR · request req_" in said
    assert "Traceback" not in said


def test_a_denial_is_an_exit_code_of_its_own(strata, client, scope):
    """A script can tell not allowed from not there."""
    member = {"actor": "user:owner", "role": "owner"}
    registered = client.post(
        "/v1/scopes",
        json={"path": scope, "members": [member]},
        headers={"X-Cortex-Actor": "user:owner"},
    )
    assert 201 == registered.status_code, registered.text

    said = strata("recall", "x", "--actor", "user:stranger", code=4).stderr

    assert "NOT_A_MEMBER" in said


def test_a_directory_in_use(server, strata):
    """Whoever opens a data directory that a server holds is told to ask the server."""
    said = strata("recall", "x", "--data", server.data, code=1).stderr

    assert "Traceback" not in said
    assert "server" in said


@pytest.mark.parametrize("command", ["recall", "why", "answer", "timeline"])
def test_a_misspelt_directory(strata, tmp_path, command):
    """What is asked of a folder that is none is an error, and makes no folder."""
    said = strata(command, "Acme", "--data", tmp_path / "typo", code=5).stderr

    assert "is no data directory" in said
    assert not (tmp_path / "typo").exists()


def test_tail_of_a_directory(strata, tmp_path):
    """Without a server nothing happens that could be followed."""
    assert "without a server" in strata("tail", "--data", tmp_path, code=1).stderr


def test_a_misspelt_option_is_a_usage_error(strata):
    """The shell's convention: 2."""
    assert "No such option" in strata("recall", "--tokenz", "3", code=2).stderr


def test_an_interrupt_is_an_exit_code_of_its_own(strata):
    """Ctrl-C while a server keeps one waiting: no traceback."""
    program = Path(sys.executable).parent / "strata"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asking = subprocess.Popen(
            [program, "recall", "x", "--url", address],
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background has taught its children to ignore it.
            preexec_fn=lambda: signal.signal(  # noqa: PLW1509 - it sets one handler, and locks nothing
                signal.SIGINT, signal.default_int_handler
            ),
        )
        with silent.accept()[0] as heard:
            heard.recv(1)  # it has asked, and waits for the answer
            asking.send_signal(signal.SIGINT)
            _, said = asking.communicate(timeout=240)

    assert 130 == asking.returncode, said
    assert "Traceback" not in said


def test_exit_codes_differ():
    """Each has one meaning."""
    assert sorted(EXITS) == sorted(set(EXITS))
    assert len(EXITS) == len(set(EXITS.values()))
