"""Do the pages say what they promise, in the form they promise?"""

import re
from pathlib import Path

import pytest

from engine.engine import FAMILIES
from engine.settings import ENVIRONMENT, load_settings
from engine.state.vault import FAMILIES as VAULT_FAMILIES
from schemas import errors

ROOT = Path(__file__).resolve().parent.parent
ADR = ROOT / "docs" / "adr"
PAGES = sorted(ADR.glob("[0-9]*.md"))

HEADER = re.compile(
    r"^Date: \d{4}-\d{2}-\d{2} · Status: (?P<status>Proposed|Accepted|Superseded by \d{4})"
    r" · Tags: [a-z]+(, [a-z]+)*$"
)
ROW = re.compile(
    r"^\| \[(?P<number>\d{4})\]\((?P<file>[^)]+)\) \| (?P<title>.+) \| (?P<status>.+) \|$"
)
ADDED_ERRORS = (
    errors.InvalidParameter,
    errors.InvalidCursor,
    errors.InvalidActor,
    errors.BodyTooLarge,
    errors.BodyTimeout,
    errors.UnsupportedMediaType,
    errors.MethodNotAllowed,
    errors.LifecycleExpired,
    errors.PackExpired,
    errors.AnswerUnavailable,
    errors.Overloaded,
)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#)([^)#]+)")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def index() -> dict[str, re.Match]:
    rows = [ROW.match(line) for line in lines_of(ADR / "README.md")]
    return {row["file"]: row for row in rows if row}


def test_adr_index_is_complete():
    """Every decision stands in the index, once, in order, and nothing else does."""
    rows = [row["file"] for line in lines_of(ADR / "README.md") if (row := ROW.match(line))]

    assert [page.name for page in PAGES] == rows


def test_adr_numbers_are_dense():
    """Numbers run from 0001 without a gap, so a missing page is a lost page."""
    numbers = [int(page.name[:4]) for page in PAGES]

    assert list(range(1, len(PAGES) + 1)) == numbers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_adr_has_its_form(page):
    """Title, one line of date, status and tags; then Context, Decision and Consequences."""
    lines = lines_of(page)
    row = index()[page.name]
    header = HEADER.match(lines[2])

    assert f"# {row['number']}. {row['title']}" == lines[0]
    assert page.name.startswith(row["number"] + "-")
    assert header, lines[2]
    assert row["status"] == header["status"]
    assert ["## Context", "## Decision", "## Consequences"] == [
        line for line in lines if line.startswith("#")
    ][1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_adr_fits_a_page(page):
    """A decision that needs more than a page is more than one decision."""
    lines = lines_of(page)

    assert len(lines) <= 60
    assert len(page.read_text(encoding="utf-8").split()) <= 500


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_adr_has_one_sentence_a_line(page):
    """Semantic newlines, so that a diff shows the sentence that changed."""
    prose = [line for line in lines_of(page) if not line.startswith(("#", "|", "Date:"))]

    assert [] == [line for line in prose if re.search(r"[.?!] [A-Z]", line)]


def test_links_lead_somewhere():
    """A relative link in a page points to a file that is there."""
    # Links among the pages of the site are the builder's to check: some of them are made there.
    pages = [*ROOT.glob("*.md"), *ADR.glob("*.md"), ROOT / "docs" / "deviations.md"]
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert [] == dead


def test_changelog_has_an_unreleased_part():
    """What users will notice is written down with the change, not at the release."""
    lines = lines_of(ROOT / "CHANGELOG.md")

    assert "# Changelog" == lines[0]
    assert "## [Unreleased]" in lines


def text_of(*names: str) -> str:
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


@pytest.mark.parametrize("variable", sorted(ENVIRONMENT.values()))
def test_every_setting_is_in_the_readme(variable):
    """A setting that no page names might as well not be there."""
    assert f"| `{variable}` |" in text_of("README.md")


def test_readme_defaults_are_the_defaults():
    """The table of settings says what happens when nothing is set."""
    readme = text_of("README.md")
    defaults = load_settings(environment={})

    for name, variable in ENVIRONMENT.items():
        assert f"| `{variable}` | `{getattr(defaults, name)}` |" in readme


def test_every_family_and_module_is_in_the_architecture():
    """A newcomer finds every column family, and every organ of the engine, on one page."""
    page = text_of("ARCHITECTURE.md")
    families = {*FAMILIES, *VAULT_FAMILIES}
    organs = [path.name for path in (ROOT / "engine").glob("*.py") if path.stem != "__init__"]

    assert [] == sorted(name for name in families if f"`{name}`" not in page)
    assert [] == sorted(name for name in organs if f"`{name}`" not in page)


def test_codes_and_events_beyond_the_seed_are_listed_as_deviations():
    """What we add to the contract's catalogues stands in docs/deviations.md."""
    page = text_of("docs/deviations.md")
    ours = {kind.code for kind in ADDED_ERRORS} | {"cancelled", "parked"}

    assert [] == sorted(code for code in ours if f"`{code}`" not in page)
