"""Is the house tidy?  Rules of style that no linter knows, checked on the text of the code.

Each rule is a function from a parsed module to complaints; each is tried on a planted offence too,
so that a rule that has gone blind is noticed.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("schemas", "projectors", "engine", "api", "bench")

CODE = (*PACKAGES, "sdk", "examples")
"""Where our code is: the packages of the server, and the client, a distribution of its own."""

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600
PARAMETERS_MAX = 7

BROAD_EXCEPTS: dict[str, str] = {
    "api/bodies.py": "thrown on into the coroutine that was waiting, which raises it again",
    "engine/describing.py": "a document that cannot be made is counted in health and holds up none",
    "engine/jobs.py": "the job's own row says what went wrong, and a metric counts it",
    "engine/work/worker.py": "the owner is told, counts it, and shows it when it has had enough",
    "engine/commit.py": "a bug in one proposal fails that caller with INTERNAL, not the batch",
    "engine/reading.py": "the entry is read again where it is folded, fails there and is parked",
    "projectors/fold.py": "becomes ProjectorFailed with the entry named; the daemon parks it",
}
"""Who may catch everything: path → why, and how it becomes visible. An unused line is an error."""

PRINTERS = ("api/cli/", "bench/", "examples/")
"""Where writing to the terminal is the work."""

CLOCKS = ("engine/clock.py", "bench/", "sdk/strata_client/memory.py")
"""Who may read the wall clock and draw ids: the one clock, what measures, and the client, which
says when an experience was observed."""

VERBS = (
    "engine/admin.py",
    "engine/answer.py",
    "engine/auditing.py",
    "engine/backlog.py",
    "engine/blobs.py",
    "engine/capture.py",
    "engine/erase.py",
    "engine/forget.py",
    "engine/identity.py",
    "engine/layers/beliefs.py",
    "engine/layers/entities.py",
    "engine/layers/episodes.py",
    "engine/layers/facts.py",
    "engine/layers/reasons.py",
    "engine/layers/synthesis.py",
    "engine/layers/understanding.py",
    "engine/metrics.py",
    "engine/phrases.py",
    "engine/read.py",
    "engine/recall/__init__.py",
    "engine/rollback.py",
    "engine/rules.py",
    "engine/scopes.py",
    "engine/surface.py",
    "engine/pruning.py",
    "engine/exports.py",
    "engine/imports.py",
    "engine/vocabularies.py",
    "engine/watch.py",
)
"""The modules of verbs, there or to come: `verb(engine, caller, request)`, policy asked first."""

NOT_VERBS: dict[str, str] = {
    "engine/layers/lookup.py": "finds a record for a verb, and asks about the scope it lives in",
    "engine/layers/pages.py": "walks a layer for a verb that has asked",
    "engine/policy.py": "it is what the verbs ask",
    "engine/previews.py": "verbs keep and find previews with it, and have asked",
    "engine/redaction.py": "carries out what a verb has written down, and has asked for",
    "engine/intake.py": "verbs keep bytes with it, and have asked",
    "engine/jobs.py": "verbs begin and end jobs with it, and have asked",
    "engine/sources.py": "a job reads with it what its verb has asked for",
    "engine/reach.py": "finds the scopes of a view, and asks about each",
    "engine/recall/begin.py": "plans a recall for a verb that has asked, and asks for the rest",
}
"""Modules with public functions that begin `engine, caller` and are no verbs: path → why."""

Rule = Callable[[ast.Module], Iterator[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> list[str]:
    """The Python files under these folders, as paths from the root."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    )


OURS = modules(*CODE)
TESTS = modules("tests")


