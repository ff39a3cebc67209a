"""How is a method written once and called both ways?

A method of a group says which endpoint it asks and what it makes of its arguments: an `Ask`. The
descriptors here turn that into a call that blocks on a `Client` and one that is awaited on an
`AsyncClient`; types follow, so an editor knows which of the two it has.
"""

import functools
import inspect
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    overload,
)

from strata_client.calls import Ask, Route
from strata_client.driving import AsyncDriver, Driver
from strata_client.sse import Frame
from strata_client.talk import Ending, Speaker, Talk

P = ParamSpec("P")
T = TypeVar("T")
M_co = TypeVar("M_co", covariant=True)

ROUTES: Final[dict[tuple[str, str], list[Route[Any]]]] = {}
"""Every endpoint that some method asks."""


def new_key() -> str:
    """A key that was never used."""
    return secrets.token_hex(16)


class Blocking:
    """The mode of a `Client`."""


class Awaited:
    """The mode of an `AsyncClient`."""


class Group(Generic[M_co]):
    """Methods that belong together, of one client."""

    def __init__(self, speaker: Speaker, driver: Driver | AsyncDriver) -> None:
        self.speaker = speaker
        self.driver = driver

    def _scoped(self, given: Any) -> dict[str, Any]:
        """What was given, with the client's scope where none is named."""
        said = dict(given)
        if said.get("scope") is None:
            said["scope"] = self.speaker.session.scope
        return said

    def _keyed(self, given: Any) -> dict[str, Any]:
        """The same, with a key: sent twice, it is carried out once."""
        said = self._scoped(given)
        said.setdefault("idempotency_key", new_key())
        return said


class Page(Protocol[T]):
    """Any page of the contract."""

    @property
    def items(self) -> list[T]:
        """What is on it."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next begins."""


class _Descriptor(Generic[P]):
    """What the three kinds of methods have in common: bound once a group, and found there."""

    def __init__(self, route: Route[Any], build: Callable[Concatenate[Any, P], Ask]) -> None:
        self.route = route
        self._build = build
        self._name = build.__name__
        self.__doc__ = build.__doc__

    def _bound(self, group: Any, made: Callable[[Any, Ask], Any]) -> Any:
        @functools.wraps(self._build)
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return made(group, self._build(group, *args, **kwargs))

        bound.__signature__ = self._signature()  # type: ignore[attr-defined]
        group.__dict__[self._name] = bound  # found before this descriptor from now on
        return bound

    def _signature(self) -> inspect.Signature:
        """What `help` shows: every key that may be given, and not how the method is written."""
        _, *parameters = inspect.signature(self._build).parameters.values()
        if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
            (keys,) = get_args(parameters.pop().annotation)
            parameters += [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind
                )
                for name, kind in keys.__annotations__.items()
            ]
        return inspect.Signature(parameters, return_annotation=self.route.result)


class Method(_Descriptor[P], Generic[P, T]):
    """Asks one endpoint and gives its answer."""

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Blocking], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[Awaited], owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group, self._made)

    def _made(self, group: Any, ask: Ask) -> Any:
        return group.driver.run(group.speaker.call(self.route, ask))


class Waiting(Method[P, T]):
    """Asks one endpoint until what it tells of has ended."""

    _ENDED: Final = frozenset({"complete", "completed", "done", "failed", "cancelled"})

    def _made(self, group: Any, ask: Ask) -> Any:
        def has_ended(state: Any) -> bool:
            return state.status in self._ENDED

        return group.driver.run(group.speaker.until(self.route, ask, has_ended))


class Listing(_Descriptor[P], Generic[P, T]):
    """Asks one endpoint for all of its pages."""

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Blocking], owner: Any) -> Callable[P, "Pages[T]"]: ...
    @overload
    def __get__(self, group: Group[Awaited], owner: Any) -> Callable[P, "AsyncPages[T]"]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group, self._made)

    def _made(self, group: Any, ask: Ask) -> Any:
        pages = functools.partial(group.speaker.pages, self.route, ask)
        driver = group.driver
        return Pages(driver, pages) if isinstance(driver, Driver) else AsyncPages(driver, pages)


class Streaming(_Descriptor[P], Generic[P, T]):
    """Asks one endpoint for events as they happen."""

    def __init__(
        self, route: Route[Any], read: Callable[[Frame], T], build: Callable[..., Any]
    ) -> None:
        super().__init__(route, build)
        self._read = read

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Blocking], owner: Any) -> Callable[P, "Stream[T]"]: ...
    @overload
    def __get__(self, group: Group[Awaited], owner: Any) -> Callable[P, "AsyncStream[T]"]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        return self if group is None else self._bound(group, self._made)

    def _made(self, group: Any, asked: Any) -> Any:
        ask, ending = asked
        driver = group.driver
        frames = driver.each(group.speaker.stream(self.route, ask, ending))
        kind = Stream if isinstance(driver, Driver) else AsyncStream
        return kind(frames, self._read)


