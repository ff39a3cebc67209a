"""What is done next, after this answer?  Conversations with the server, without a connection.

A conversation is a generator: it yields what it wants done (`Send`, `Open`, `Read`, `Pause`,
`Token`) and is sent what came of it; `Emit` hands something to the caller in between. Whoever
drives it does the waiting, blocking or not, so retries, pages and resumed streams are written here
once for both.
"""

import random
from collections.abc import Callable, Generator
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from strata_client.calls import Answer, Ask, Request, Route, Session, error_of
from strata_client.errors import (
    ApiError,
    ConnectionLost,
    Internal,
    RateLimited,
    StreamLost,
    TimedOut,
    TransportError,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from strata_client.sse import Parser

T = TypeVar("T")


class Send(Struct, frozen=True):
    """Send this; give back the whole answer."""

    request: Request


class Open(Struct, frozen=True):
    """Send this; give back the head of the answer, or all of it when it is an error."""

    request: Request


class Read(Struct, frozen=True):
    """Give back the next bytes of what is open, or None at its end."""


class Pause(Struct, frozen=True):
    """Wait so many seconds."""

    seconds: float


class Token(Struct, frozen=True):
    """Give back the token to present, or None where callers need none."""


class Emit(Struct, Generic[T], frozen=True):
    """Hand this to the caller, and go on when it wants more."""

    value: T


READ: Final = Read()
TOKEN: Final = Token()
Action = Send | Open | Read | Pause | Token | Emit[Any]
Talk = Generator[Action, Any, T]
"""A conversation that ends in a T."""

ERROR: Final = "error"
"""The last event of a stream that went wrong when its status had been sent already."""

WAIT_S_MAX: Final = 60.0
"""Seconds a client waits at most before it tries again, whatever it is told."""


class Retries(Struct, frozen=True, kw_only=True):
    """How often to try again, and how long to wait before.

    The wait is drawn from zero to a bound that doubles each time: clients that failed together do
    not come back together. What the server says in `Retry-After` is waited in full.
    """

    count: int = 4
    first_s: float = 0.1
    bound_s: float = 10.0
    draw: Callable[[], float] = random.random

    def wait_s(self, tried: int, error: Exception) -> float:
        """Seconds before another try."""
        bound = min(self.bound_s, self.first_s * 2.0 ** (tried - 1))
        told = error.retry_after_s if isinstance(error, ApiError) else 0.0
        return min(WAIT_S_MAX, told + self.draw() * bound)


class Speaker:
    """Conversations of one client: its session and its patience."""

    def __init__(self, session: Session, retries: Retries) -> None:
        self.session = session
        self.retries = retries

    def call(self, route: Route[T], ask: Ask) -> Talk[T]:
        """One request and its answer; sent again while that is of use and does no harm."""
        answer = yield from self._patiently(route, ask, Send)
        return self.session.result(route, answer)

    def pages(self, route: Route[T], ask: Ask) -> Talk[None]:
        """Page after page, each handed out as it comes."""
        while True:
            page = yield from self.call(route, ask)
            yield Emit(page)
            cursor = getattr(page, "next_cursor", None)
            if not cursor:
                return
            ask = msgspec.structs.replace(ask, query={**ask.query, "cursor": cursor})

    def until(self, route: Route[T], ask: Ask, done: Callable[[T], bool]) -> Talk[T]:
        """Ask again until it is so."""
        wait_s, waited_s = 0.02, 0.0
        while True:
            state = yield from self.call(route, ask)
            if done(state):
                return state
            if waited_s >= ask.patience_s:
                raise TimedOut(f"{'/'.join(ask.place)} has not ended after {ask.patience_s:g} s")
            yield Pause(wait_s)
            waited_s += wait_s
            wait_s = min(1.0, wait_s * 1.5)

    def stream(self, route: Route[Any], ask: Ask, ending: "Ending") -> Talk[None]:
        """Server-sent events, taken up again where a lost connection left them."""
        place = _Place()
        while True:
            lost: TransportError = ConnectionLost("the stream ended before it was complete")
            try:
                if (yield from self._listen(route, _after(ask, place.last), ending, place)):
                    return
            except TransportError as error:
                lost = error
            place.tried += 1
            if place.tried > self.retries.count or (place.seen and not ending.numbers):
                raise StreamLost(f"{route.path}: {lost}") from lost
            yield Pause(self.retries.wait_s(place.tried, lost))

    def _listen(self, route: Route[Any], ask: Ask, ending: "Ending", place: "_Place") -> Talk[bool]:
        """Hand out events until the last of them (True) or the end of the connection (False).

        A None says that the stream is open: its first bytes, and with them its place, are here.
        """
        answer = yield from self._patiently(route, ask, Open)
        self.session.note_stability(route, answer)
        piece = yield READ
        yield Emit(None)
        parser = Parser()
        while piece is not None:
            for frame in parser.feed(piece):
                place.tried = 0
                if frame.event == ERROR:
                    raise error_of(Answer(500, answer.headers, frame.data))
                if frame.id is None and ending.numbers and place.seen:
                    continue  # what precedes the numbers was said before the connection was lost
                place.last, place.seen = frame.id or place.last, place.seen + 1
                yield Emit(frame)
                if frame.event in ending.names:
                    return True
            place.last = parser.last_id or place.last
            piece = yield READ
        return False

    def _patiently(self, route: Route[Any], ask: Ask, how: type[Send] | type[Open]) -> Talk[Answer]:
        """The answer, after as many tries as it takes and is allowed."""
        tried, renewed = 0, False
        while True:
            token: str | None = yield TOKEN
            error: Exception
            try:
                answer: Answer = yield how(self.session.request(route, ask, token))
            except TransportError as lost:
                if not (route.is_safe or isinstance(lost, Unreachable)):
                    raise
                error = lost
            else:
                if route.is_answered(answer.status):
                    return answer
                error = error_of(answer)
                if isinstance(error, Unauthenticated) and not renewed:
                    # A token may have run out on its way: one fresh one is worth a try.
                    renewed = True
                    if (yield TOKEN) != token:
                        continue
                if not _is_passing(error, tried, is_safe=route.is_safe):
                    raise error
            tried += 1
            if tried > self.retries.count:
                raise error
            yield Pause(self.retries.wait_s(tried, error))


class Ending(Struct, frozen=True):
    """The events after which nothing comes, and whether events have numbers to go on from."""

    names: frozenset[str] = frozenset()
    numbers: bool = True


class _Place:
    """How far a stream has been heard."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.seen = 0
        self.tried = 0


def _is_passing(error: ApiError, tried: int, *, is_safe: bool) -> bool:
    """Whether the same request may succeed later, and may be sent twice."""
    if isinstance(error, RateLimited):
        return True
    if isinstance(error, Unavailable):
        # 503 was refused before anything was done; 502 and 504 are a proxy's, who knows no more.
        return error.retriable and (is_safe or error.status == 503)
    return isinstance(error, Internal) and error.retriable and is_safe and tried == 0


def _after(ask: Ask, last: str | None) -> Ask:
    if last is None:
        return ask
    return msgspec.structs.replace(ask, headers={**ask.headers, "Last-Event-ID": last})
