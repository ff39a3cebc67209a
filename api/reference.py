"""What do the reference pages say?  Markdown made from the tables that the code itself uses.

A page that is made from the code cannot fall behind it: `docs/hooks.py` hands these to the builder
of the site, and nothing of them is kept in the repository.
"""

import ast
import inspect
import itertools
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, get_origin, get_type_hints

import click
import msgspec

from api.cli import SECTIONS, main
from api.cli.exits import EXITS
from api.endpoint import Endpoint
from api.errors import render, status_of
from api.openapi import document
from api.surfaces import ALONE, Surface
from api.v1 import ENDPOINTS
from api.v1.problems import catalogue, kinds
from engine.policy import verdict
from engine.presets import PRESETS
from engine.settings import ENVIRONMENT, MEANING, load_settings
from schemas import limits
from schemas.lifecycle import STAGE_ORDER, LifecycleEvent
from schemas.policy import CAPABILITIES, OPERATOR_ONLY
from strata_client import Client
from strata_client.memory import Memory

_CITED: Final = re.compile(r" \(001 §[^)]*\)")
"""Sections of the contract: for who reads the code."""
_SAMPLE_REQUEST: Final = "req_01a1e3e8-303e-7e87-a1f2-c39a54df0ddd"
_SHARED: Final = ("lifecycle_id", "timestamp", "scope", "event_id", "sequence", "batch_id")


def pages() -> dict[str, str]:
    """Every page of the reference: its path under `docs/`, and its Markdown."""
    made = {
        "reference/http/index.md": _http_index(),
        "reference/http/shapes.md": _shapes(),
        "reference/surfaces/index.md": _surfaces(),
        "reference/python.md": _python(),
        "reference/settings.md": _settings(),
        "reference/limits.md": _limits(),
        "reference/capabilities.md": _capabilities(),
        "reference/lifecycle.md": _lifecycle(),
        "reference/command-line.md": _command_line(),
        "reference/errors/index.md": _errors(),
    }
    made |= {f"reference/http/{tag}.md": _resource(tag) for tag in _tags()}
    made |= {f"reference/surfaces/{one.name}.md": _surface(one) for one in ALONE.values()}
    made |= {f"reference/errors/{code}.md": _error(code) for code in catalogue()}
    return {uri: _CITED.sub("", text) for uri, text in made.items()}


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────


def _tag(endpoint: Endpoint) -> str:
    return endpoint.path.split("/")[2].partition(".")[0]


def _tags() -> list[str]:
    return list(dict.fromkeys(_tag(endpoint) for endpoint in ENDPOINTS))


def _plain_path(path: str) -> str:
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _anchor(method: str, path: str) -> str:
    return "-".join([method.lower(), *re.findall(r"[a-z0-9_]+", path.lower())])


def _http_index() -> str:
    lines = [
        "# HTTP",
        "",
        "Every endpoint of the route table; `GET /v1/openapi.json` says the same to machines.",
        (
            "*Stable* endpoints change only by addition, *beta* ones may change with a notice, "
            "*experimental* ones without; each answer says which in `X-Cortex-Stability`."
        ),
        "",
    ]
    for tag in _tags():
        lines += [f"## [{tag}]({tag}.md)", "", "| endpoint | | stability |", "|---|---|---|"]
        for endpoint in ENDPOINTS:
            if _tag(endpoint) == tag:
                path = _plain_path(endpoint.path)
                link = f"{tag}.md#{_anchor(endpoint.method, path)}"
                lines.append(
                    f"| [`{endpoint.method} {path}`]({link}) | {_cell(endpoint.summary)} "
                    f"| {endpoint.tier} |"
                )
        lines.append("")
    return "\n".join(lines)


def _resource(tag: str) -> str:
    paths = document(ENDPOINTS)["paths"]
    lines = [f"# /v1/{tag}", ""]
    for endpoint in ENDPOINTS:
        if _tag(endpoint) == tag:
            path = _plain_path(endpoint.path)
            operation = paths[path][endpoint.method.lower()]
            lines += [*_operation(endpoint, path, operation), ""]
    return "\n".join(lines)


