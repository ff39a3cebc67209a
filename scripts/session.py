"""What does the program look like?  Its own output in its own colours, as SVG.

A server is started on an empty folder, the commands of a session are run as they are shown, and
what they printed becomes a picture. Ids and dates differ between two recordings; the rest does not,
so `--check` compares without them.
"""

import argparse
import html
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs" / "pictures"
BIN: Final = Path(sys.executable).parent
COLUMNS: Final = 84

SESSIONS: Final = {
    "session": (
        "A first session: two experiences are remembered, asked for, and explained.",
        [
            'strata remember "Acme moved to 200 seats"',
            'strata remember "Alice prefers email over phone"',
            'strata recall "how many seats does Acme have?"',
            'strata why "how many seats does Acme have?"',
        ],
    ),
    "pack": (
        "A pack: beliefs, facts, episodes and events, each line with its citation.",
        [
            'strata recall "what do we know about Acme?"',
        ],
    ),
}
"""Picture → what it shows, and the commands; they follow each other on one server."""

_FOREIGN: Final = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)
"""Fonts would be loaded from elsewhere."""
_FONT: Final = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
_VARYING: Final = (
    (re.compile(r"(evt|fact|belief|ep|concept|req|pack)_[0-9a-f-]{36}"), r"\1_ID"),
    (re.compile(r"\d{1,2} [A-Z][a-z]{2,8} \d{4}"), "DATE"),
    (re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2})?"), "DATE"),
    (re.compile(r"\s+"), " "),
)


def recorded() -> dict[str, str]:
    """Every picture, by its name, from one run of the program."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(  # noqa: S603 - the program that stands beside this python
            [BIN / "strata", "serve", "--port", "0", "--data", Path(folder) / "data"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            text=True,
        )
        try:
            assert server.stdout is not None
            url = server.stdout.readline().removeprefix("listening on ").strip()
            return {
                name: _drawn(_played(commands, url), title)
                for name, (title, commands) in SESSIONS.items()
            }
        finally:
            server.terminate()
            server.communicate(timeout=30)


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CORTEX_")}
    return kept | {"CORTEX_BALLAST_MB": "1", "CORTEX_DISK_LOW_WATER_MB": "16"} | more


def _played(commands: list[str], url: str) -> str:
    """What a terminal would show."""
    environment = _environment(
        CORTEX_URL=url, FORCE_COLOR="1", COLUMNS=str(COLUMNS), TERM="xterm-256color"
    )
    shown = []
    for command in commands:
        program, *arguments = shlex.split(command)
        done = subprocess.run(  # noqa: S603 - a command of the table above
            [BIN / program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        shown.append(f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m\n{done.stdout}")
    return "\n".join(shown)


def _drawn(shown: str, title: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(shown))
    # A name of its own instead of one drawn from the content: ids would change every line.
    svg = console.export_svg(title="strata", unique_id="strata")
    svg = _FOREIGN.sub("", svg).replace("Fira Code, monospace", _FONT)
    label = f'<title id="strata-title">{html.escape(title)}</title>'
    return re.sub(
        r"(<svg [^>]*)>", rf'\1 role="img" aria-labelledby="strata-title">{label}', svg, count=1
    )


def words_of(svg: str) -> str:
    """What a picture says, without what differs from run to run."""
    said = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace(
        "\xa0", " "
    )
    for pattern, stand_in in _VARYING:
        said = pattern.sub(stand_in, said)
    return said


def main() -> int:
    """Record, or compare with what was recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    old = []
    for name, svg in recorded().items():
        path = PICTURES / f"{name}.svg"
        if not check:
            path.write_text(svg, encoding="utf-8")
        elif words_of(path.read_text(encoding="utf-8")) != words_of(svg):
            old.append(path.name)
    if old:
        print(f"{', '.join(old)}: the program shows something else; run scripts/session")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
