"""How do processes of ours talk to each other?  Messages over pipes, each with its length."""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

_PIPE_BYTES: Final = 1024 * 1024
_LENGTH_BYTES: Final = 8
_DEATH_SIGNAL: Final = 1
"""Of `prctl`: which signal to get when the starter dies."""


def start_module(
    module: str, arguments: Sequence[str] = (), stdin: IO[bytes] | int = subprocess.PIPE
) -> "subprocess.Popen[bytes]":
    """A process that runs `main` of one of our modules; it reads and writes pipes."""
    # Not `-m`, which runs sources only: the module may be a compiled one (ADR 0040). And a command
    # of its own and not a fork: that would take the locks of other threads along.
    code = f"import sys; from {module} import main; main(sys.argv[1:])"
    started = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
        [sys.executable, "-P", "-c", code, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        env=_same_code(),
    )
    _widen(started.stdin)
    _widen(started.stdout)
    return started


def end_with_starter() -> None:
    """End when the thread ends that started this process, even if it is held just then.

    Who runs sees its pipe end; who is held sees nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _same_code() -> dict[str, str]:
    """An environment in which the very modules of this process are found, compiled or not."""
    ours = str(Path(__file__).parent.parent)
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (ours, *others)))}


def _widen(pipe: IO[bytes] | None) -> None:
    """Room for what goes either way, where the system gives it: then nobody waits to hand over."""
    wider = getattr(fcntl, "F_SETPIPE_SZ", None)
    if pipe is not None and wider is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, wider, _PIPE_BYTES)


def send(pipe: IO[bytes], *messages: bytes) -> None:
    """Write these, and see to it that they go."""
    for message in messages:
        pipe.write(len(message).to_bytes(_LENGTH_BYTES, "big"))
        pipe.write(message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None at the end."""
    size = pipe.read(_LENGTH_BYTES)
    if len(size) < _LENGTH_BYTES:
        return None
    message = pipe.read(int.from_bytes(size, "big"))
    return message if len(message) == int.from_bytes(size, "big") else None
