"""How is the server run, and what is set?  `strata serve`, `strata settings`."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from api.cli.connect import VARIABLES
from api.cli.directory import readable_errors
from api.cli.shell import ERR, OUT, Failure, data_option, examples
from api.principals import load_principals
from api.server import serve
from api.surfaces import ALONE
from engine.presets import PRESETS
from engine.settings import (
    ENVIRONMENT,
    MEANING,
    Settings,
    load_settings,
    preset_of,
    unknown_variables,
)


@click.command(
    "serve", epilog=examples("strata serve", "strata serve --port 0 --data /var/lib/strata")
)
@click.option("--host", help="Address to listen on [CORTEX_HOST, 127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one [CORTEX_PORT, 3141].")
@data_option
@click.option("--preset", help=f"One of {', '.join(PRESETS)} [CORTEX_DEPLOYMENT_PRESET].")
@click.option("--durability", help="fsync or buffered [CORTEX_DURABILITY, fsync].")
@click.option("--surface", help=f"Serve one alone, at the root: {', '.join(ALONE)}.")
@click.option(
    "--principals",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of bearer strings and who they are; with preset dev_local only.",
)
def serve_command(surface: str | None, principals: Path | None, **flags: Any) -> None:
    """Run the server on a data directory."""
    if surface not in (None, *ALONE):
        raise Failure(f"there is no surface {surface}; one of {', '.join(ALONE)}")
    with readable_errors():
        settings = load_settings(flags=flags)
        if principals is not None and preset_of(settings).require_signed:
            raise Failure(f"preset {settings.preset} takes signed callers only, not --principals")
        callers = None if principals is None else load_principals(principals)
        _print_settings(settings)
        started = serve(settings, alone=ALONE.get(surface or ""), principals=callers)
    if not started:
        raise Failure("the server did not start")


def _print_settings(settings: Settings) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", "source"):
        table.add_column(title, style="dim" if title == "source" else "")
    for name in ENVIRONMENT:
        table.add_row(name, str(getattr(settings, name)), settings.sources[name])
    ERR.print(table)
    if settings.durability == "buffered":
        ERR.print("[yellow]durability is buffered: a power cut may lose answered writes[/yellow]")
    for name in sorted({*unknown_variables()} - {*VARIABLES}):
        ERR.print(f"[yellow]{name} is not a setting; known: {', '.join(ENVIRONMENT.values())}[/]")


@click.command("settings", epilog=examples("CORTEX_PORT=8080 strata settings"))
def settings_command() -> None:
    """List every setting, its meaning and its present value."""
    with readable_errors():
        settings = load_settings()
    table = Table(box=None, pad_edge=False)
    for title in ("variable", "value", "source", "meaning"):
        table.add_column(title)
    for name, variable in ENVIRONMENT.items():
        value = str(getattr(settings, name))
        table.add_row(variable, value, settings.sources[name], MEANING[name])
    OUT.print(table)
