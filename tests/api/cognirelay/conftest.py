"""What do the tests of CogniRelay's dialect share?  A server alone at its root, tenants of all."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

SYSTEM = "cognirelay"
_USUAL = ["read:files", "read:index", "write:projects", "write:messages", "write:journal", "search"]
PRINCIPALS = {
    "owner": [*_USUAL, "admin:peers"],
    "alice": _USUAL,
    "bob": _USUAL,
    "carol": _USUAL,
    "reader": ["read:files"],
}
_FRESH = 4000
_fresh = itertools.count(1)


@dataclass(frozen=True)
class Served:
    """The surface alone at the root of a port, and the tenants it knows."""

    server: Any
    tenants: Any


@pytest.fixture(scope="session")
def served(
    tmp_path_factory: pytest.TempPathFactory,
    start_server: Callable[..., Any],
    tenants: Callable[..., Any],
    scenarios: Callable[[str], list[str]],
) -> Iterator[Served]:
    """One server for all of them: a tenant a scenario, and some for tests that want their own."""
    folder = tmp_path_factory.mktemp(SYSTEM)
    made = tenants(PRINCIPALS)
    names = [made.tenant_of(name) for name in scenarios(SYSTEM)]
    own = [f"own{number}" for number in range(1, _FRESH + 1)]
    known = made.write(folder / "principals.json", [*names, *own, "other"])
    flags = ("--surface", SYSTEM, "--principals", str(known))
    server = start_server(folder / "data", *flags, CORTEX_EMBEDDER="hashing")
    yield Served(server, made)
    server.stop()


class Relay:
    """A tenant of the server, as its principals see it."""

    def __init__(self, client: httpx.Client, tokens: dict[str, str]) -> None:
        self._client = client
        self._tokens = tokens

    def __call__(self, method: str, path: str, body: Any = None, by: str = "owner") -> Any:
        """The answer to one request of one principal."""
        headers = {"authorization": f"Bearer {self._tokens[f'token:{by}']}"}
        return self._client.request(method, path, json=body, headers=headers)

    def post(self, path: str, body: Any, by: str = "owner") -> Any:
        """A POST."""
        return self("POST", path, body, by)

    def get(self, path: str, by: str = "owner") -> Any:
        """A GET."""
        return self("GET", path, None, by)


@pytest.fixture
def relay(served: Served) -> Iterator[Relay]:
    """An empty tenant."""
    with served.server.client() as client:
        yield Relay(client, served.tenants.tokens(f"own{next(_fresh)}"))


@pytest.fixture
def peers(relay: Relay) -> Relay:
    """A tenant in which alice, bob and carol know each other."""
    for name in ("alice", "bob", "carol"):
        body = {"peer_id": name, "base_url": "http://127.0.0.1:1", "trust_level": "restricted"}
        assert 200 == relay.post("/v1/peers/register", body).status_code
    return relay


@pytest.fixture
def later() -> Callable[..., str]:
    """A moment from the test's start on, in whole seconds: asked twice, it is the same one."""
    start = datetime.now(UTC)

    def moment(seconds: int = 3600) -> str:
        return (start + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    return moment