def _operation(endpoint: Endpoint, path: str, operation: dict[str, Any]) -> list[str]:
    anchor = _anchor(endpoint.method, path)
    lines = [f"## {endpoint.method} {path} {{ #{anchor} }}", "", endpoint.summary, ""]
    facts = [f"Stability: {endpoint.tier}"]
    if endpoint.capability is not None:
        place = endpoint.capability.replace(".", "")
        facts.append(f"capability: [`{endpoint.capability}`](../capabilities.md#{place})")
    elif endpoint.is_open:
        facts.append("open: no token is asked for")
    lines += [" · ".join(facts), ""]
    if endpoint.is_experimental is not None:
        lines += [f"Experimental when: {endpoint.is_experimental.__doc__}", ""]
    lines += [*_parameters(operation), *_body(operation), *_answers(operation)]
    return lines


def _parameters(operation: dict[str, Any]) -> list[str]:
    shown = [one for one in operation["parameters"] if one["in"] != "header"]
    if not shown:
        return []
    lines = ["| parameter | in | type | |", "|---|---|---|---|"]
    for one in shown:
        need = "required" if one["required"] else _default(one["schema"])
        lines.append(f"| `{one['name']}` | {one['in']} | {_type(one['schema'])} | {need} |")
    return [*lines, ""]


def _body(operation: dict[str, Any]) -> list[str]:
    asked = operation.get("requestBody")
    if asked is None:
        return []
    kinds = {_type(one["schema"]) for one in asked["content"].values()}
    need = "" if asked["required"] else " (may be left out)"
    return [f"Body: {' or '.join(sorted(kinds))}{need}", ""]


def _answers(operation: dict[str, Any]) -> list[str]:
    lines = ["| status | |", "|---|---|"]
    for status, answer in operation["responses"].items():
        if int(status) < 400:
            kinds = {_type(one["schema"]) for one in answer.get("content", {}).values()}
            lines.append(f"| {status} | {' or '.join(sorted(kinds)) or 'nothing'} |")
        else:
            codes = answer["description"].split(", ")
            links = ", ".join(f"[`{code}`](../errors/{code}.md)" for code in codes)
            lines.append(f"| {status} | {links} |")
    return lines


def _shapes() -> str:
    lines = [
        "# Shapes",
        "",
        "Every shape that a body or an answer has, by its name.",
        "The same as JSON Schemas are in `schemas/json/` of the source.",
        "",
    ]
    for name, schema in sorted(document(ENDPOINTS)["components"]["schemas"].items()):
        lines += [f"## {name} {{ #{name.lower()} }}", ""]
        if "description" in schema:
            lines += [*inspect.cleandoc(schema["description"]).splitlines(), ""]
        required = schema.get("required", [])
        if schema.get("properties"):
            lines += ["| field | type | |", "|---|---|---|"]
        for field, kind in schema.get("properties", {}).items():
            need = "required" if field in required else _default(kind)
            lines.append(f"| `{field}` | {_type(kind)} | {need} |")
        if not schema.get("properties"):
            lines.append(_type(schema))
        lines.append("")
    return "\n".join(lines)


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema or schema["default"] in (None, [], {}):
        return ""
    return f"default `{_cell(json.dumps(schema['default']))}`"