def tree_of(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def parameters(function: Function) -> list[str]:
    """The names a caller has to think of: all but `self` and `cls`."""
    args = function.args
    named = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    if named[:1] in (["self"], ["cls"]):
        named = named[1:]
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return named + [arg.arg for arg in (*args.kwonlyargs, *rest)]


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of names, with whatever it hangs from left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


# --- the rules ---------------------------------------------------------------------------------


def no_module_docstring(tree: ast.Module) -> Iterator[str]:
    if not (ast.get_docstring(tree) or "").strip():
        yield "line 1: a module opens with a docstring: the question it answers"


def long_functions(tree: ast.Module) -> Iterator[str]:
    for function in functions(tree):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES_MAX:
            yield f"line {function.lineno}: {function.name} has {length} lines"


def many_parameters(tree: ast.Module) -> Iterator[str]:
    for function in functions(tree):
        count = len(parameters(function))
        if count > PARAMETERS_MAX:
            yield f"line {function.lineno}: {function.name} has {count} parameters"


def clock_reads(tree: ast.Module) -> Iterator[str]:
    """Reads of the wall clock and random ids; monotonic time measures and is free to use."""
    attributes = {"utcnow", "time_ns", "uuid1", "uuid4"}
    calls = {"datetime.now", "datetime.today", "date.today", "time.time"}
    imports = {"time": {"time", "time_ns"}, "uuid": {"uuid1", "uuid4"}}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            if node.attr in attributes or ".".join(name.split(".")[-2:]) in calls:
                yield f"line {node.lineno}: {name}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in imports.get(node.module or "", ()):
                    yield f"line {node.lineno}: from {node.module} import {alias.name}"


def broad_excepts(tree: ast.Module) -> Iterator[str]:
    """Handlers that catch everything and keep it; one that ends in a bare `raise` does not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            last = node.body[-1]
            travels = isinstance(last, ast.Raise) and last.exc is None
            if not travels and (node.type is None or catches_all(node.type)):
                yield f"line {node.lineno}: a broad except"
        elif (
            isinstance(node, ast.Call)
            and dotted(node.func).split(".")[-1] == "suppress"
            and any(catches_all(argument) for argument in node.args)
        ):
            yield f"line {node.lineno}: a broad suppress"


def catches_all(node: ast.expr) -> bool:
    kinds = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(dotted(kind).split(".")[-1] in {"Exception", "BaseException"} for kind in kinds)


def prints(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "print":
            yield f"line {node.lineno}: print("


def unasked_policy(tree: ast.Module) -> Iterator[str]:
    """Verbs whose first statement does not ask policy."""
    for function in verbs(tree):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        first = body[0] if body else None
        asks = isinstance(first, ast.Expr | ast.Assign | ast.AnnAssign) and any(
            isinstance(node, ast.Call)
            and (
                "policy" in dotted(node.func).split(".")[:-1]
                or dotted(node.func).endswith("require")
            )
            for node in ast.walk(first)
        )
        if not asks:
            yield f"line {function.lineno}: {function.name} does not ask policy first"


def verbs(tree: ast.Module) -> list[Function]:
    return [
        node
        for node in tree.body
        if isinstance(node, Function)
        and not node.name.startswith("_")
        and parameters(node)[:2] == ["engine", "caller"]
    ]


def mocks(tree: ast.Module) -> Iterator[str]:
    """Mock libraries, and patches of our own code; a foreign module may be patched: a full disk."""
    foreign = foreign_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names}
            sources = {getattr(node, "module", None) or "", *names}
            if any(source.split(".")[-1] in {"mock", "pytest_mock"} for source in sources):
                yield f"line {node.lineno}: a mock library; use the in-memory twin"
        elif isinstance(node, Function) and "mocker" in parameters(node):
            yield f"line {node.lineno}: the fixture mocker"
        elif isinstance(node, ast.Call) and dotted(node.func) in PATCHES and node.args:
            target = node.args[0]
            literal = target.value if isinstance(target, ast.Constant) else None
            root = str(literal if literal is not None else dotted(target)).split(".")[0]
            if root in (*PACKAGES, "strata_client") or (literal is None and root not in foreign):
                yield f"line {node.lineno}: a patch of our own code; pass another part instead"


PATCHES = ("monkeypatch.setattr", "monkeypatch.delattr")


def foreign_names(tree: ast.Module) -> set[str]:
    """The names that this module's imports bind to code that is not ours."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] not in (*PACKAGES, "strata_client"):
                    bound.add(alias.asname or alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if (node.module or "").split(".")[0] in (*PACKAGES, "strata_client", "tests"):
                continue
            bound.update(alias.asname or alias.name for alias in node.names)
    return bound


def silent_tests(tree: ast.Module) -> Iterator[str]:
    for function in functions(tree):
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"line {function.lineno}: {function.name} does not say its rule in a docstring"


# --- the code keeps them -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", [no_module_docstring, long_functions, many_parameters], ids=lambda rule: rule.__name__
)
def test_every_module(rule):
    """A module has a docstring, its functions have at most 70 lines and 7 parameters."""
    complaints = [f"{path}: {text}" for path in OURS for text in rule(tree_of(path))]

    assert [] == complaints


def test_module_length():
    """A module has at most 600 lines; the one table of limits is as long as there are limits."""
    lengths = {
        path: len((ROOT / path).read_text(encoding="utf-8").splitlines())
        for path in OURS
        if path != "schemas/limits.py"
    }

    assert {} == {path: n for path, n in lengths.items() if n > MODULE_LINES_MAX}


def test_one_clock():
    """Only engine/clock.py reads the wall clock; time and ids are arguments everywhere else."""
    complaints = [
        f"{path}: {text}"
        for path in OURS
        if not path.startswith(CLOCKS)
        for text in clock_reads(tree_of(path))
    ]

    assert [] == complaints


def test_broad_excepts_are_listed():
    """Catching everything needs a line with a reason, and a line needs something it excuses."""
    found = {path: list(broad_excepts(tree_of(path))) for path in OURS}
    broad = {path: texts for path, texts in found.items() if texts}

    assert {} == {path: texts for path, texts in broad.items() if path not in BROAD_EXCEPTS}
    assert set() == set(BROAD_EXCEPTS) - set(broad)


def test_printing_is_for_the_command_line():
    """The server logs; only the command line and the benchmarks print."""
    complaints = [
        f"{path}: {text}"
        for path in OURS
        if not path.startswith(PRINTERS)
        for text in prints(tree_of(path))
    ]

    assert [] == complaints


def test_verbs_ask_policy_first():
    """The first statement of a verb asks policy whether this caller may."""
    there = [path for path in VERBS if path in OURS]
    complaints = [f"{path}: {text}" for path in there for text in unasked_policy(tree_of(path))]

    assert [] == complaints


def test_verbs_are_listed():
    """No verb escapes the rule by living in a module nobody listed."""
    unlisted = [
        path
        for path in OURS
        if path.startswith("engine/") and path not in (*VERBS, *NOT_VERBS) and verbs(tree_of(path))
    ]

    assert [] == unlisted


def test_no_mocks():
    """Tests use the in-memory twins; a mock agrees with whatever it is told."""
    complaints = [f"{path}: {text}" for path in TESTS for text in mocks(tree_of(path))]

    assert [] == complaints


def test_tests_say_their_rule():
    """The name of a test is the case, its docstring the rule."""
    complaints = [f"{path}: {text}" for path in TESTS for text in silent_tests(tree_of(path))]

    assert [] == complaints


# --- the rules can see -------------------------------------------------------------------------

LONG = "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX

OFFENCES = [
    (no_module_docstring, "import os"),
    (no_module_docstring, '""'),
    (long_functions, LONG),
    (many_parameters, "def f(a, b, c, d, /, e, f, *, g, h): ..."),
    (many_parameters, "class A:\n    async def f(self, a, b, c, d, e, f, g, **h): ..."),
    (clock_reads, "now = datetime.now(UTC)"),
    (clock_reads, "now = dt.datetime.now(dt.UTC)"),
    (clock_reads, "field(default_factory=datetime.utcnow)"),
    (clock_reads, "start = time.time()"),
    (clock_reads, "from time import time_ns as stamp"),
    (clock_reads, "key = uuid.uuid4().hex"),
    (broad_excepts, "try: f()\nexcept: g()"),
    (broad_excepts, "try: f()\nexcept Exception: g()"),
    (broad_excepts, "try: f()\nexcept (KeyError, BaseException) as e: raise A from e"),
    (broad_excepts, "with contextlib.suppress(Exception): f()"),
    (prints, "print('here')"),
    (unasked_policy, "def verb(engine, caller, request):\n    'Doc.'\n    return 1"),
    (unasked_policy, "async def verb(engine, caller):\n    if x:\n        policy.require(caller)"),
    (mocks, "from unittest.mock import patch"),
    (mocks, "from unittest import mock"),
    (mocks, "import mock"),
    (mocks, "def test_x(mocker): ..."),
    (mocks, "from engine import clock\nmonkeypatch.setattr(clock, 'now', f)"),
    (mocks, "monkeypatch.setattr('engine.clock.now', f)"),
    (mocks, "def test_x(store, monkeypatch):\n    monkeypatch.setattr(store.kv, 'write', f)"),
    (silent_tests, "def test_x(): ..."),
    (silent_tests, "class TestX:\n    async def test_x(self): ..."),
]

INNOCENT = [
    (no_module_docstring, '"""What is this?"""'),
    (long_functions, LONG.removesuffix("    x = 1\n")),
    (many_parameters, "class A:\n    def f(self, a, b, c, d, e, f, g): ..."),
    (clock_reads, "clock.now(); time.monotonic_ns(); loop.time(); from_now = datetime.max"),
    (broad_excepts, "try: f()\nexcept KeyError: g()"),
    (broad_excepts, "try: f()\nexcept BaseException:\n    g()\n    raise"),
    (prints, "console.print('here')"),
    (unasked_policy, "def verb(engine, caller, r):\n    'Doc.'\n    policy.require(caller)"),
    (unasked_policy, "def verb(engine, caller, r):\n    seen = engine.policy.allow(caller, r)"),
    (unasked_policy, "async def verb(engine, caller):\n    require(caller, 'scope.write')"),
    (unasked_policy, "def _helper(engine, caller): ...\ndef pure(entry, view): ..."),
    (mocks, "import os\nmonkeypatch.setattr(os, 'fsync', f)\nmonkeypatch.setenv('A', 'b')"),
    (mocks, "monkeypatch.setattr('os.fsync', f)"),
    (silent_tests, "def test_x():\n    '''The rule.'''\ndef helper(): ..."),
]


@pytest.mark.parametrize("rule, source", OFFENCES)
def test_rule_sees_an_offence(rule: Rule, source: str):
    """A rule complains about a planted offence, so it has not gone blind."""
    complaints = list(rule(ast.parse(source)))

    assert complaints


@pytest.mark.parametrize("rule, source", INNOCENT)
def test_rule_leaves_the_innocent(rule: Rule, source: str):
    """A rule says nothing about code that keeps it."""
    complaints = list(rule(ast.parse(source)))

    assert [] == complaints
