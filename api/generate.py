"""Who writes the client's shapes?  Run by `scripts/client`; a test tells when it should have been.

Whatever an endpoint answers becomes a struct of `strata_client.models`, whatever it takes a typed
dictionary of `strata_client.asks`, and every error a class of `strata_client.codes`. A client
meets servers that are newer than itself, so its structs ask less than ours: what is one of a few
words here is any word there, and what may be left out has a default.
"""

import re
import types
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UnsetType

from api.endpoint import Endpoint, Nothing
from api.v1 import ENDPOINTS
from schemas import errors
from schemas.layers import Belief, Concept, Episode, Event, Fact
from schemas.pack import Layers
from schemas.temporal import Moment

PACKAGE: Final = Path(__file__).resolve().parent.parent / "sdk" / "strata_client"
Struct = type[msgspec.Struct]

RENAMED: Final = {
    ("schemas.jobs", "Problem"): "JobProblem",
    ("schemas.temporal", "Resolution"): "PhraseResolution",
    ("api.v1.lifecycle", "PageQuery"): "LifecycleQuery",
    ("api.v1.erasures", "PageQuery"): "ManifestQuery",
}
"""Names that two modules have for different things."""

GIVEN: Final[dict[str, frozenset[str]]] = {
    "Envelope": frozenset({"content"}),
    "BulkRequest": frozenset({"items"}),
    "RecallRequest": frozenset({"query", "stream"}),
    "AnswerRequest": frozenset({"question", "stream"}),
    "ImportRequest": frozenset({"source"}),
    "TimelineQuery": frozenset({"subject", "predicate"}),
    "WhyQuery": frozenset({"belief_id"}),
    "HistoryQuery": frozenset({"belief_id"}),
    "RegisterRequest": frozenset({"path"}),
    "VocabularyRequest": frozenset({"name"}),
    "VocabularyUpdate": frozenset({"name"}),
    "PhraseRequest": frozenset({"name"}),
}
"""Fields that the client's methods have parameters of their own for."""

WINDOW: Final = "str | tuple[str | datetime | None, str | datetime | None] | None"
PARAMETERS: Final = {
    "valid_during": WINDOW,
    "recorded_during": WINDOW,
    "overlapping": WINDOW,
    "labels": "str | list[str] | None",
    "events": "str | list[str] | None",
}
"""Parameters of a query that the client also takes as pairs and lists."""

ITEMS: Final[dict[str, Struct]] = {
    "events": Event,
    "episodes": Episode,
    "facts": Fact,
    "beliefs": Belief,
    "understanding": Concept,
}
"""The record of each layer, as a pack holds it."""

PLACE: Final = {
    "ranked_position": "int = 0",
    "score": "float = 0.0",
    "tokens": "int | None = None",
    "superseded": "bool = False",
    "stale": "bool = False",
    "low_trust": "bool = False",
    "trust": "str | None = None",
    "source": "Any = None",
    "excerpt": "dict[str, Any] | None = None",
}
"""What a pack adds to a record."""


def name_of(struct: Struct) -> str:
    """A struct's name in the client."""
    return RENAMED.get((struct.__module__, struct.__name__), struct.__name__)


def structs_in(kind: Any) -> Iterator[Struct]:
    """The structs that an annotation names, itself included."""
    if isinstance(kind, tuple):
        for one in kind:
            yield from structs_in(one)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    else:
        for argument in get_args(kind):
            yield from structs_in(argument)


def reached(roots: list[Any]) -> list[Struct]:
    """Every struct on the way from the roots, those that others need first."""
    found: dict[Struct, None] = {}

    def visit(struct: Struct, above: tuple[Struct, ...] = ()) -> None:
        if struct in found or struct in above:
            return
        for kind in get_type_hints(struct, include_extras=True).values():
            for inner in structs_in(kind):
                visit(inner, (*above, struct))
        found[struct] = None

    for root in roots:
        for struct in structs_in(root):
            visit(struct)
    return list(found)


# ── how a type reads ─────────────────────────────────────────────────────────────────────────


def spelled(kind: Any, *, asked: bool) -> str:
    """An annotation as source. What is asked says its words; what is answered takes any."""
    if kind == Moment or kind is datetime:
        return "str | datetime" if asked else ("str" if kind == Moment else "datetime")
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return spelled(arguments[0], asked=asked)
    if origin is Literal:
        return _literal(kind, asked=asked)
    if origin in (types.UnionType, Union):
        return _union(arguments, asked=asked)
    if origin in (list, tuple):
        items = [one for one in arguments if one is not Ellipsis]
        return f"list[{spelled(items[0], asked=asked)}]"
    if origin is dict:
        return f"dict[str, {spelled(arguments[1], asked=asked)}]"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return name_of(kind)
    return {UnsetType: "None", type(None): "None", Any: "Any"}.get(kind) or str(kind.__name__)


def _literal(kind: Any, *, asked: bool) -> str:
    words = ", ".join(f'"{word}"' for word in _words(kind))
    return f"Literal[{words}]" if asked else "str"


