"""What is compiled, and into what?  mypyc makes C of the modules that `pyproject.toml` names, and
what is C already is compiled with them.

The four packages are copied beside the environment and compiled there: an edited source is never
hidden by an older binary, since the folder is named after all that it was made from. Modules that
define msgspec structs stay as they are: mypyc knows nothing of the metaclass that reads them.
"""

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("schemas", "projectors", "engine", "api")
_STRUCT: Final = re.compile(r"^\s*class \w+\([^)]*\bStruct\b", re.MULTILINE)
_OPTIMISED: Final = "1"
"""More takes twice as long to compile, and the code is no faster."""
_KEPT: Final = 3
_FLAGS: Final = (
    "-fno-semantic-interposition",  # nobody puts another function in the place of one of these
    "-ffp-contract=off",  # numbers come out as Python's do, where a processor could fuse two steps
)


def _asked(root: Path) -> dict[str, Any]:
    named: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]
    asked: dict[str, Any] = named["strata"]["compile"]
    return asked


def wanted(root: Path) -> list[str]:
    """The modules to compile, as paths in the project."""
    asked = _asked(root)
    paths = {
        path.relative_to(root)
        for pattern in asked["modules"]
        for path in root.glob(pattern)
        if path.suffix == ".py"
    }
    left_out = set(asked["except"])
    return [
        name for name in sorted(map(str, paths)) if name not in left_out and can_be(root / name)
    ]


class Kernel(NamedTuple):
    """A module that is C already, as its compiler wants to know it (ADR 0045)."""

    name: str
    sources: list[str]
    include_dirs: tuple[str, ...] = ()
    extra_compile_args: tuple[str, ...] = ("-O3",)


def kernels(root: Path) -> list[Kernel]:
    """What is C already: modules named after their files."""
    named: list[str] = _asked(root)["kernels"]
    return [Kernel(one.removesuffix(".c").replace("/", "."), [one]) for one in named]


def kernels_into(folder: Path) -> None:
    """Those alone, and nothing else."""
    for kernel in kernels(ROOT):
        for source in kernel.sources:
            (folder / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, folder / source)
    _build(folder, kernels(ROOT))


def can_be(path: Path) -> bool:
    """Whether mypyc can compile a module: there is something in it, and no struct."""
    text = path.read_text("utf-8")
    return bool(text.strip()) and _STRUCT.search(text) is None


def digest() -> str:
    """What a compiled folder follows from: every source, the tools and the interpreter."""
    found = hashlib.sha256()
    for part in (sys.version, version("mypy"), sysconfig.get_platform(), str(_compiler())):
        found.update(part.encode() + b"\0")
    sources = (
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*"))
        if path.suffix in (".py", ".c")
    )
    for path in (ROOT / "pyproject.toml", Path(__file__), *sources):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def compile_into(folder: Path) -> None:
    """A copy of the packages in `folder`, with what is to be compiled beside its source."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    built = folder / "build"
    _say("reading")
    _build(folder, [*_translated(folder, wanted(ROOT), built), *kernels(ROOT)])
    shutil.rmtree(built)
    shutil.rmtree(folder / ".mypy_cache", ignore_errors=True)


def _translated(folder: Path, names: list[str], built: Path) -> list[Any]:
    """C files, by mypyc; types are checked by scripts/check, and read here."""
    from mypyc.build import mypycify  # noqa: PLC0415 - only who compiles needs it

    options = ["--config-file=", "--ignore-missing-imports", "--no-error-summary"]
    before = Path.cwd()
    os.chdir(folder)
    os.environ["MYPYPATH"] = str(ROOT / "sdk")
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            found: list[Any] = mypycify(
                [*options, *names],
                opt_level=_OPTIMISED,
                debug_level="0",
                multi_file=True,
                target_dir=str(built),
                group_name="strata",
            )
    except BaseException:
        print(said.getvalue(), file=sys.stderr)
        raise
    finally:
        os.chdir(before)
    return found


def _build(folder: Path, extensions: list[Any]) -> None:
    """Objects and libraries, by all cores: setuptools would take one source after another."""
    objects = {one: f"{one}.o" for extension in extensions for one in extension.sources}
    flags = {one: extension for extension in extensions for one in extension.sources}
    done = 0
    # Before there are threads: what it knows is read when it is first asked.
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda one: _object(one, objects[one], flags[one], folder), objects):
            done += 1
            _say(f"compiling {done} of {len(objects)}")
    for extension in extensions:
        target = folder / (extension.name.replace(".", "/") + suffix)
        linker = sysconfig.get_config_var("LDSHARED").split()
        made = [objects[one] for one in extension.sources]
        _run([*linker, *made, "-o", str(target)], folder)
    _say("")


def _object(source: str, made: str, extension: Any, folder: Path) -> None:
    flags = sysconfig.get_config_var("CFLAGS").split()
    places = [
        *extension.include_dirs,
        sysconfig.get_path("include"),
        sysconfig.get_path("platinclude"),
    ]
    named = [f"-I{place}" for place in dict.fromkeys(places)]
    own = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
    _run([*_compiler(), *flags, "-fPIC", *own, *_FLAGS, *named, "-c", source, "-o", made], folder)


def _compiler() -> list[str]:
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return str(named).split()


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 - the compiler that Python was made with
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])} … failed:\n{done.stderr[-4000:]}")


def _say(what: str) -> None:
    """One line that is written over, where there is somebody to read it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[Kscripts/compile: {what}" if what else "\r\x1b[K", end="", file=sys.stderr)


def main(place: Path, *, may_make: bool) -> str:
    """The folder, made if it is not there and may be; nothing without a compiler."""
    if shutil.which(_compiler()[0]) is None:
        print("scripts/compile: no C compiler here; Strata runs as plain Python", file=sys.stderr)
        return ""
    folder = place / digest()
    if folder.is_dir() or not may_make:
        return str(folder) if folder.is_dir() else ""
    count = len(wanted(ROOT))
    print(f"scripts/compile: {count} modules, a minute or two", file=sys.stderr)
    making = place / f"{folder.name}.{os.getpid()}"
    try:
        compile_into(making)
        _take_place(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return str(folder)


def _take_place(making: Path, folder: Path) -> None:
    """Whoever is first wins. A few older ones stay: a server may still run from one of them."""
    with contextlib.suppress(OSError):
        making.rename(folder)
    others = [other for other in folder.parent.iterdir() if not other.suffix]
    others.sort(key=lambda other: other.stat().st_mtime, reverse=True)
    for other in others[_KEPT:]:
        shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    print(main(Path(sys.argv[1]).resolve(), may_make="--ready" not in sys.argv[2:]))
