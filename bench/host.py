"""Who is measured?  A server of our own in a process of its own, on a data directory of its own."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent
OUT: Final = ROOT / "bench" / "out"
GROUPED: Final = "api.cli"
SINGLE: Final = "bench.single"
FLOOR: Final = "bench.floor"
SLOW_DISK: Final = "bench.slow_disk"
_START_S = 20.0
_STOP_S = 15.0
_ASK_S = 90.0


def bearer(token: str | None) -> dict[str, str]:
    """The header of who has a token."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


class Broken(Exception):
    """A promise was not kept: the figures of this run mean nothing."""


class Settled(msgspec.Struct, frozen=True):
    """Where the log ended, how far the projectors were behind, and how long they took."""

    head: int
    behind: int
    seconds: float


class Host:
    """A running server, stopped at the end of the block."""

    def __init__(
        self,
        module: str,
        data: Path,
        *,
        before: Sequence[str] = (),
        flags: Sequence[str] = (),
        token: str | None = None,
        **environment: str,
    ) -> None:
        self._module = module
        self._before = before
        self._flags = flags
        self.token = token
        """Whose questions `ask` asks, where the server knows its callers."""
        self._environment = environment
        self.data = data
        self.host, self.port, self.pid = "127.0.0.1", 0, 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        begin = [sys.executable, "-m", self._module, *self._before]
        command = [*begin, "serve", "--port", "0", "--data"]
        complaints = OUT / f"{self.data.name}.log"
        with complaints.open("w") as stderr:
            self._process = subprocess.Popen(
                [*command, str(self.data), *self._flags],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=os.environ | self._environment,
                text=True,
            )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            self._process.wait(_START_S)
            raise Broken(f"the server did not start:\n{complaints.read_text()[-2000:]}")
        self.port = int(line.strip().rpartition(":")[2])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Stop it without a chance to tidy up, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_S)

    def verified_entries(self) -> int:
        """What `strata verify` finds on the disk: the chain holds, and so many entries."""
        command = [sys.executable, "-m", "api.cli", "verify", "--json", "--data", str(self.data)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Broken(f"strata verify failed:\n{done.stderr[-2000:]}")
        return int(json.loads(done.stdout)["log"]["entries"])

    def ask(self, method: str, path: str) -> bytes:
        """One request, outside any measurement."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_ASK_S)
        try:
            connection.request(method, path, headers=bearer(self.token))
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise Broken(f"{method} {path} answered {response.status}: {body[:500]!r}")
        return body

    def health(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", "/v1/admin/health"))
        return found

    def counters(self) -> dict[str, float]:
        """The metrics without labels, by name."""
        text = self.ask("GET", "/v1/admin/metrics").decode()
        lines = (line.split() for line in text.splitlines() if line[:1] not in ("#", ""))
        return {name: float(value) for name, value, *_ in lines if "{" not in name}

    def settle(self) -> Settled:
        """Wait until the projectors have caught up with the log."""
        started = time.perf_counter()
        found = self.health()
        while json.loads(self.ask("POST", "/v1/admin/flush-views?wait_ms=60000")).get("_partial"):
            pass
        return Settled(
            head=int(found["durable_offset"]),
            behind=int(found["lag_entries"]),
            seconds=time.perf_counter() - started,
        )
