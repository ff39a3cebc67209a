"""Whom does a command talk to?  A server, or the engine on a data directory, by one client."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.markup import escape

from api.cli.shell import Absent, Failure, Refused, Unavailable
from strata_client import Client, errors
from strata_client.client import SCOPE, URL

VARIABLES: Final = ("CORTEX_URL", "CORTEX_TOKEN", "CORTEX_ACTOR", "CORTEX_SCOPE")
"""What the commands that talk to a server take from the environment."""

_KINDS: Final[dict[type[errors.ApiError], type[Failure]]] = {
    errors.Unauthenticated: Refused,
    errors.Denied: Refused,
    errors.NotFound: Absent,
    errors.RateLimited: Unavailable,
    errors.Unavailable: Unavailable,
}
"""What a server's refusal is to a script; all else is a plain failure."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command does its work, for whom."""

    url: str | None
    token: str | None
    actor: str | None
    data: Path | None
    scope: str | None

    @contextmanager
    def client(self, *, makes: bool = False) -> Iterator[Client]:
        """A client of it; what goes wrong is said with what to do about it.

        Only a command that writes makes a data directory: a misspelt one has nothing to read.
        """
        if self.data is not None and not makes and not (self.data / "format").exists():
            raise Absent(f"{escape(str(self.data))} is no data directory; remember makes one")
        try:
            with self._opened() as client:
                yield client
        except errors.ApiError as error:
            raise _kind(error)(_explained(error)) from error
        except errors.TransportError as error:
            raise Unavailable(self._unreachable(error)) from error
        except errors.EmbeddedError as error:
            raise Failure(self._not_opened(error)) from error
        except OSError as error:
            raise Failure(escape(str(error))) from error

    def _opened(self) -> Client:
        if self.data is not None:
            return Client.embedded(self.data, **self._who())
        return Client(self.url or URL, token=self.token, **self._who())

    def _who(self) -> dict[str, Any]:
        return {"scope": self.scope, "actor": self.actor, "allow_unstable": True}

    def _unreachable(self, error: errors.TransportError) -> str:
        return (
            f"no server answers at {self.url or URL}: {escape(str(error))}\n"
            "start one with `strata serve`, name another with --url, "
            "or use a data directory with --data"
        )

    def _not_opened(self, error: errors.EmbeddedError) -> str:
        said = escape(str(error))
        if "LOCK" in said or "lock" in said:
            said += "\na server is using this data directory: leave out --data to ask it"
        return said


def _kind(error: errors.ApiError) -> type[Failure]:
    return next((kind for base, kind in _KINDS.items() if isinstance(error, base)), Failure)


def _explained(error: errors.ApiError) -> str:
    """The message, what to do, and what to quote when asking for help."""
    group = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    lines = [escape(error.message)]
    denied = error.details.get("denied_by_tier")
    if denied:
        lines.append(f"denied by {denied}: {escape(str(error.details.get('capability')))}")
    if group is not errors.ApiError and group.__doc__:
        lines.append(group.__doc__.splitlines()[0])
    about = [error.code, error.request_id and f"request {error.request_id}"]
    lines.append("[dim]" + " · ".join(escape(part) for part in about if part) + "[/dim]")
    return "\n".join(lines)


def connected(function: Callable[..., None]) -> Callable[..., None]:
    """Options that name a server or a data directory; the command gets them as `place`."""

    @click.option("--url", envvar="CORTEX_URL", help=f"The server [CORTEX_URL, {URL}].")
    @click.option("--token", envvar="CORTEX_TOKEN", help="Who is asking [CORTEX_TOKEN].")
    @click.option(
        "--actor",
        envvar="CORTEX_ACTOR",
        help="As type:id, in dev_local [CORTEX_ACTOR].",
    )
    @click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="Open this data directory instead of asking a server.",
    )
    @click.option(
        "--scope",
        envvar="CORTEX_SCOPE",
        help=f"Whose memory [CORTEX_SCOPE, {SCOPE}].",
    )
    @functools.wraps(function)
    def wrapped(
        *,
        url: str | None,
        token: str | None,
        actor: str | None,
        data: Path | None,
        scope: str | None,
        **rest: Any,
    ) -> None:
        place = Place(url=url, token=token, actor=actor, data=data, scope=scope)
        function(place=place, **rest)

    return wrapped
