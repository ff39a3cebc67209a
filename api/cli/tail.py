"""What is happening in memory right now?  `strata tail`: the lifecycle, live and in colours."""

import contextlib
from typing import Any, Final

import click
import msgspec
from rich.markup import escape

from api.cli.connect import Place, connected
from api.cli.shell import ERR, OUT, Failure, echo_json, examples, json_option

COLOURS: Final = {
    "captured": "white",
    "extracted": "cyan",
    "indexed": "blue",
    "consolidated": "green",
    "compressed": "magenta",
    "cancelled": "yellow",
    "parked": "red",
    "forgotten": "yellow",
    "policy_changed": "yellow",
    "policy_revoked": "red",
    "import_error": "red",
    "lagging": "red",
}
"""Of the announcements that have one; jobs are plain."""

_SHARED: Final = ("lifecycle_id", "timestamp", "scope", "event_id", "event", "sequence")


@click.command(
    "tail",
    epilog=examples(
        "strata tail --scope org:acme --view descend",
        "strata tail --event captured --event parked",
        "strata tail --json | jq -r .event_id",
    ),
)
@click.option("--view", type=click.Choice(["local", "descend"]), help="Also what is below.")
@click.option("--event", "kinds", multiple=True, help="Only this kind; repeatable.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many.")
@json_option
@connected
def tail_command(place: Place, count: int | None, as_json: bool, **rest: Any) -> None:
    """Follow the lifecycle of a scope until interrupted; broken connections are taken up again."""
    if place.data is not None:
        raise Failure("nothing happens in a data directory without a server; leave out --data")
    asked: dict[str, Any] = {}
    if rest["view"]:
        asked["view"] = rest["view"]
    if rest["kinds"]:
        asked["events"] = ",".join(rest["kinds"])
    with (
        contextlib.suppress(KeyboardInterrupt),
        place.client() as client,
        client.lifecycle.stream(**asked) as stream,
    ):
        if not as_json:
            ERR.print(f"[dim]listening to {escape(client.scope)}; Ctrl-C ends it[/dim]")
        for number, told in enumerate(stream, start=1):
            _show(told, as_json=as_json)
            if number == count:
                return


def _show(told: Any, *, as_json: bool) -> None:
    if as_json:
        echo_json(told)
        return
    kind = str(told.event)
    colour = COLOURS.get(kind, "default")
    when = getattr(told, "timestamp", None)
    clock = f"{when:%H:%M:%S}" if when is not None else ""
    about = escape(told.event_id or told.scope or "")
    OUT.print(f"[dim]{clock}[/dim] [{colour}]{kind:<17}[/] {about} [dim]{_rest(told)}[/dim]")


def _rest(told: Any) -> str:
    """What it says beyond what all of them say, short."""
    fields = msgspec.to_builtins(told)
    kept = {name: value for name, value in fields.items() if name not in _SHARED}
    said = (
        f"{name}={_short(value)}"
        for name, value in kept.items()
        if value not in (None, [], {}, False)
    )
    return escape(" ".join(said))


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{inner}" for name, inner in value.items() if inner)
    return str(value)