# ── what listings and streams give ───────────────────────────────────────────────────────────


class Pages(Generic[T]):
    """A listing: iterate over its items, and pages are fetched as they are needed."""

    def __init__(self, driver: Driver, begin: Callable[[], Talk[None]]) -> None:
        self.driver = driver
        self._begin = begin

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def pages(self) -> Iterator[Page[T]]:
        """The pages themselves, with their cursors."""
        return self.driver.each(self._begin())

    def page(self) -> Page[T]:
        """The first page, or the one that the cursor asks for."""
        return next(self.pages())

    def all(self) -> list[T]:
        """Every item, in a list."""
        return list(self)


class AsyncPages(Generic[T]):
    """A listing: iterate over its items with `async for`."""

    def __init__(self, driver: AsyncDriver, begin: Callable[[], Talk[None]]) -> None:
        self.driver = driver
        self._begin = begin

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    def pages(self) -> AsyncIterator[Page[T]]:
        """The pages themselves, with their cursors."""
        return self.driver.each(self._begin())

    async def page(self) -> Page[T]:
        """The first page, or the one that the cursor asks for."""
        return await anext(self.pages())

    async def all(self) -> list[T]:
        """Every item, in a list."""
        return [item async for item in self]


class Stream(Generic[T]):
    """Events as they happen. As a context manager it is connected when the block begins."""

    def __init__(
        self, frames: Generator[Frame | None, None, None], read: Callable[[Frame], T]
    ) -> None:
        self._frames = frames
        self._read = read

    def __enter__(self) -> Self:
        next(self._frames)  # None: it is open
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while (frame := next(self._frames)) is None:
            pass
        return self._read(frame)

    def close(self) -> None:
        """Stop listening."""
        self._frames.close()


class AsyncStream(Generic[T]):
    """Events as they happen, with `async for`; `async with` connects when the block begins."""

    def __init__(
        self, frames: AsyncGenerator[Frame | None, None], read: Callable[[Frame], T]
    ) -> None:
        self._frames = frames
        self._read = read

    async def __aenter__(self) -> Self:
        await anext(self._frames)  # None: it is open
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while (frame := await anext(self._frames)) is None:
            pass
        return self._read(frame)

    async def aclose(self) -> None:
        """Stop listening."""
        await self._frames.aclose()


# ── decorators ───────────────────────────────────────────────────────────────────────────────

Builder = Callable[Concatenate[Any, P], Ask]
_SAFE: Final = frozenset({"GET", "PUT", "DELETE"})


def _route(place: str, result: Any, *, is_safe: bool, also: tuple[int, ...] = ()) -> Route[Any]:
    verb, path = place.split(" ")
    safe = is_safe or verb in _SAFE
    route: Route[Any] = Route(verb, path, result, is_safe=safe, also=frozenset(also))
    ROUTES.setdefault((verb, path), []).append(route)
    return route


def method(
    place: str, result: type[T], *, is_safe: bool = False, also: tuple[int, ...] = ()
) -> Callable[[Builder[P]], Method[P, T]]:
    """A method that asks `METHOD /path`; one that is safe may be sent twice."""
    kind = None if result is NoContent else result
    route = _route(place, kind, is_safe=is_safe, also=also)
    return lambda build: Method(route, build)


def waiting(place: str, result: type[T]) -> Callable[[Builder[P]], Waiting[P, T]]:
    """A method that asks `METHOD /path` until the job it tells of has ended."""
    route = _route(place, result, is_safe=True)
    return lambda build: Waiting(route, build)


def listing(place: str, page: type[Page[T]]) -> Callable[[Builder[P]], Listing[P, T]]:
    """A method that lists what `METHOD /path` has, page by page."""
    route = _route(place, page, is_safe=True)
    return lambda build: Listing(route, build)


def streaming(
    place: str, read: Callable[[Frame], T]
) -> Callable[[Callable[Concatenate[Any, P], tuple[Ask, Ending]]], Streaming[P, T]]:
    """A method that listens to `METHOD /path`."""
    route = _route(place, None, is_safe=True)
    return lambda build: Streaming(route, read, build)


NoContent = type(None)
"""What an endpoint answers that answers nothing."""
