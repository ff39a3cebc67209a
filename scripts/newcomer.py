"""How long does it take from nothing to the first recall?  The README's steps, timed."""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
TEXT: Final = "Acme moved to 200 seats"
QUESTION: Final = "how many seats does Acme have?"
PYTHON_MINUTE: Final = f"""
from strata_client import Client

with Client.embedded("memory") as client:
    client.experience({TEXT!r}, wait="indexed")
    print(client.recall({QUESTION!r}).context_block)
"""
_START_S: Final = 120.0


class Desk(NamedTuple):
    """Where the newcomer sits: a folder with a clone, and an environment to run it with."""

    folder: Path
    clone: Path
    venv: Path
    environment: dict[str, str]

    def program(self, name: str) -> str:
        """A command of the environment."""
        return str(self.venv / "bin" / name)

    def run(self, *command: str | Path, **more: str) -> str:
        """What a command prints; one that fails ends the play, with what it said."""
        done = subprocess.run(  # noqa: S603 - the steps below
            command,
            cwd=self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout


@contextlib.contextmanager
def served(desk: Desk) -> Iterator[str]:
    """A server on a free port; its address."""
    with (desk.folder / "server.log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(  # noqa: S603 - our own server
            [desk.program("strata"), "serve", "--port", "0", "--data", desk.folder / "data"],
            env=desk.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit((desk.folder / "server.log").read_text(encoding="utf-8"))
        yield line.removeprefix("listening on ").strip()
    finally:
        server.terminate()
        server.communicate(timeout=_START_S)


def timed(what: str, step: Callable[[], str]) -> tuple[float, str]:
    """Do a step and say how long it took."""
    began = time.monotonic()
    said = step()
    took = time.monotonic() - began
    print(f"{took:8.1f} s  {what}", flush=True)
    return took, said


def desk_in(folder: Path, venv: Path | None) -> Desk:
    """An empty desk; nothing of the one who plays leaks onto it."""
    clone = folder / "strata"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CORTEX_", "STRATA_", "PYTHON", "VIRTUAL_ENV"))
    }
    if venv is not None:
        # Its packages, with this clone's code before whatever checkout it was made for.
        kept["PYTHONPATH"] = f"{clone}{os.pathsep}{clone / 'sdk'}"
    return Desk(folder, clone, venv or clone / ".venv", kept)


def play(desk: Desk, source: str, *, install: bool) -> float:
    """Every step, in order; the seconds they took."""
    print("   took     step")
    clone = ("git", "clone", "--quiet", source, str(desk.clone))
    took = [timed("clone", lambda: desk.run(*clone))[0]]
    if install:
        setup = desk.clone / "scripts" / "setup"
        took.append(timed("install (scripts/setup --bare)", lambda: desk.run(setup, "--bare"))[0])
    with contextlib.ExitStack() as stack:
        seconds, url = timed("serve, until it listens", lambda: stack.enter_context(served(desk)))
        took.append(seconds)
        strata = desk.program("strata")
        for what, command in (
            ("first experience (strata remember)", (strata, "remember", TEXT)),
            ("first recall (strata recall)", (strata, "recall", QUESTION)),
        ):
            seconds, said = timed(what, lambda asked=command: desk.run(*asked, CORTEX_URL=url))
            took.append(seconds)
    check(said)
    python = desk.program("python")
    minute = ("the same from Python, without a server", (python, "-c", PYTHON_MINUTE))
    seconds, again = timed(minute[0], lambda: desk.run(*minute[1]))
    check(again)
    print(f"{sum(took):8.1f} s  from nothing to the first recall")
    print(said)
    return sum(took)


def check(said: str) -> None:
    """The point of it all: what was told is found."""
    if TEXT not in said:
        sys.exit(f"the recall does not find it:\n{said}")


def main() -> int:
    """Play, in a folder that is thrown away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default=str(ROOT), help="what to clone [this repository]")
    parser.add_argument("--venv", type=Path, help="reuse this environment and install nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        desk = desk_in(Path(folder), given.venv and given.venv.resolve())
        play(desk, given.source, install=given.venv is None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
