"""What do all commands share?  Consoles, options, errors that say what to do, bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from api.cli.exits import ABSENT, FAILED, REFUSED, UNAVAILABLE

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)

data_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Data directory [CORTEX_DATA_DIR, ./data]."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for scripts.")


class Failure(click.ClickException):
    """Something that whoever typed the command must act on."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        """Say it in red, once, without a traceback."""
        del file
        ERR.print(f"[red]error:[/red] {self.message}", soft_wrap=True)


class Unavailable(Failure):
    """It could not be done now; the same may succeed later."""

    exit_code = UNAVAILABLE


class Refused(Failure):
    """It is not allowed."""

    exit_code = REFUSED


class Absent(Failure):
    """There is no such thing."""

    exit_code = ABSENT


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def echo_json(value: Any) -> None:
    """One line of JSON on standard output."""
    click.echo(msgspec.json.encode(value))


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