def _type(schema: dict[str, Any]) -> str:
    """A schema in words that fit a cell of a table."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](shapes.md#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[several])))
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        many = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"list of {_type(schema.get('items', {}))}{many}"
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    said = []
    if "format" in schema:
        said.append(schema["format"])
    if "minimum" in schema or "maximum" in schema:
        said.append(f"{schema.get('minimum', '…')} to {schema.get('maximum', '…')}")
    if "maxLength" in schema:
        said.append(f"at most {schema['maxLength']} characters")
    return f" ({', '.join(said)})" if said else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


# ── other surfaces ───────────────────────────────────────────────────────────────────────────


def _surfaces() -> str:
    lines = [
        "# Other surfaces",
        "",
        "The same memory in the words of other contracts, for clients that speak them already.",
        "Each has a place beside `/v1`, or a port to itself: `strata serve --surface NAME`.",
        "",
        "| surface | at | endpoints |",
        "|---|---|---|",
    ]
    lines += [
        f"| [{one.name}]({one.name}.md) | `{one.mount}` | {len(one.endpoints)} |"
        for one in ALONE.values()
    ]
    return "\n".join([*lines, ""])


def _surface(surface: Surface) -> str:
    lines = [f"# {surface.name}", ""]
    lines += [f"Under `{surface.mount}`; what goes wrong is said in this contract's own form.", ""]
    lines += ["| endpoint | | capability |", "|---|---|---|"]
    for one in surface.table():
        asked = f"`{one.capability}`" if one.capability else ""
        lines.append(f"| `{one.method} {_plain_path(one.path)}` | {_cell(one.summary)} | {asked} |")
    return "\n".join([*lines, ""])


# ── the Python client ────────────────────────────────────────────────────────────────────────


def _python() -> str:
    lines = [
        "# Python client",
        "",
        "`Client` blocks, `AsyncClient` is awaited, and both know these methods.",
        "Listings are iterated over, or read page by page with `.pages()`; streams are loops.",
        "What a method takes beside its own arguments is what the endpoint takes, by name.",
        "",
        "## client",
        "",
        *_methods(Memory, "client"),
    ]
    for name, group in _groups():
        about = (group.__doc__ or "").strip()
        lines += [
            f"## client.{name} {{ #{name} }}",
            "",
            about,
            "",
            *_methods(group, f"client.{name}"),
        ]
    return "\n".join(lines)


def _groups() -> Iterator[tuple[str, type]]:
    for base in Client.__mro__:
        for name, made in vars(base).items():
            if isinstance(made, cached_property):
                group = get_type_hints(made.func)["return"]
                yield name, get_origin(group) or group


def _methods(group: type, prefix: str) -> list[str]:
    lines = ["| method | asks | |", "|---|---|---|"]
    for name, made in vars(group).items():
        route = getattr(made, "route", None)
        if route is not None:
            path = _plain_path(route.path)
            tag = path.split("/")[2].partition(".")[0]
            link = f"http/{tag}.md#{_anchor(route.method, path)}"
            summary = _cell((made.__doc__ or "").split("\n\n")[0])
            lines.append(f"| `{prefix}.{name}` | [`{route.method} {path}`]({link}) | {summary} |")
    return [*lines, ""]


# ── errors ───────────────────────────────────────────────────────────────────────────────────


def _errors() -> str:
    lines = [
        "# Errors",
        "",
        "Every error has the same envelope, on every endpoint.",
        "`documentation` in it is `/v1/errors/{code}`, this page as the server at hand tells it:",
        "it works offline and is about the version that answered.",
        "",
        "| code | status | retry | meaning |",
        "|---|---|---|---|",
    ]
    for code, problem in catalogue().items():
        retry = "yes" if problem.retriable else "no"
        meaning = _cell(problem.meaning)
        lines.append(f"| [`{code}`]({code}.md) | {problem.status} | {retry} | {meaning} |")
    return "\n".join([*lines, ""])


def _error(code: str) -> str:
    problem = catalogue()[code]
    kind = next(kind for kind in kinds() if kind.code == code)
    sample = json.loads(render(kind(), _SAMPLE_REQUEST))
    lines = [f"# {code}", "", f"**{status_of(kind)}** · {problem.meaning}", ""]
    lines += [f"**What to do.** {problem.remedy}", ""]
    again = "may succeed later" if problem.retriable else "fails again"
    lines += [f"The same request {again}.", ""]
    lines += ["```json", json.dumps(sample, indent=2, ensure_ascii=False), "```", ""]
    where = sorted(
        (_plain_path(one.path), one.method, _tag(one)) for one in ENDPOINTS if kind in one.errors
    )
    if where:
        lines += ["It is answered by:", ""]
    for path, method, tag in where:
        lines.append(f"- [`{method} {path}`](../http/{tag}.md#{_anchor(method, path)})")
    if not where:
        lines.append("Any endpoint may answer it.")
    return "\n".join([*lines, ""])


# ── settings, capabilities, lifecycle ────────────────────────────────────────────────────────


def _settings() -> str:
    defaults = load_settings(environment={})
    lines = [
        "# Settings",
        "",
        "From the environment, or from a flag of `strata serve` where there is one; a flag wins.",
        "`strata settings` prints what is set and where that came from.",
        "A variable that begins with `CORTEX_` and means nothing is named at start.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, variable in ENVIRONMENT.items():
        lines.append(f"| `{variable}` | `{getattr(defaults, name)}` | {_cell(MEANING[name])} |")
    return "\n".join([*lines, ""])


def _limits() -> str:
    """The table of limits with its reasons, section by section, from its own source."""
    lines = ["# Limits", "", "Every bound, in the unit of its name, and why it is where it is.", ""]
    for part in re.split(r"^# ── ", inspect.getsource(limits), flags=re.MULTILINE)[1:]:
        title, _, source = part.partition(" ──")
        rows = list(_limits_of(source.partition("\n")[2]))
        lines += [f"## {title}", "", "| limit | value | why |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _limits_of(source: str) -> Iterator[str]:
    """A row for each limit; a text under several is said of the last of them."""
    body = ast.parse(source).body
    for at, following in itertools.zip_longest(body, body[1:]):
        if isinstance(at, ast.AnnAssign) and isinstance(at.target, ast.Name):
            name, why = at.target.id, ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                why = str(following.value.value)
            value = getattr(limits, name)
            shown = f"{value:,}" if isinstance(value, int | float) else f"`{_cell(str(value))}`"
            yield f"| `{name}` | {shown} | {_cell(why)} |"


def _capabilities() -> str:
    lines = [
        "# Capabilities",
        "",
        "What a caller may do, by name.",
        "Policy documents allow and deny them singly, by family (`scope.read.*`) or all (`*`).",
        "The columns are the presets: ✔ allowed, ✘ denied, ~ left to the tenant.",
        "",
        "| capability | allows | " + " | ".join(f"`{name}`" for name in PRESETS) + " |",
        "|---|---|" + "---|" * len(PRESETS),
    ]
    for name, meaning in CAPABILITIES.items():
        place = name.replace(".", "")
        said = [_said(preset, name) for preset in PRESETS]
        operator = " (operator)" if name in OPERATOR_ONLY else ""
        lines.append(
            f"| <span id='{place}'>`{name}`</span> | {meaning}{operator} | {' | '.join(said)} |"
        )
    lines += ["", "## Which endpoint asks for which", ""]
    for name in CAPABILITIES:
        where = [one for one in ENDPOINTS if one.capability == name]
        if where:
            asked = ", ".join(f"`{one.method} {_plain_path(one.path)}`" for one in where)
            lines.append(f"- `{name}`: {asked}")
    return "\n".join([*lines, ""])


def _said(preset: str, capability: str) -> str:
    says = verdict(PRESETS[preset].document, capability)
    return {True: "✔", False: "✘", None: "~"}[says]


def _lifecycle() -> str:
    lines = [
        "# Lifecycle events",
        "",
        "What is announced on `GET /v1/lifecycle/stream`; `GET /v1/lifecycle` has the last hour.",
        "The stages of one event come strictly in this order: "
        + ", ".join(f"`{stage}`" for stage in STAGE_ORDER)
        + ".",
        "All of them carry "
        + ", ".join(f"`{name}`" for name in _SHARED)
        + ", as far as they have them.",
        "",
    ]
    for kind in LifecycleEvent.__args__:
        tag = str(kind.__struct_config__.tag)
        lines += [f"## {tag} {{ #{tag} }}", "", " ".join((kind.__doc__ or "").split()), ""]
        schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
        fields = {
            name: one
            for name, one in schema["properties"].items()
            if name not in (*_SHARED, "event")
        }
        if fields:
            lines += ["| field | type |", "|---|---|"]
        lines += [f"| `{name}` | {_plain_type(one)} |" for name, one in fields.items()]
        lines.append("")
    return "\n".join(lines)


def _plain_type(schema: dict[str, Any]) -> str:
    return re.sub(r"\[(\w+)\]\([^)]*\)", r"\1", _type(schema))


# ── the command line ─────────────────────────────────────────────────────────────────────────


def _command_line() -> str:
    lines = ["# Command line", "", "`strata --help` and `strata COMMAND --help` say the same.", ""]
    context = click.Context(main, info_name="strata")
    for title, section in SECTIONS.items():
        lines += [f"## {title}", ""]
        for name in section:
            command = main.get_command(context, name)
            assert command is not None
            lines += _command(command, click.Context(command, info_name=name, parent=context))
    lines += ["## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXITS.items()]
    return "\n".join([*lines, ""])


def _command(command: click.Command, context: click.Context) -> list[str]:
    lines = [f"### {context.command_path} {{ #{context.command_path.replace(' ', '-')} }}", ""]
    lines += ["```text", command.get_help(context).rstrip(), "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            lines += _command(inner, click.Context(inner, info_name=name, parent=context))
    return lines
