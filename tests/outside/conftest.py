"""What does a stranger need to be let in?  A server that asks for tokens, and who mints them."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest

ISSUER = Path(sys.executable).parent / "cortex-auth-ref"


class Realm:
    """A signed server and its issuer."""

    def __init__(self, server: Any, db: Path) -> None:
        self.server = server
        self.db = db
        self.token = lru_cache(self._mint)

    def _mint(self, actor: str, tenant: str = "acme", *more: str) -> str:
        """A token from the reference issuer; `more` are flags of its command line."""
        command = [ISSUER, "mint", "--actor", actor, "--tenant", tenant, "--db", self.db, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def headers(self, actor: str, tenant: str = "acme") -> dict[str, str]:
        """What a caller with a good token sends along."""
        return {"Authorization": f"Bearer {self.token(actor, tenant)}", "X-Cortex-Actor": actor}

    def client(self, actor: str, tenant: str = "acme") -> httpx.Client:
        """A caller with a good token."""
        return self.server.client(headers=self.headers(actor, tenant))


@pytest.fixture(scope="session")
def open_realm(
    start_server: Callable[..., Any],
) -> Callable[[Path], contextlib.AbstractContextManager[Realm]]:
    """Realms, each in a folder of its own and gone at the end of its block."""

    @contextlib.contextmanager
    def opened(folder: Path) -> Iterator[Realm]:
        db, issuers = folder / "issuer.db", folder / "issuers.yaml"
        for command in (("init",), ("keys", "--issuers-file", issuers)):
            subprocess.run([ISSUER, *command, "--db", db], check=True, capture_output=True)
        server = start_server(
            folder / "data",
            CORTEX_DEPLOYMENT_PRESET="on_prem_enterprise",
            CORTEX_ISSUERS_FILE=str(issuers),
            CORTEX_TENANTS="acme,system",
        )
        try:
            yield Realm(server, db)
        finally:
            server.stop()

    return opened


@pytest.fixture(scope="module")
def realm(
    tmp_path_factory: pytest.TempPathFactory,
    open_realm: Callable[[Path], contextlib.AbstractContextManager[Realm]],
) -> Iterator[Realm]:
    """One realm for the tests of a module."""
    with open_realm(tmp_path_factory.mktemp("realm")) as opened:
        yield opened
