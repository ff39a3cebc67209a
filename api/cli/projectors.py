"""What derives the views, and how is it done anew?  `strata rebuild`, `strata projectors`."""

import time
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from api.cli.connect import Place, connected
from api.cli.directory import readable_errors
from api.cli.shell import OUT, echo_json, examples, json_option, progress_bars
from engine.admin import list_projectors
from engine.settings import load_settings
from engine.upkeep import inspected
from schemas.caller import Caller
from strata_client import Client

OPERATOR: Final = Caller(actor="system:cli", tenant="system")
COLUMNS: Final = ("name", "version", "state", "checkpoint", "lag_entries", "parked")
_EVERY_S: Final = 0.2


@click.command(
    "rebuild",
    epilog=examples("strata rebuild", "strata rebuild --data ./data", "strata rebuild --no-wait"),
)
@click.option("--ignore-forgets", is_flag=True, help="Derive again what was forgotten; audited.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Until they have swapped.")
@json_option
@connected
def rebuild_command(place: Place, ignore_forgets: bool, wait: bool, as_json: bool) -> None:
    """Build every derived view anew beside the old ones; they swap when caught up."""
    with place.client() as client:
        answer = client.admin.rebuild(ignore_forgets=ignore_forgets)
        if wait or place.data is not None:
            _await_views(client)
    if as_json:
        echo_json(answer)
    else:
        OUT.print(f"{answer.status}; {len(answer.unparked)} forgets taken back")


def _await_views(client: Client) -> None:
    """Until no projector rebuilds; a bar tells how many have swapped."""
    with progress_bars() as report:
        while True:
            items = client.admin.projectors().items
            behind = sum(item.state == "rebuilding" for item in items)
            report("views", len(items) - behind, len(items))
            if not behind:
                return
            time.sleep(_EVERY_S)


@click.group("projectors")
def projectors_group() -> None:
    """See, retry and rebuild what derives views from the log."""


@projectors_group.command(
    "list", epilog=examples("strata projectors list", "strata projectors list --data ./data --json")
)
@json_option
@connected
def projectors_list(place: Place, as_json: bool) -> None:
    """Every projector: version, state, lag and parked entries."""
    found = _as_left(place.data) if place.data is not None else _asked(place)
    if as_json:
        echo_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for title in COLUMNS:
        table.add_column(title)
    for item in found.items:
        table.add_row(*(str(getattr(item, title)) for title in COLUMNS))
    OUT.print(table)
    for item in found.items:
        for event in item.parked_events:
            OUT.print(f"parked by {item.name}: {event}")


def _asked(place: Place) -> Any:
    with place.client() as client:
        return client.admin.projectors()


def _as_left(data: Path) -> Any:
    """As a server left them, or holds them right now: nothing is derived for the looking."""
    with readable_errors(), inspected(load_settings(flags={"data": data})) as engine:
        return list_projectors(engine, OPERATOR)


@projectors_group.command("retry", epilog=examples("strata projectors retry annotator"))
@click.argument("name")
@json_option
@connected
def projectors_retry(place: Place, name: str, as_json: bool) -> None:
    """Take a projector's parked entries back in; its views are rebuilt beside the old ones."""
    with place.client() as client:
        answer = client.admin.retry_projector(name)
    _said(name, answer, as_json=as_json)


@projectors_group.command("rebuild", epilog=examples("strata projectors rebuild facts"))
@click.argument("name")
@json_option
@connected
def projectors_rebuild(place: Place, name: str, as_json: bool) -> None:
    """Rebuild a projector's views beside the old ones; they swap when caught up."""
    with place.client() as client:
        answer = client.admin.rebuild_projector(name)
    _said(name, answer, as_json=as_json)


def _said(name: str, answer: Any, *, as_json: bool) -> None:
    if as_json:
        echo_json(answer)
    else:
        OUT.print(f"{name}: {answer.status}, {len(answer.unparked)} entries taken back in")
