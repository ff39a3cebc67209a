"""Which request goes where?  One application over one engine."""

import contextlib
from collections.abc import Callable
from typing import Any

from starlette.routing import Route, Router

from api.bodies import Receive
from api.endpoint import Asgi, Send, Served, request_id_of, send_problem
from api.internal import PREFIX, is_worker, serve_worker
from api.principals import Principals
from api.surface import CORE, Dialect
from api.surfaces import SURFACES, Surface, at_root
from engine.clock import Clock
from engine.engine import Engine, StoreError
from engine.metrics import RequestCounts
from schemas.errors import EngineError, MethodNotAllowed, NotFound

EngineContext = contextlib.AbstractAsyncContextManager[Engine]


class Methods:
    """The endpoints of one path, by method."""

    def __init__(self, path: str, clock: Clock, dialect: Dialect = CORE) -> None:
        self.path = path
        self._clock = clock
        self._dialect = dialect
        self.served: dict[str, Served] = {}

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Hand the request to its method's endpoint."""
        served = self.served.get(scope["method"])
        if served is not None:
            await served(scope, receive, send)
            return
        allowed = sorted(self.served)
        error = MethodNotAllowed(reason=f"{self.path} takes {', '.join(allowed)}", allowed=allowed)
        await _problem(self._clock, scope, send, error, self._dialect)


async def _problem(
    clock: Clock, scope: Asgi, send: Send, error: EngineError, dialect: Dialect
) -> None:
    request_id = request_id_of(dict(scope["headers"])) or clock.new_id("req")
    await send_problem(send, error, request_id, dialect)


class App:
    """The ASGI application. The engine is opened when the server starts, closed when it stops.

    All surfaces are mounted, each at its place; or one of them alone, at the root.
    """

    def __init__(
        self,
        opener: Callable[[], EngineContext],
        *,
        alone: Surface | None = None,
        principals: Principals | None = None,
    ) -> None:
        self._opener = opener
        self._principals = principals
        self._surfaces = [at_root(alone)] if alone is not None else list(SURFACES)
        self.engine: Engine | None = None
        self._static: dict[str, Methods] = {}
        self._router = Router()
        self.counts: RequestCounts = {}

    def bind(self, engine: Engine) -> None:
        """Serve this engine."""
        self.engine = engine
        by_path: dict[str, Methods] = {}
        for surface in self._surfaces:
            table = surface.table()
            for endpoint in table:
                path = endpoint.path
                if path not in by_path:
                    by_path[path] = Methods(path, engine.clock, surface.dialect)
                by_path[path].served[endpoint.method] = Served(
                    endpoint, engine, self.counts, table, self._principals
                )
        self._static = {path: found for path, found in by_path.items() if "{" not in path}
        self._router = Router(
            [Route(path, found) for path, found in by_path.items() if "{" in path],
            redirect_slashes=False,
            default=self._not_found,
        )

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer one request, or run the application's life."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            found = self.find(scope)
            if found is not None:
                await found(scope, receive, send)
            elif scope["path"].startswith(PREFIX) and is_worker(self._bound(), scope):
                await serve_worker(self._bound(), scope, receive, send)
            else:
                await self._router(scope, receive, send)  # type: ignore[arg-type]
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    def came(self) -> None:
        """Bytes of a request are here: those who derive let it go first."""
        if self.engine is not None:
            self.engine.committer.way.came()

    def find(self, scope: Asgi) -> "Served | Methods | None":
        """Who answers a path that is always the same, and this method of it; None for others."""
        methods = self._static.get(scope["path"])
        return methods and (methods.served.get(scope["method"]) or methods)

    def _bound(self) -> Engine:
        assert self.engine is not None, "requests come after the start"
        return self.engine

    async def _not_found(self, scope: Any, receive: Any, send: Any) -> None:
        del receive
        path = scope["path"][:200]
        error = NotFound(f"There is nothing at {path}.", path=path)
        # The first surface is the core, which takes what no other place begins.
        spoken = next((s for s in self._surfaces[::-1] if path.startswith(s.mount + "/")), None)
        dialect = (spoken or self._surfaces[0]).dialect
        await _problem(self._bound().clock, scope, send, error, dialect)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open the engine at startup, close it at shutdown; a refusal to open is said."""
        await receive()
        async with contextlib.AsyncExitStack() as stack:
            try:
                self.bind(await stack.enter_async_context(self._opener()))
            except (StoreError, OSError) as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
