"""Does the site hold everything the code has, build without a complaint, and need no network?"""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli import COMMANDS
from api.cli.exits import EXITS
from api.errors import DOCUMENTATION
from api.reference import pages
from api.surfaces import ALONE
from api.v1 import ENDPOINTS
from api.v1.problems import catalogue
from engine.settings import ENVIRONMENT
from schemas import limits
from schemas.lifecycle import EVENT_NAMES
from schemas.policy import CAPABILITIES
from strata_client.methods import ROUTES

LIMITS = sorted({name for name in vars(limits) if name.isupper()} - {"KIB", "MIB"})
ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+\bsrc=["']?(?P<src>[^"'\s>]+)"""
    r"""|<link[^>]+\bhref=["']?(?P<href>[^"'\s>]+)[^>]*>""",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, built as scripts/docs builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder],
        cwd=ROOT,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr + done.stdout
    return folder


def text_of(site: Path, page: str) -> str:
    return html.unescape((site / page).read_text(encoding="utf-8"))


def test_every_endpoint_is_on_its_page(site):
    """An endpoint without a page might as well not be there."""
    missing = []
    for endpoint in ENDPOINTS:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", endpoint.path)
        tag = path.split("/")[2].partition(".")[0]
        heading = f"{endpoint.method} {path}"
        page = text_of(site, f"reference/http/{tag}.html")
        if heading not in page or endpoint.summary not in page:
            missing.append(heading)

    assert [] == missing


@pytest.mark.parametrize("surface", sorted(ALONE))
def test_every_endpoint_of_other_surfaces_is_on_their_page(site, surface):
    """A contract that is spoken is listed, at the place where it is spoken."""
    page = text_of(site, f"reference/surfaces/{surface}.html")
    paths = [re.sub(r"\{(\w+):\w+\}", r"{\1}", one.path) for one in ALONE[surface].table()]

    assert [] == [path for path in paths if path not in page]


def test_every_method_of_the_client_is_on_its_page(site):
    """Each endpoint that the client asks is there with the method that asks it."""
    page = text_of(site, "reference/python.html")
    asked = [re.sub(r":\w+", "", f"{method} {path}") for method, path in ROUTES]

    assert len(asked) > 90
    assert [] == [place for place in asked if place not in page]


@pytest.mark.parametrize("page,names", [
    ("reference/settings.html", sorted(ENVIRONMENT.values())),
    ("reference/limits.html", LIMITS),
    ("reference/capabilities.html", sorted(CAPABILITIES)),
    ("reference/lifecycle.html", list(EVENT_NAMES)),
    ("reference/errors/index.html", sorted(catalogue())),
    ("reference/command-line.html", [f"strata {name}" for name in COMMANDS]),
    ("reference/command-line.html", list(EXITS.values())),
])  # fmt: skip
def test_every_name_is_on_its_page(site, page, names):
    """Settings, capabilities, lifecycle events, error codes, commands: none is left out."""
    shown = text_of(site, page)

    assert [] == [name for name in names if name not in shown]


@pytest.mark.parametrize("code", sorted(catalogue()))
def test_error_code_has_a_page(code):
    """A page a code, which agrees with what `documentation` in the envelope leads to."""
    problem = catalogue()[code]
    page = pages()[f"reference/errors/{code}.md"]

    assert f"# {code}" == page.splitlines()[0]
    assert f'"documentation": "{DOCUMENTATION}{code}"' in page
    assert problem.remedy in page
    assert str(problem.status) in page


def test_the_link_of_an_error_leads_to_its_page(client):
    """Followed by a program it is JSON, in a browser a page; both say what the site says."""
    envelope = client.get("/v1/events/evt_none").json()
    code, place = envelope["error_code"], envelope["documentation"]
    told = client.get(place).json()
    page = client.get(place, headers={"Accept": "text/html,application/xhtml+xml"})

    assert code == told["error_code"]
    assert "text/html; charset=utf-8" == page.headers["content-type"]
    for said in (code, told["remedy"], told["meaning"]):
        assert said in html.unescape(page.text)
        assert said in pages()[f"reference/errors/{code}.md"]


def test_pages_need_no_network(site):
    """Scripts, styles, pictures and fonts come from the site itself."""
    foreign = set()
    for page in site.rglob("*.html"):
        for found in LOADED.finditer(page.read_text(encoding="utf-8")):
            address = found["src"] or found["href"] or ""
            is_hint = 'rel="canonical"' in found[0] or "rel=canonical" in found[0]
            if re.match(r"(https?:)?//", address) and not is_hint:
                foreign.add(address)

    assert set() == foreign


def test_pictures_describe_themselves():
    """A picture has a title and a description, for who cannot see it, and loads nothing."""
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        drawn = picture.read_text(encoding="utf-8")

        assert "<title" in drawn, picture.name
        assert not re.search(r"""(href|src)=["']https?://|@import|url\(["']?https?:""", drawn), (
            picture.name
        )
