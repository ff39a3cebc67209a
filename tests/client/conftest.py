"""What do tests of the client share?  Clients of the shared server, closed in the end."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strata_client import Client, Retries

PATIENT = Retries(count=6, first_s=0.01, bound_s=0.05)


@pytest.fixture
def connect(server, scope) -> Iterator[Callable[..., Client]]:
    """Clients of the shared server or of another address, in the test's scope."""
    with contextlib.ExitStack() as stack:

        def connected(url: str | None = None, **options: Any) -> Client:
            options = {"scope": scope, "allow_unstable": True, "retries": PATIENT} | options
            return stack.enter_context(Client(url or server.url, **options))

        yield connected


@pytest.fixture
def memory(connect) -> Client:
    """A client of the shared server."""
    return connect()
