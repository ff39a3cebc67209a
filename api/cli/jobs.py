"""What long work is there, and what became of it?  `strata jobs list|show|retry|cancel`."""

import json
import os
from typing import Any, Final

import click
import httpx
from rich.markup import escape
from rich.table import Table

from api.cli.shell import OUT, Failure, json_option

_HTTP_S: Final = 60.0
_COLUMNS: Final = ("job_id", "kind", "status", "processed", "total", "retries", "message")

server_option = click.option(
    "--url",
    default=lambda: os.environ.get("CORTEX_URL", "http://127.0.0.1:3141"),
    help="The server [CORTEX_URL, http://127.0.0.1:3141].",
)


@click.group("jobs")
def jobs_group() -> None:
    """See, retry and cancel long work: imports, exports, erasures, syntheses."""


@jobs_group.command("list")
@click.option("--status", help="running, cancelling, completed, failed or cancelled.")
@click.option("--kind", help="import, export, erasure or synthesis.")
@server_option
@json_option
def jobs_list(status: str | None, kind: str | None, url: str, as_json: bool) -> None:
    """The jobs of the tenant, newest first; a dead letter is marked."""
    chosen = {name: value for name, value in (("status", status), ("kind", kind)) if value}
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        asked = {"limit": "1000", **chosen} | ({"cursor": cursor} if cursor else {})
        page = _ask(url, "GET", "/v1/admin/jobs", asked)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    if as_json:
        click.echo(json.dumps({"items": items}))
        return
    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS:
        table.add_column(title)
    for item in items:
        shown = item | {"status": "dead letter"} if item["is_dead_letter"] else item
        table.add_row(*(escape(str(shown.get(title, ""))) for title in _COLUMNS))
    OUT.print(table)


@jobs_group.command("show")
@click.argument("job_id")
@server_option
@json_option
def jobs_show(job_id: str, url: str, as_json: bool) -> None:
    """One job: how far it is, and why it failed."""
    _say(_ask(url, "GET", f"/v1/admin/jobs/{job_id}"), as_json=as_json)


@jobs_group.command("retry")
@click.argument("job_id")
@server_option
@json_option
def jobs_retry(job_id: str, url: str, as_json: bool) -> None:
    """Run a job on that failed, from where it was."""
    _say(_ask(url, "POST", f"/v1/admin/jobs/{job_id}/retry"), as_json=as_json)


@jobs_group.command("cancel")
@click.argument("job_id")
@server_option
@json_option
def jobs_cancel(job_id: str, url: str, as_json: bool) -> None:
    """Ask a job to stop where it can; what it has done stays."""
    _say(_ask(url, "POST", f"/v1/admin/jobs/{job_id}/cancel"), as_json=as_json)


def _say(item: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(item))
        return
    for name, value in item.items():
        OUT.print(f"{name:<15} {escape(str(value))}")


def _ask(url: str, method: str, path: str, asked: dict[str, str] | None = None) -> dict[str, Any]:
    """One request; the server's error envelope becomes ours."""
    token = os.environ.get("CORTEX_TOKEN")
    actor = os.environ.get("CORTEX_ACTOR", "system:cli")
    headers = {"X-Cortex-Actor": actor} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        answer = httpx.request(
            method, url.rstrip("/") + path, params=asked, headers=headers, timeout=_HTTP_S
        )
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise Failure(f"no server answers at {escape(url)}: {escape(str(error))}") from error
    if answer.status_code >= 400:
        raise Failure(f"{found['error_code']}: {escape(found['message'])}")
    return found
