"""What was found, where, and when?  Sections of RESULTS.md, goals beside what was measured."""

import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.disk import filesystem
from bench.host import OUT, ROOT

RESULTS = ROOT / "bench" / "RESULTS.md"
PLOTS = ROOT / "bench" / "plots"
_MEASURED = ("schemas", "projectors", "engine", "api", "pyproject.toml")
_INTRO = """\
# Results

Written by `scripts/bench`; every section is replaced by the next full run of its benchmark.
Goals are for an idle 2-core machine (DESIGN §11); loader, subscribers and server share its cores.
Absolute times are noisy where the load average says so: compare within one run.
"""


class Goal(msgspec.Struct, frozen=True):
    """A promise and what came of it."""

    what: str
    goal: str
    measured: str
    met: bool


class Grid(msgspec.Struct, frozen=True):
    """A table of figures: a title, the columns, the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark's page."""

    name: str
    question: str
    facts: Sequence[str]
    goals: Sequence[Goal]
    grids: Sequence[Grid]
    reading: str


class Surroundings:
    """What the figures depend on; the load average is taken when made and when asked."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._before = os.getloadavg()

    def facts(self) -> list[str]:
        before, after = (
            " ".join(f"{value:.2f}" for value in load) for load in (self._before, os.getloadavg())
        )
        return [
            f"{datetime.now():%Y-%m-%d %H:%M}, commit {_commit()}",
            f"`{self._command}`",
            f"{os.cpu_count()} CPUs, {_python()}, data on {filesystem(OUT)}",
            f"load average {before} before, {after} after (1, 5 and 15 minutes)",
        ]


def _python() -> str:
    """The interpreter, and whether the modules that work hardest are compiled (ADR 0040)."""
    found = importlib.util.find_spec("projectors.fold")
    is_plain = found is None or str(found.origin).endswith(".py")
    return f"Python {platform.python_version()}, {'plain' if is_plain else 'compiled modules'}"


def _commit() -> str:
    """The short hash, and whether what is measured differs from it."""
    try:
        short = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", *_MEASURED)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{short} with local changes" if changed else short


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def show(console: Console, section: Section) -> None:
    """The section on the terminal."""
    for grid in (*section.grids, _goal_grid(section.goals)):
        table = Table(title=grid.title, title_justify="left", box=None, pad_edge=False)
        for at, column in enumerate(grid.columns):
            table.add_column(column, justify="left" if at == 0 else "right")
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    console.print(section.reading)
    for goal in section.goals:
        if not goal.met:
            console.print(f"[red]missed:[/red] {goal.what}: {goal.measured}, goal {goal.goal}")


def save(section: Section) -> None:
    """The section in RESULTS.md, in the place of the last one of its name."""
    text = RESULTS.read_text() if RESULTS.exists() else _INTRO
    kept = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    kept[section.name] = _markdown(section)
    pages = (f"## {name}\n\n{page.strip()}\n" for name, page in sorted(kept.items()))
    RESULTS.write_text("\n".join((_INTRO, *pages)))


def keep(name: str, found: Any) -> Path:
    """The raw figures, for whoever wants to look again."""
    path = OUT / f"{name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    return path


def _markdown(section: Section) -> str:
    facts = "\n".join(f"- {fact}" for fact in section.facts)
    grids = (_goal_grid(section.goals), *section.grids)
    tables = "\n\n".join(f"{grid.title}\n\n{_pipes(grid)}" for grid in grids)
    plot = f"![{section.name}](plots/{section.name}.png)"
    return f"{section.question}\n\n{facts}\n\n{section.reading}\n\n{tables}\n\n{plot}"


def _goal_grid(goals: Iterable[Goal]) -> Grid:
    rows = [(g.what, g.goal, g.measured, "met" if g.met else "missed") for g in goals]
    return Grid("Goals", ("what", "goal", "measured", "verdict"), rows)


def _pipes(grid: Grid) -> str:
    lines = [grid.columns, ["---"] + ["--:"] * (len(grid.columns) - 1), *grid.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
