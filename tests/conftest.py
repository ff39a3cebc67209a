"""What do tests share?  A real server in a process of its own, and the few things to say to it.

Test folders are no packages, so what several files need is a fixture here; those that are tools
rather than things are functions handed out by a fixture.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, settings

from schemas import limits

# Fewer than usual, for there are many properties, and the same in every run: what passes here
# passes elsewhere. `nightly` draws others, and more. A busy machine is no failure of a property.
_BUSY: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", max_examples=40, derandomize=True, **_BUSY)
settings.register_profile("nightly", max_examples=200, **_BUSY)
settings.load_profile(os.environ.get("STRATA_HYPOTHESIS", "suite"))

STRATA = Path(sys.executable).parent / "strata"
SMALL = {"CORTEX_BALLAST_MB": "1", "CORTEX_DISK_LOW_WATER_MB": "16"}
OBSERVED_AT = "2026-05-13T15:42:00Z"
_ANSWER_S = limits.WAIT_MS_MAX / 1000 + 30.0
_EXIT_S = 60.0
_TRUE_S = 120.0
_LOOK_S = 0.05

_numbers = itertools.count(1)


_LONG = ("integration", "outside", "docs", "property")
"""Folders of few files that take long each, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long begin first: none is left for the end, when the other processes idle."""
    here = Path(__file__).parent
    place = {name: number for number, name in enumerate(_LONG)}
    items.sort(key=lambda item: place.get(item.path.relative_to(here).parts[0], len(place)))


@dataclass
class Server:
    """A running `strata serve`."""

    url: str
    data: Path
    process: "subprocess.Popen[str]"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for tests that speak HTTP by hand."""
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def client(self, **options: Any) -> httpx.Client:
        """A client of this server; the caller closes it."""
        hooks = options.pop("event_hooks", {})
        hooks = hooks | {"request": [_wait_long, *hooks.get("request", [])]}
        # Plain HTTP: without `verify` no certificates are loaded, which costs more than most tests.
        return httpx.Client(
            base_url=self.url, timeout=_ANSWER_S, verify=False, event_hooks=hooks, **options
        )

    def stop(self) -> int:
        """Ask it to end, as an operator would; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """End it without a word, as a crash would; its exit code."""
        return self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(_EXIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def _wait_long(request: httpx.Request) -> None:
    """Whoever waits for a stage waits as long as one may, unless it says how long.

    A machine may be busy, and ten seconds, which a caller gets unasked, are not always enough.
    """
    asked = request.url.params
    waits = "wait" in asked or request.url.path == "/v1/admin/flush-views"
    if waits and "wait_ms" not in asked:
        request.url = request.url.copy_add_param("wait_ms", limits.WAIT_MS_MAX)


def _start(data: Path, flags: tuple[str, ...], environment: dict[str, str]) -> Server:
    """Start a server on a free port and wait until it says where it listens."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CORTEX_")}
    said = data.with_name(data.name + ".err")
    with said.open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [STRATA, "serve", "--port", "0", "--data", data, *flags],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=clean | SMALL | environment,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    server = Server(line.removeprefix("listening on ").strip(), data, process)
    if not line.startswith("listening on http://"):
        server.kill()
        raise RuntimeError(f"the server did not start:\n{said.read_text(encoding='utf-8')}")
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that need no data directory of their own."""
    running = _start(tmp_path_factory.mktemp("shared") / "data", (), {})
    yield running
    running.stop()


@pytest.fixture(scope="session")
def start_server() -> Callable[..., Server]:
    """Servers that outlive a test, for fixtures: `start_server(data, CORTEX_X="…")`, then stop."""
    return lambda data, *flags, **environment: _start(data, flags, environment)


@pytest.fixture
def run_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers of the test's own: `run_server(data, *flags, CORTEX_X="…")`."""
    started: list[Server] = []

    def run(data: Path | None = None, *flags: str, **environment: str) -> Server:
        running = _start(data or tmp_path / "data", flags, environment)
        started.append(running)
        return running

    yield run
    for running in started:
        running.stop()


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """Look again until it is right or much time has passed: `eventually(look, right)`.

    It gives what was seen last, whether right or not: what the test says of it names what is wrong.
    """

    def look_again(look: Callable[[], Any], right: Callable[[Any], bool] = bool) -> Any:
        end = time.monotonic() + _TRUE_S
        while not right(found := look()) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        return found

    return look_again


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of the shared server."""
    with server.client() as opened:
        yield opened


@pytest.fixture
def scope() -> str:
    """A scope that no other test has written to."""
    return f"org:tests/user:u{next(_numbers)}"


@pytest.fixture
def fresh_key() -> Callable[[], str]:
    """Idempotency keys that were never used."""
    return lambda: f"key-{next(_numbers)}"


@pytest.fixture
def envelope(scope: str, fresh_key: Callable[[], str]) -> Callable[..., dict[str, Any]]:
    """Valid envelopes of the test's scope, each with a key of its own; fields may be replaced."""

    def make(text: str = "Acme moved to 200 seats", **changes: Any) -> dict[str, Any]:
        return {
            "scope": scope,
            "modality": "conversation",
            "content": {"kind": "message", "role": "user", "text": text},
            "context": {"observed_at": OBSERVED_AT},
            "idempotency_key": fresh_key(),
        } | changes

    return make


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    id: str | None
    event: str
    data: Any


def _frames(response: httpx.Response) -> Iterator[Frame]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not line and "data" in fields:
            yield Frame(
                fields.get("id"), fields.get("event", "message"), json.loads(fields["data"])
            )
            fields = {}


@pytest.fixture
def listen() -> Callable[..., contextlib.AbstractContextManager[Iterator[Frame]]]:
    """Lifecycle streams, each a context manager that gives its frames.

    When the block begins the server has subscribed: what happens from then on is heard.
    """

    @contextlib.contextmanager
    def opened(
        client: httpx.Client, last_event_id: str | None = None, **parameters: str
    ) -> Iterator[Iterator[Frame]]:
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        with client.stream(
            "GET", "/v1/lifecycle/stream", params=parameters, headers=headers
        ) as response:
            assert 200 == response.status_code, response.read()
            yield _frames(response)

    return opened
