"""How is it run from a shell?  `strata serve`, and what an operator does with a data directory."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from api.server import serve
from engine.admin import list_projectors, package_version
from engine.auditing import verify_trails
from engine.engine import StoreError
from engine.issuers import IssuerError
from engine.presets import PRESETS
from engine.proof import prove
from engine.settings import (
    ENVIRONMENT,
    MEANING,
    Settings,
    SettingsError,
    load_settings,
    unknown_variables,
)
from engine.upkeep import VerifyReport, backup, inspected, restore, verify
from schemas.caller import Caller

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)
OPERATOR = Caller(actor="system:cli", tenant="system")
_HTTP_S = 60.0

data_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Data directory [CORTEX_DATA_DIR, ./data]."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for scripts.")
url_option = click.option("--url", help="Ask a running server, e.g. http://127.0.0.1:3141.")


class Failure(click.ClickException):
    """Something the operator must act on."""

    def show(self, file: Any = None) -> None:
        """Say it in red, once, without a traceback."""
        del file
        ERR.print(f"[red]error:[/red] {self.message}", soft_wrap=True)


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except (StoreError, SettingsError, IssuerError, OSError) as error:
        message = str(error)
        if "LOCK" in message:
            message += (
                "\na server is using this data directory: stop it, or use --url where offered"
            )
        raise Failure(message) from error


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each step of long work, on standard error."""
    columns = (
        TextColumn("{task.description:>14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=ERR) as shown:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=total)
            shown.update(tasks[what], completed=done, total=total)

        yield report


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_version(), prog_name="strata")
def main() -> None:
    """Strata: an event-sourced memory engine for AI agents."""


@main.command("serve")
@click.option("--host", help="Address to listen on [CORTEX_HOST, 127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one [CORTEX_PORT, 3141].")
@data_option
@click.option("--preset", help=f"One of {', '.join(PRESETS)} [CORTEX_DEPLOYMENT_PRESET].")
@click.option("--durability", help="fsync or buffered [CORTEX_DURABILITY, fsync].")
def serve_command(**flags: Any) -> None:
    """Run the server on a data directory."""
    with _readable_errors():
        settings = load_settings(flags=flags)
        _print_settings(settings)
        started = serve(settings)
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
    for name in unknown_variables():
        ERR.print(f"[yellow]{name} is not a setting; known: {', '.join(ENVIRONMENT.values())}[/]")


@main.command("settings")
def settings_command() -> None:
    """List every setting, its meaning and its present value."""
    with _readable_errors():
        settings = load_settings()
    table = Table(box=None, pad_edge=False)
    for title in ("variable", "value", "source", "meaning"):
        table.add_column(title)
    for name, variable in ENVIRONMENT.items():
        value = str(getattr(settings, name))
        table.add_row(variable, value, settings.sources[name], MEANING[name])
    OUT.print(table)


# ── integrity ────────────────────────────────────────────────────────────────────────────────


@main.command("verify")
@data_option
@click.option("--replay", is_flag=True, help="Also rebuild every view elsewhere and compare.")
@click.option("--scratch", type=click.Path(path_type=Path), help="Where to rebuild [temporary].")
@json_option
def verify_command(data: Path | None, replay: bool, scratch: Path | None, as_json: bool) -> None:
    """Check chain, anchors, gaps, bodies and counts; safe beside a running server."""
    with _readable_errors(), _progress() as progress:
        settings = load_settings(flags={"data": data})
        report = verify(settings, progress, replay=replay, scratch=scratch)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print_report(report)
    if not report.is_good:
        raise Failure("views differ from what the log says; see `strata projectors rebuild`")


def _print_report(report: VerifyReport) -> None:
    log = report.log
    OUT.print(f"log      [green]whole[/green]: {log.entries:,} entries, {log.erased:,} erased")
    OUT.print(f"chain    {log.chain} at {log.head:,}")
    OUT.print(f"anchors  {log.anchors:,} signed, all hold")
    OUT.print(f"indexes  {log.index_rows:,} rows, as the headers say")
    for view in report.views:
        verdict = "[green]equal[/green]" if view.is_equal else "[red]DIFFERENT[/red]"
        OUT.print(f"view     {view.view}: {view.rows:,} rows, {verdict}  {view.kept[:16]}")


@main.command("backup")
@click.argument("destination", type=click.Path(path_type=Path))
@data_option
def backup_command(destination: Path, data: Path | None) -> None:
    """Copy a data directory that no server holds, keys included, with a manifest of hashes."""
    with _readable_errors(), _progress() as progress:
        manifest = backup(load_settings(flags={"data": data}), destination, progress)
    size = sum(file.bytes for file in manifest.files)
    OUT.print(
        f"{destination}: {manifest.head:,} entries, {len(manifest.files)} files, {size:,} bytes"
    )
    OUT.print("It holds the keys: whoever has it can read everything in it.")


@main.command("restore")
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@data_option
def restore_command(source: Path, data: Path | None) -> None:
    """Bring a backup to a new data directory and verify it."""
    with _readable_errors(), _progress() as progress:
        settings = load_settings(flags={"data": data})
        manifest, report = restore(source, settings, progress)
    OUT.print(f"restored {manifest.head:,} entries of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC")
    _print_report(report)


@main.group("audit")
def audit_group() -> None:
    """Prove that nobody touched the audit log."""


@audit_group.command("verify")
@data_option
@json_option
def audit_verify(data: Path | None, as_json: bool) -> None:
    """Read every tenant's audit rows again; safe beside a running server."""
    with _readable_errors(), _progress() as progress:
        found = verify_trails(load_settings(flags={"data": data}), progress)
    if as_json:
        click.echo(msgspec.json.encode(found))
    for item in [] if as_json else found:
        report = item.report
        verdict = "[green]whole[/green]" if report.valid else "[red]BROKEN[/red]"
        rows = f"{report.length:,} rows, {report.pruned_rows:,} pruned"
        OUT.print(f"{escape(item.tenant)}  {verdict}: {rows}")
        OUT.print(f"  head {report.head_hash}", style="dim")
    broken = [item for item in found if not item.report.valid]
    if broken:
        first = broken[0].report
        raise Failure(
            f"{escape(broken[0].tenant)}: row {first.first_broken_index:,}: {first.reason}"
            + (f" (and {len(broken) - 1} more tenants)" if len(broken) > 1 else "")
        )


@main.group("erasure")
def erasure_group() -> None:
    """See that what was erased is gone."""


@erasure_group.command("prove")
@click.argument("erasure_id")
@click.option("--phrase", "phrases", multiple=True, help="Words that must be nowhere; repeatable.")
@data_option
@json_option
def erasure_prove(
    erasure_id: str, phrases: tuple[str, ...], data: Path | None, as_json: bool
) -> None:
    """Look through every file, row, payload and index of a data directory."""
    with _readable_errors():
        proof = prove(load_settings(flags={"data": data}), erasure_id, list(phrases))
    if proof is None:
        raise Failure(f"there is no erasure {escape(erasure_id)} here")
    if as_json:
        click.echo(msgspec.json.encode(proof))
    else:
        OUT.print(f"erasure   {escape(proof.erasure_id)}, {proof.status}")
        OUT.print(f"erased    {proof.events:,} events: payloads, keys and records looked for")
        looked = f"{proof.files:,} files, {proof.rows:,} rows, {proof.payloads:,} payloads"
        OUT.print(f"looked at {looked}, and the text index")
        found = [*proof.payloads_left, *proof.keys_left, *proof.records_left, *proof.phrase_in]
        for place in found:
            OUT.print(f"[red]found[/red]     {escape(place)}")
    if not proof.holds:
        raise Failure("something of it is still there")
    if not as_json:
        OUT.print("[green]nothing of it is left[/green]")


@main.command("rebuild")
@click.option("--ignore-forgets", is_flag=True, help="Derive again what was forgotten; audited.")
@click.option("--url", default="http://127.0.0.1:3141", show_default=True, help="The server.")
def rebuild_command(ignore_forgets: bool, url: str) -> None:
    """Build every derived view anew beside the old ones; they swap when caught up."""
    asked = "?ignore_forgets=true" if ignore_forgets else ""
    with _readable_errors():
        answer = _ask(url, "POST", f"/v1/admin/rebuild{asked}")
    OUT.print(f"{answer['status']}; {len(answer['unparked'])} forgets taken back")


# ── projectors ───────────────────────────────────────────────────────────────────────────────


@main.group("projectors")
def projectors_group() -> None:
    """See, retry and rebuild what derives views from the log."""


@projectors_group.command("list")
@data_option
@url_option
@json_option
def projectors_list(data: Path | None, url: str | None, as_json: bool) -> None:
    """Every projector: version, state, lag and parked entries."""
    with _readable_errors():
        items = _ask(url, "GET", "/v1/admin/projectors") if url else _list_offline(data)
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
    with _readable_errors():
        answer = _ask(url, "POST", f"/v1/admin/projectors/{name}/retry")
    OUT.print(f"{name}: {answer['status']}, {len(answer['unparked'])} entries taken back in")


@projectors_group.command("rebuild")
@click.argument("name")
@click.option("--url", default="http://127.0.0.1:3141", show_default=True, help="The server.")
def projectors_rebuild(name: str, url: str) -> None:
    """Rebuild a projector's views beside the old ones; they swap when caught up."""
    with _readable_errors():
        answer = _ask(url, "POST", f"/v1/admin/projectors/{name}/rebuild")
    OUT.print(f"{name}: {answer['status']}")


def _ask(url: str, method: str, path: str) -> dict[str, Any]:
    """One request to a running server; its error envelope becomes ours."""
    request = urllib.request.Request(  # noqa: S310 - the operator names the server
        url.rstrip("/") + path, method=method, headers={"X-Cortex-Actor": "system:cli"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_S) as response:  # noqa: S310
            found: dict[str, Any] = json.load(response)
            return found
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        raise Failure(f"{problem['error_code']}: {problem['message']}") from error
    except urllib.error.URLError as error:
        raise Failure(f"no server answers at {url}: {error.reason}") from error


if __name__ == "__main__":
    sys.exit(main())
