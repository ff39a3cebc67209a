"""What long work is there, and what became of it?  `strata jobs list|show|retry|cancel`."""

from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from api.cli.connect import Place, connected
from api.cli.shell import OUT, echo_json, examples, json_option

_COLUMNS: Final = ("job_id", "kind", "status", "processed", "total", "retries", "message")


@click.group("jobs")
def jobs_group() -> None:
    """See, retry and cancel long work: imports, exports, erasures, syntheses."""


@jobs_group.command("list", epilog=examples("strata jobs list --status failed"))
@click.option("--status", help="running, cancelling, completed, failed or cancelled.")
@click.option("--kind", help="import, export, erasure or synthesis.")
@json_option
@connected
def jobs_list(place: Place, status: Any, kind: Any, as_json: bool) -> None:
    """The jobs of the tenant, newest first; a dead letter is marked."""
    with place.client() as client:
        items = list(client.jobs.list(status=status, kind=kind, limit=1000))
    if as_json:
        echo_json({"items": items})
        return
    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS:
        table.add_column(title, no_wrap=title == "job_id")
    for item in items:
        shown = [str(getattr(item, title) or "") for title in _COLUMNS]
        if item.is_dead_letter:
            shown[_COLUMNS.index("status")] = "dead letter"
        table.add_row(*map(escape, shown))
    OUT.print(table)


@jobs_group.command("show", epilog=examples("strata jobs show imp_01a1…"))
@click.argument("job_id")
@json_option
@connected
def jobs_show(place: Place, job_id: str, as_json: bool) -> None:
    """One job: how far it is, and why it failed."""
    with place.client() as client:
        _say(client.jobs.get(job_id), as_json=as_json)


@jobs_group.command("retry", epilog=examples("strata jobs retry imp_01a1…"))
@click.argument("job_id")
@json_option
@connected
def jobs_retry(place: Place, job_id: str, as_json: bool) -> None:
    """Run a job on that failed, from where it was."""
    with place.client() as client:
        _say(client.jobs.retry(job_id), as_json=as_json)


@jobs_group.command("cancel", epilog=examples("strata jobs cancel imp_01a1…"))
@click.argument("job_id")
@json_option
@connected
def jobs_cancel(place: Place, job_id: str, as_json: bool) -> None:
    """Ask a job to stop where it can; what it has done stays."""
    with place.client() as client:
        _say(client.jobs.cancel(job_id), as_json=as_json)


def _say(item: Any, *, as_json: bool) -> None:
    if as_json:
        echo_json(item)
        return
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if value not in (None, ""):
            OUT.print(f"{name:<15} {escape(str(value))}")
