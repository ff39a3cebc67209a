"""Does a newcomer get from a clean clone to the first recall, and does the picture show that?"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = [
    "clone",
    "serve, until it listens",
    "first experience (strata remember)",
    "first recall (strata recall)",
    "the same from Python, without a server",
    "from nothing to the first recall",
]


def test_newcomer_gets_to_the_first_recall():
    """Every step works from a clone of what is committed; only the install is taken as done."""
    done = subprocess.run(
        [ROOT / "scripts" / "newcomer", "--venv", sys.prefix],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    steps = re.findall(r"^ +[\d.]+ s  (.*)$", done.stdout, re.MULTILINE)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert STEPS == steps
    assert "Acme moved to 200 seats" in done.stdout


@pytest.fixture(scope="module")
def session():
    """The script that records the pictures."""
    spec = importlib.util.spec_from_file_location("session", ROOT / "scripts" / "session.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_show_what_the_program_shows(session):
    """Recorded anew, they say the same, but for ids and dates; else: scripts/session."""
    for name, svg in session.recorded().items():
        kept = (session.PICTURES / f"{name}.svg").read_text(encoding="utf-8")

        assert session.words_of(svg) == session.words_of(kept), name


def test_only_ids_and_dates_are_overlooked(session):
    """A picture of another output is told from the one that is kept."""
    kept = (session.PICTURES / "session.svg").read_text(encoding="utf-8")

    assert session.words_of(kept) != session.words_of(kept.replace("200", "201"))
    assert "evt_ID" in session.words_of(kept)
    assert "strata remember" in session.words_of(kept)
