"""What do all commands share?  Consoles, options, errors that say what to do, bars."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)
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
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
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


def ask(url: str, method: str, path: str) -> dict[str, Any]:
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
