"""Which modules are compiled, and which stay as they are?"""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = """
[tool.strata.compile]
modules = ["core/**/*.py", "more/one.py"]
except = ["core/not.py"]
kernels = ["core/deep/sums.c"]
"""


@pytest.fixture(scope="module")
def compiling():
    """The script, loaded by its path."""
    path = ROOT / "scripts" / "compiling.py"
    spec = importlib.util.spec_from_file_location("scripts_compiling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """A project with modules of every sort."""
    texts = {
        "core/work.py": '"""Work."""\n',
        "core/deep/work.py": "import msgspec\n\nreplace = msgspec.structs.replace\n",
        "core/not.py": '"""Left out."""\n',
        "core/empty.py": "\n",
        "core/rows.py": "class Row(msgspec.Struct, frozen=True):\n    at: int\n",
        "core/inner.py": "def make():\n    class Row(Struct): ...\n    return Row\n",
        "core/long.py": "class Row(\n    msgspec.Struct, frozen=True\n):\n    at: int\n",
        "more/one.py": "X = 1\n",
        "more/two.py": "X = 2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    return tmp_path


def test_modules_with_structs_stay_as_they_are(compiling, project):
    """What is named is compiled, but for what is left out, has nothing in it, or defines a struct.

    A struct is one wherever it stands, and on however many lines its bases are written.
    """
    assert ["core/deep/work.py", "core/work.py", "more/one.py"] == compiling.wanted(project)


def test_the_logic_of_the_projectors_is_compiled(compiling):
    """Structs stand apart from the logic: no module of these is skipped for their sake."""
    logic = (
        *("beliefs/desk", "beliefs/settle", "control/__init__", "derives/__init__"),
        *("entities/__init__", "episodes/grouping", "episodes/signs", "facts/claims", "fold"),
        *("forgets/__init__", "overlay", "records", "text/__init__", "text/dates"),
        *("text/predicates", "text/speakers", "text/terms", "understanding/ledger"),
    )
    wanted = compiling.wanted(ROOT)

    assert [] == [name for name in logic if f"projectors/{name}.py" not in wanted]
    assert "schemas/times.py" in wanted


def test_what_is_c_already_is_a_module_named_after_its_file(compiling, project):
    """A kernel stands where a module of Python would."""
    assert [("core.deep.sums", ["core/deep/sums.c"])] == [
        (one.name, one.sources) for one in compiling.kernels(project)
    ]


def test_a_kernel_has_its_types_beside_it(compiling):
    """A checker reads C as little as a reader who only wants to call it."""
    named = [source for one in compiling.kernels(ROOT) for source in one.sources]

    assert named
    assert all((ROOT / one).with_suffix(".pyi").is_file() for one in named)