def _words(kind: Any) -> Iterator[Any]:
    for word in get_args(kind):
        if get_origin(word) is Literal:
            yield from _words(word)
        else:
            yield word


def _union(arguments: tuple[Any, ...], *, asked: bool) -> str:
    parts: dict[str, None] = {}
    for one in arguments:
        parts.update(dict.fromkeys(spelled(one, asked=asked).split(" | ")))
    if "Any" in parts:
        return "Any"
    ends_in_none = parts.pop("None", "absent") is None
    return " | ".join([*parts, "None"] if ends_in_none else parts)


# ── answers: structs ─────────────────────────────────────────────────────────────────────────


def struct_source(struct: Struct) -> str:
    """One struct of the models."""
    config = struct.__struct_config__
    tag = ""
    if config.tag is not None:
        tag = f', tag_field="{config.tag_field}", tag="{config.tag}"'
    lines = [f"class {name_of(struct)}(Struct, frozen=True, kw_only=True{tag}):"]
    lines.append(f'    """{_summary(struct)}"""\n')
    if tag:
        lines.append(f'    {config.tag_field}: ClassVar[str] = "{config.tag}"')
    hints = get_type_hints(struct, include_extras=True)
    fields = msgspec.structs.fields(struct)
    lines += [f"    {field_source(one, hints[one.name])}" for one in fields]
    return "\n".join(lines)


def field_source(field: Any, kind: Any) -> str:
    """One field, with what it is when the server leaves it out."""
    said = _item_type(field.name, kind) or spelled(kind, asked=False)
    default = _default(field, said)
    if default == "None" and said.startswith("list[") and msgspec.UNSET is field.default:
        said, default = said.removesuffix(" | None"), "[]"
    if field.encode_name != field.name:
        inside = f"default={default}, " if default is not None else ""
        return f'{field.name}: {said} = msgspec.field({inside}name="{field.encode_name}")'
    return f"{field.name}: {said}" + ("" if default is None else f" = {default}")


def _item_type(name: str, kind: Any) -> str | None:
    """The typed items of a pack, which the server keeps as plain objects."""
    is_item = kind == get_type_hints(Layers, include_extras=True).get(name)
    return f"list[{ITEMS[name].__name__}Item]" if is_item and name in ITEMS else None


def _default(field: Any, said: str) -> str | None:
    default, factory = field.default, field.default_factory
    if default is NODEFAULT and factory is NODEFAULT:
        return None
    value = factory() if default is NODEFAULT else default
    if value is msgspec.UNSET or value is None:
        return "None"
    if isinstance(value, msgspec.Struct):
        return f"{said}()"
    if isinstance(value, str):
        return f'"{value}"'
    return "[]" if isinstance(value, tuple) and not value else repr(value)


def item_source(layer: str, struct: Struct) -> str:
    """A record with its place in a pack; with `exclude_content` most of it is left out."""
    lines = [f"class {struct.__name__}Item(Struct, frozen=True, kw_only=True):"]
    lines.append(f'    """One of the {layer} of a pack: its record, and its place there."""\n')
    lines.append("    id: str")
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        if field.name == "id" or field.name in PLACE:
            continue
        said = _union((hints[field.name], type(None)), asked=False)
        name = field.encode_name
        default = "None" if name == field.name else f'msgspec.field(default=None, name="{name}")'
        lines.append(f"    {field.name}: {said} = {default}")
    lines += [f"    {name}: {said}" for name, said in PLACE.items()]
    return "\n".join(lines)


# ── requests: typed dictionaries ─────────────────────────────────────────────────────────────


def dict_source(struct: Struct) -> str:
    """One typed dictionary of the asks; a key that must be there is marked."""
    given = GIVEN.get(struct.__name__, frozenset())
    hints = get_type_hints(struct, include_extras=True)
    rows = []
    if struct.__struct_config__.tag is not None:
        config = struct.__struct_config__
        rows.append((str(config.tag_field), f'Required[Literal["{config.tag}"]]'))
    for field in msgspec.structs.fields(struct):
        if field.name in given:
            continue
        said = _said(field, spelled(hints[field.name], asked=True))
        if struct.__name__.endswith("Query"):
            said = PARAMETERS.get(field.name, said)
        rows.append((field.encode_name, said))
    if any(name == "from" for name, _ in rows):
        inside = ", ".join(f'"{name}": {said}' for name, said in rows)
        named = name_of(struct)
        made = f'{named} = TypedDict("{named}", {{{inside}}}, total=False)'
        return f'{made}\n"""{_summary(struct)}"""'
    lines = [f"class {name_of(struct)}(TypedDict, total=False):"]
    lines.append(f'    """{_summary(struct)}"""\n')
    lines += [f"    {name}: {said}" for name, said in rows]
    return "\n".join(lines)


def _said(field: Any, said: str) -> str:
    """A client has a scope, a key and a moment for who names none."""
    defaulted = field.name in ("scope", "idempotency_key", "observed_at", "modality", "context")
    return f"Required[{said}]" if field.required and not defaulted else said


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _summary(thing: Any) -> str:
    """Its first line, without the sections of a text that a user of the client has not got."""
    first = (thing.__doc__ or thing.__name__).strip().split("\n")[0]
    return re.sub(r" ?\((?:DESIGN|001|ADR)[^)]*\)", "", first)


