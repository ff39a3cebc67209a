"""What derives the views, and how is it done anew?  `strata rebuild`, `strata projectors`."""

import json
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from api.cli.directory import readable_errors
from api.cli.shell import OUT, ask, data_option, json_option, url_option
from engine.admin import list_projectors
from engine.settings import load_settings
from engine.upkeep import inspected
from schemas.caller import Caller

OPERATOR = Caller(actor="system:cli", tenant="system")


@click.command("rebuild")
@click.option("--ignore-forgets", is_flag=True, help="Derive again what was forgotten; audited.")
@click.option("--url", default="http://127.0.0.1:3141", show_default=True, help="The server.")
def rebuild_command(ignore_forgets: bool, url: str) -> None:
    """Build every derived view anew beside the old ones; they swap when caught up."""
    asked = "?ignore_forgets=true" if ignore_forgets else ""
    with readable_errors():
        answer = ask(url, "POST", f"/v1/admin/rebuild{asked}")
    OUT.print(f"{answer['status']}; {len(answer['unparked'])} forgets taken back")


@click.group("projectors")
def projectors_group() -> None:
    """See, retry and rebuild what derives views from the log."""


@projectors_group.command("list")
@data_option
@url_option
@json_option
def projectors_list(data: Path | None, url: str | None, as_json: bool) -> None:
    """Every projector: version, state, lag and parked entries."""
    with readable_errors():
        items = ask(url, "GET", "/v1/admin/projectors") if url else _list_offline(data)
    if as_json:
        click.echo(json.dumps(items))
        return
    table = Table(box=None, pad_edge=False)
    columns = ("name", "version", "state", "checkpoint", "lag_entries", "parked")
    for title in columns:
        table.add_column(title)
    for item in items["items"]:
        table.add_row(*(str(item[title]) for title in columns))
    OUT.print(table)
    for item in items["items"]:
        for event in item["parked_events"]:
            OUT.print(f"parked by {item['name']}: {event}")


def _list_offline(data: Path | None) -> dict[str, Any]:
    with inspected(load_settings(flags={"data": data})) as engine:
        found: dict[str, Any] = msgspec.to_builtins(list_projectors(engine, OPERATOR))
        return found


@projectors_group.command("retry")
@click.argument("name")
@click.option("--url", default="http://127.0.0.1:3141", show_default=True, help="The server.")
def projectors_retry(name: str, url: str) -> None:
    """Take a projector's parked entries back in; its views are rebuilt beside the old ones."""
    with readable_errors():
        answer = ask(url, "POST", f"/v1/admin/projectors/{name}/retry")
    OUT.print(f"{name}: {answer['status']}, {len(answer['unparked'])} entries taken back in")


@projectors_group.command("rebuild")
@click.argument("name")
@click.option("--url", default="http://127.0.0.1:3141", show_default=True, help="The server.")
def projectors_rebuild(name: str, url: str) -> None:
    """Rebuild a projector's views beside the old ones; they swap when caught up."""
    with readable_errors():
        answer = ask(url, "POST", f"/v1/admin/projectors/{name}/rebuild")
    OUT.print(f"{name}: {answer['status']}")
