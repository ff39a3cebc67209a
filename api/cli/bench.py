"""How fast is it here?  `strata bench` runs the benchmarks of the source beside it."""

import subprocess
import sys
from pathlib import Path

import click

from api.cli.shell import Failure, examples

ROOT = Path(__file__).resolve().parents[2]


@click.command(
    "bench",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    epilog=examples("strata bench capture", "strata bench --help"),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench_command(arguments: tuple[str, ...]) -> None:
    """Measure capture, recall, streams and quality; ARGUMENTS go to the benchmarks."""
    if not (ROOT / "bench" / "__main__.py").exists():
        raise Failure("the benchmarks are not in the wheel: run scripts/bench in a clone")
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - as it was typed
    if done.returncode:
        raise click.exceptions.Exit(done.returncode)