def home(struct: Struct) -> str:
    """The module a struct has in the client: that of its namesake here."""
    return struct.__module__.rpartition(".")[2]


def _module(title: str, parts: list[str], imports: list[str]) -> str:
    head = "\n".join([f'"""{title}"""', "", *imports]) if imports else f'"""{title}"""'
    return head + "\n\n\n" + "\n\n\n".join(parts) + "\n"


def _imports(text: str, candidates: list[tuple[str, str]]) -> list[str]:
    """The import lines of the names that a text uses."""
    words = set(re.findall(r"\w+", text))
    return [line for name, line in candidates if name in words]


def packages() -> dict[str, str]:
    """Every generated file: its path in the client, and its text before it is formatted."""
    return {
        **_shapes("models", _answers(), struct_source),
        **_shapes("asks", _requests(), dict_source),
        "codes.py": codes_source(),
    }


def _answers() -> list[Struct]:
    return reached([endpoint.response for endpoint in ENDPOINTS])


def _requests() -> list[Struct]:
    def taken(endpoint: Endpoint) -> Iterator[Any]:
        if endpoint.query is not Nothing:
            yield endpoint.query
        yield endpoint.body

    roots = [kind for endpoint in ENDPOINTS for kind in taken(endpoint) if kind is not None]
    return [struct for struct in reached(roots) if struct.__name__ != "Empty"]


_COMMON: Final = [
    ("datetime", "from datetime import datetime"),
    ("Any", "from typing import Any"),
    ("ClassVar", "from typing import ClassVar"),
    ("Literal", "from typing import Literal"),
    ("Required", "from typing import Required"),
    ("TypedDict", "from typing import TypedDict"),
    ("msgspec", "import msgspec"),
    ("Struct", "from msgspec import Struct"),
]


def _shapes(folder: str, structs: list[Struct], source: Callable[[Struct], str]) -> dict[str, str]:
    homes: dict[str, list[str]] = {}
    lives: dict[str, str] = {}
    for struct in structs:
        homes.setdefault(home(struct), []).append(source(struct))
        lives[name_of(struct)] = home(struct)
    if folder == "models":
        items = [item_source(layer, struct) for layer, struct in ITEMS.items()]
        homes["items"] = items
        lives |= {f"{struct.__name__}Item": "items" for struct in ITEMS.values()}
    files = {}
    for module, parts in homes.items():
        text = "\n".join(parts)
        others = [
            (name, f"from strata_client.{folder}.{place} import {name}")
            for name, place in lives.items()
            if place != module
        ]
        title = f"Written by scripts/client: {folder} of {module}."
        imports = _imports(text, [*_COMMON, *others])
        files[f"{folder}/{module}.py"] = _module(title, parts, imports)
    files[f"{folder}/__init__.py"] = _index(folder, lives)
    return files


def _index(folder: str, lives: dict[str, str]) -> str:
    said = {"models": "What does the server answer?", "asks": "What may be asked of it?"}[folder]
    lines = [f'"""{said}  Written by scripts/client."""', ""]
    lines += [f"from strata_client.{folder}.{place} import {name}" for name, place in lives.items()]
    names = ", ".join(f'"{name}"' for name in sorted(lives))
    return "\n".join([*lines, "", f"__all__ = [{names}]"]) + "\n"


def codes_source() -> str:
    """A class an error code, under the group that says what to do about it."""
    groups = set(errors.REMEDIES)
    parts, names = [], []
    for kind in _error_classes(errors.EngineError):
        if kind in groups or kind is errors.EngineError:
            continue
        parent = next(base for base in kind.__mro__[1:] if base in groups)
        names.append((kind.code, kind.__name__))
        parts.append(f'class {kind.__name__}({parent.__name__}):\n    """{_summary(kind)}"""\n')
    table = "\n".join(f'    "{code}": {name},' for code, name in names)
    parts.append(
        f"BY_CODE: Final[dict[str, type[ApiError]]] = {{\n{table}\n}}\n"
        '"""The class of each code; a code that is not here has the class of its status."""'
    )
    leaves = {errors.RateLimited, errors.Internal}
    parents = sorted({"ApiError", *(group.__name__ for group in groups - leaves)})
    imports = ["from typing import Final", ""]
    imports += [f"from strata_client.errors import {name}" for name in parents]
    return _module("Which class has which error code?  Written by scripts/client.", parts, imports)


def _error_classes(kind: type[errors.EngineError]) -> Iterator[type[errors.EngineError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:  # other surfaces have classes of their own
            yield from _error_classes(child)


def main() -> None:
    """Write every file and remove those that nothing has any more."""
    wanted = packages()
    for folder in ("models", "asks"):
        (PACKAGE / folder).mkdir(exist_ok=True)
        for stale in (PACKAGE / folder).glob("*.py"):
            if f"{folder}/{stale.name}" not in wanted:
                stale.unlink()
    for path, text in wanted.items():
        (PACKAGE / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
