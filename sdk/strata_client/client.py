"""Where does one begin?  `Client` blocks, `AsyncClient` is awaited; they know the same words."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypedDict, Unpack

import httpx

from strata_client.calls import Session
from strata_client.driving import AsyncDriver, AsyncTokenProvider, Driver, TokenProvider
from strata_client.embedded import URL as EMBEDDED
from strata_client.embedded import AsyncInProcess, Host, InProcess
from strata_client.errors import StrataError
from strata_client.keeping import Blobs, Erasures, Exports, Forgets, Imports
from strata_client.layers import Beliefs, Entities, Episodes, Events, Facts, Understanding
from strata_client.memory import Memory
from strata_client.methods import Awaited, Blocking, M_co
from strata_client.operating import Admin, Jobs, Packs, Problems
from strata_client.ruling import Audit, Auth, Phrases, Policy, Scopes, Vocabularies
from strata_client.talk import Retries, Speaker
from strata_client.watching import Lifecycle, Writes

URL: Final = "http://127.0.0.1:3141"
SCOPE: Final = "user:local"
TIMEOUT_S: Final = 30.0


class Options(TypedDict, total=False):
    """What may be said about a client. What is left out comes from the environment, if it is there.

    `scope` (CORTEX_SCOPE) is where experiences go that name none; the actor's own when there is an
    actor, else `user:local`. `actor` (CORTEX_ACTOR) is who asks.
    """

    scope: str | None
    actor: str | None
    allow_unstable: bool
    timeout_s: float
    retries: Retries


class Blocks(Options, total=False):
    """Of a `Client`: `token` (CORTEX_TOKEN) is a token, or a function that gives one."""

    token: str | TokenProvider | None
    transport: httpx.BaseTransport | None


class Awaits(Options, total=False):
    """Of an `AsyncClient`: its token may also come from a coroutine."""

    token: str | AsyncTokenProvider | None
    transport: httpx.AsyncBaseTransport | None


class _Surface(Memory[M_co]):
    """Everything `/v1` has, by what it is about."""

    @cached_property
    def events(self) -> Events[M_co]:
        """What happened."""
        return Events(self.speaker, self.driver)

    @cached_property
    def episodes(self) -> Episodes[M_co]:
        """Stretches of related events."""
        return Episodes(self.speaker, self.driver)

    @cached_property
    def facts(self) -> Facts[M_co]:
        """What is so."""
        return Facts(self.speaker, self.driver)

    @cached_property
    def entities(self) -> Entities[M_co]:
        """What facts speak of."""
        return Entities(self.speaker, self.driver)

    @cached_property
    def beliefs(self) -> Beliefs[M_co]:
        """What is held true."""
        return Beliefs(self.speaker, self.driver)

    @cached_property
    def understanding(self) -> Understanding[M_co]:
        """What facts come to."""
        return Understanding(self.speaker, self.driver)

    @cached_property
    def lifecycle(self) -> Lifecycle[M_co]:
        """What becomes of what was written."""
        return Lifecycle(self.speaker, self.driver)

    @cached_property
    def writes(self) -> Writes[M_co]:
        """What became of a write."""
        return Writes(self.speaker, self.driver)

    @cached_property
    def packs(self) -> Packs[M_co]:
        """What recall gave out before."""
        return Packs(self.speaker, self.driver)

    @cached_property
    def blobs(self) -> Blobs[M_co]:
        """Bytes that are no text."""
        return Blobs(self.speaker, self.driver)

    @cached_property
    def imports(self) -> Imports[M_co]:
        """Memories that move in."""
        return Imports(self.speaker, self.driver)

    @cached_property
    def exports(self) -> Exports[M_co]:
        """Memories that move out."""
        return Exports(self.speaker, self.driver)

    @cached_property
    def forgets(self) -> Forgets[M_co]:
        """Before and after a `forget`."""
        return Forgets(self.speaker, self.driver)

    @cached_property
    def erasures(self) -> Erasures[M_co]:
        """Erasing for good."""
        return Erasures(self.speaker, self.driver)

    @cached_property
    def scopes(self) -> Scopes[M_co]:
        """Where memories live."""
        return Scopes(self.speaker, self.driver)

    @cached_property
    def vocabularies(self) -> Vocabularies[M_co]:
        """The terms of a tenant."""
        return Vocabularies(self.speaker, self.driver)

    @cached_property
    def phrases(self) -> Phrases[M_co]:
        """Words for stretches of time."""
        return Phrases(self.speaker, self.driver)

    @cached_property
    def policy(self) -> Policy[M_co]:
        """What the tiers say."""
        return Policy(self.speaker, self.driver)

    @cached_property
    def auth(self) -> Auth[M_co]:
        """Who one is to the server."""
        return Auth(self.speaker, self.driver)

    @cached_property
    def audit(self) -> Audit[M_co]:
        """Who did what."""
        return Audit(self.speaker, self.driver)

    @cached_property
    def admin(self) -> Admin[M_co]:
        """For those who run it."""
        return Admin(self.speaker, self.driver)

    @cached_property
    def jobs(self) -> Jobs[M_co]:
        """Long work of every kind."""
        return Jobs(self.speaker, self.driver)

    @cached_property
    def problems(self) -> Problems[M_co]:
        """What error codes mean."""
        return Problems(self.speaker, self.driver)

    @property
    def scope(self) -> str:
        """Where experiences go that name no scope, and where questions are asked."""
        return self.speaker.session.scope


def _speaker(options: Options) -> Speaker:
    actor = options.get("actor") or os.environ.get("CORTEX_ACTOR")
    scope = options.get("scope") or os.environ.get("CORTEX_SCOPE") or actor or SCOPE
    session = Session(scope, actor, allow_unstable=options.get("allow_unstable", False))
    return Speaker(session, options.get("retries") or Retries())


def _address(url: str | None) -> str:
    found = url or os.environ.get("CORTEX_URL") or URL
    if not found.startswith(("http://", "https://")):
        raise StrataError(
            f"{found!r} is no address of a server; it begins with http:// or https://"
        )
    return found.rstrip("/")


def _needs_certificates(address: str) -> bool:
    """To load them takes longer than most calls: over plain HTTP they are not."""
    return address.startswith("https://")


class Client(_Surface[Blocking]):
    """Memory, one call at a time. A context manager; safe to share between threads."""

    def __init__(self, url: str | None = None, **options: Unpack[Blocks]) -> None:
        token = options.get("token") or os.environ.get("CORTEX_TOKEN")
        address = _address(url)
        http = httpx.Client(
            base_url=address,
            verify=_needs_certificates(address),
            timeout=options.get("timeout_s", TIMEOUT_S),
            transport=options.get("transport"),
        )
        provider = token if callable(token) else lambda: token
        super().__init__(_speaker(options), Driver(http, provider))
        self._http = http

    @classmethod
    def embedded(
        cls, path: str | Path, settings: dict[str, Any] | None = None, **options: Unpack[Blocks]
    ) -> Self:
        """The engine itself, in this process, over a data directory; no server is needed.

        Settings are those of the server, by their names; closing lets go of the directory.
        """
        host = Host(path, settings or {})
        host.open()
        options["transport"] = InProcess(host)
        return cls(EMBEDDED, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()


class AsyncClient(_Surface[Awaited]):
    """Memory, awaited. An asynchronous context manager."""

    def __init__(self, url: str | None = None, **options: Unpack[Awaits]) -> None:
        token = options.get("token") or os.environ.get("CORTEX_TOKEN")
        address = _address(url)
        http = httpx.AsyncClient(
            base_url=address,
            verify=_needs_certificates(address),
            timeout=options.get("timeout_s", TIMEOUT_S),
            transport=options.get("transport"),
        )
        provider = token if callable(token) else lambda: token
        super().__init__(_speaker(options), AsyncDriver(http, provider))
        self._http = http

    @classmethod
    def embedded(
        cls, path: str | Path, settings: dict[str, Any] | None = None, **options: Unpack[Awaits]
    ) -> Self:
        """The engine itself, in this process; it is opened by `async with` or the first call."""
        options["transport"] = AsyncInProcess(Host(path, settings or {}))
        return cls(EMBEDDED, **options)

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()
