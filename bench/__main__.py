"""How fast is it, and how good?  `python -m bench [capture|quality|recall|…|all] [--quick] …`

A full run replaces its sections of RESULTS.md and its plots; a quick one only prints. The raw
figures of either go to bench/out/.
"""

import shlex
import sys
from pathlib import Path
from types import ModuleType

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import (
    capture,
    extraction,
    layers,
    peers,
    quality,
    recall,
    signed,
    sse,
    surfaces,
    workers,
)
from bench.corpora import corpora
from bench.host import OUT, Broken
from bench.process import raise_file_limit
from bench.report import PLOTS, Surroundings, keep, save, show

BENCHMARKS: dict[str, ModuleType] = {
    "capture": capture,
    "extraction": extraction,
    "layers": layers,
    "peers": peers,
    "quality": quality,
    "recall": recall,
    "signed": signed,
    "sse": sse,
    "surfaces": surfaces,
    "workers": workers,
}
_SECONDS, _QUICK_SECONDS = 5.0, 1.0
_QUICK_QUESTIONS = 20
_ERR = Console(stderr=True, highlight=False)
_OUT = Console(highlight=False, width=None if sys.stdout.isatty() else 180)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("which", default="all", type=click.Choice([*BENCHMARKS, "all"]))
@click.option("--quick", is_flag=True, help="About a minute, to look and not to keep: prints only.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.5),
    help=f"Length of one measurement [{_SECONDS:.0f}, quick {_QUICK_SECONDS:.0f}].",
)
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    default=extraction.CORPUS,
    help="Folder of conversations that extraction is tried on [../shared/data/locomo].",
)
@click.option("--sample", type=click.IntRange(min=1), help="Questions of each corpus of quality.")
@click.option("--only", type=click.Choice(list(corpora())), help="The one corpus of quality.")
def main(  # noqa: PLR0917 - a parameter an option, by name
    which: str,
    quick: bool,
    seconds: float | None,
    corpus: Path,
    sample: int | None,
    only: str | None,
) -> None:
    """Measure captures, extraction, recall, identity and streams; goals beside figures."""
    extraction.corpus = corpus
    quality.sample = sample or (_QUICK_QUESTIONS if quick else None)
    quality.only = only
    raise_file_limit()
    OUT.mkdir(exist_ok=True)
    PLOTS.mkdir(exist_ok=True)
    seconds = seconds or (_QUICK_SECONDS if quick else _SECONDS)
    wanted = BENCHMARKS if which == "all" else {which: BENCHMARKS[which]}
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    for benchmark in wanted.values():
        why = getattr(benchmark, "absent", lambda: None)()
        if why is not None:
            _ERR.print(f"{benchmark.NAME} is left out: {why}")
            continue
        surroundings = Surroundings(command)
        found = _measured(benchmark, seconds)
        section = benchmark.section(found, surroundings.facts())
        keep(section.name, found)
        show(_OUT, section)
        if not quick and not ((sample or only) and benchmark is quality):
            save(section)
            benchmark.draw(found, PLOTS / f"{section.name}.png")


def _measured(benchmark: ModuleType, seconds: float) -> object:
    columns = (
        TextColumn(f"{benchmark.NAME}  {{task.description:<42}}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_ERR) as shown:
        task = shown.add_task("starting", total=benchmark.STEPS, completed=-1)

        def say(what: str) -> None:
            shown.update(task, advance=1, description=what)

        try:
            found = benchmark.measure(seconds, say)
        except Broken as broken:
            raise click.ClickException(str(broken)) from broken
        shown.update(task, completed=benchmark.STEPS, description="done")
        return found


if __name__ == "__main__":
    main()
