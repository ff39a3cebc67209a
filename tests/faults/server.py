"""How is a real server started, killed, and asked to stop?  A process of its own, always reaped."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.faults.client import Address

ROOT = Path(__file__).resolve().parents[2]
START_S_MAX = 120.0
STOP_S_MAX = 120.0
_DEFAULTS = {"CORTEX_BALLAST_MB": "0", "CORTEX_DISK_LOW_WATER_MB": "1"}
# 1 is PR_SET_PDEATHSIG: a test that is killed must not leave a server behind.
_DIE_WITH_PARENT = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL)"


class Refused(Exception):
    """The server ended before it listened; the message is what it said."""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: ours without its settings, small disks, and what is asked for."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CORTEX_")}
    return {**ours, **_DEFAULTS, **(more or {})}


class Server:
    """`strata serve` on a data directory. Used in a `with`: whatever happens, it is gone after."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        before: str = "",
    ) -> None:
        """`before` is Python that runs in the process first, to turn a limit down."""
        self.folder = folder
        self._settings = settings
        self._before = before
        self._stderr = folder.parent / f"{folder.name}.stderr"
        self._process: subprocess.Popen[bytes] | None = None
        self.address: Address = ("", 0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        assert self._process is None, "it is running"
        code = f"{_DIE_WITH_PARENT}\n{self._before}\nfrom api.cli import main\nmain()"
        arguments = ["serve", "--port", "0", "--data", str(self.folder)]
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(self._settings),
                cwd=ROOT,
            )

    def start(self) -> Self:
        """Start and wait until it listens; Refused when it will not."""
        self.launch()
        line = self._first_line()
        if not line.startswith("listening on http://"):
            self.kill()
            raise Refused(self.said())
        host, _, port = line.removeprefix("listening on http://").strip().rpartition(":")
        self.address = (host, int(port))
        return self

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(START_S_MAX), f"silent for {START_S_MAX} s: {self.said()}"
        return self._process.stdout.readline().decode()

    def said(self) -> str:
        """What it wrote to standard error since it was last started."""
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    def rss_bytes(self) -> int:
        """Memory it holds now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; fine when it is gone already."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM, and the exit code once it is gone."""
        return self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send a signal and do not wait."""
        os.kill(self.pid, number)

    def reap(self, timeout_s: float = STOP_S_MAX) -> int:
        """Wait for its end; the exit code."""
        return self._end(None, timeout_s)

    def _end(self, number: int | None, timeout_s: float = STOP_S_MAX) -> int:
        child = self._process
        if child is None:
            return 0
        if number is not None:
            child.send_signal(number)
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise AssertionError(f"it did not end in {timeout_s} s: {self.said()}") from None
        finally:
            if child.stdout is not None:
                child.stdout.close()
        self._process = None
        return code


def strata(*arguments: object, settings: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command of `strata`: exit code, standard output, standard error."""
    found = subprocess.run(
        [sys.executable, "-m", "api.cli", *(str(argument) for argument in arguments)],
        capture_output=True,
        env=environment(settings),
        cwd=ROOT,
        timeout=240,
        check=False,
    )
    return found.returncode, found.stdout.decode(), found.stderr.decode()
