"""Does the client know all that the server says and takes?"""

import subprocess
import sys
from pathlib import Path

import pytest

from api.generate import PACKAGE, packages

RUFF = Path(sys.executable).with_name("ruff")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The generated files, formatted as `scripts/client` formats them."""
    folder = tmp_path_factory.mktemp("written") / "sdk" / "strata_client"
    for name, text in packages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    config = ["--config", str(PACKAGE.parent.parent / "pyproject.toml"), "--quiet", "."]
    # What is written into the project is checked there; here only its form is wanted.
    order = [RUFF, "check", "--fix", "--exit-zero", *config]
    subprocess.run(order, cwd=folder, check=True, capture_output=True)
    subprocess.run([RUFF, "format", *config], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("name", sorted(packages()))
def test_the_generated_files_follow_from_the_servers_types(written, name):
    """Shapes of the client are never edited by hand: `scripts/client` writes them anew."""
    assert (written / name).read_text(encoding="utf-8") == (PACKAGE / name).read_text(
        encoding="utf-8"
    )


def test_nothing_else_is_among_the_generated_files():
    """A shape that the server no longer has is gone from the client too."""
    there = {
        path.relative_to(PACKAGE).as_posix()
        for folder in ("models", "asks")
        for path in (PACKAGE / folder).glob("*.py")
    }

    assert there == {name for name in packages() if "/" in name}
