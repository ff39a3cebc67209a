"""Do imports only go down?  The contracts in pyproject.toml, run as scripts/check runs them."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_import_contracts_are_kept():
    """Imports go down, the core is pure, HTTP stops at api, only engine/state touches RocksDB."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_every_package_is_under_contract():
    """A package folder that import-linter does not know would be free of every rule."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    known = set(config["tool"]["importlinter"]["root_packages"])
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert set() == found - known
