"""How does the table of routes read as a catalogue of tools?  Pure (000, discovery).

A tool takes what its route takes: parameters of the path, of the query and the fields of the body,
in one object. Schemas are written as the original's framework writes them, which clients have read.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.endpoint import Endpoint
from schemas import limits
from schemas.surfaces.cognirelay.catalogue import (
    MCP_VERSIONS,
    NOT_OFFERED,
    PROTOCOL,
    TOOLS,
    VERSION,
    Tool,
)
from schemas.surfaces.cognirelay.schedule import Declared
from schemas.surfaces.shapes import (
    ABSENT,
    REQUIRED,
    Choice,
    Complaint,
    Field,
    Items,
    Maybe,
    Model,
    Shape,
)


def _named(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


_IN_PATH: Final = re.compile(r"\{(\w+)\}")
_KEYWORDS: Final = {
    "missing": "required",
    "extra_forbidden": "additionalProperties",
    "literal_error": "enum",
}
"""What a validator of schemas calls a complaint; others keep their name, or are about the type."""
_WRITTEN_OUT: Final = ("ContinuityCapsule", "SessionEndSnapshot")
"""Models that a request shows in place, and not only by their name."""
_CLOSED: Final = ("CoordinationReconciliationQueryRequest",)
"""Said to be closed; over HTTP further parameters are passed over, as on every route."""
_DOCUMENTS: Final = Declared(
    (
        (
            "path",
            _named(limits.CAPSULE_CHARS["document_path"]) | {"pattern": "^[A-Za-z0-9._/-]+$"},
        ),
        ("kind", _named(limits.CAPSULE_CHARS["document_kind"]) | {"pattern": "^[a-z][a-z0-9_]*$"}),
        ("label", _named(limits.CAPSULE_CHARS["label"])),
        (
            "relevance",
            _named(limits.CAPSULE_CHARS["document_kind"])
            | {"enum": ["primary", "supporting", "background"]},
        ),
    ),
    ("path", "kind", "label"),
)
_SAID: Final = {"related_documents": Items(_DOCUMENTS, limits.CAPSULE_ENTRIES["related_documents"])}
"""Fields whose values are checked by rules, and how they are described."""


def path_of(endpoint: Endpoint) -> str:
    """The path as clients know it, wherever the surface is mounted."""
    return "/v1/" + endpoint.path.partition("/v1/")[2]


def route_of(endpoint: Endpoint) -> str:
    """Method and path, as the manifest says them."""
    return f"{endpoint.method} {path_of(endpoint)}"


def tools_of(table: Iterable[Endpoint]) -> list[tuple[Tool, Endpoint]]:
    """The tools there are, in the order of the catalogue."""
    by_route = {route_of(endpoint): endpoint for endpoint in table}
    return [(tool, by_route[route]) for route, tool in TOOLS.items() if route in by_route]


def catalogue(table: Iterable[Endpoint]) -> dict[str, Any]:
    """Every tool with what it takes."""
    tools = [
        {
            "name": tool.name,
            "description": endpoint.summary,
            "method": endpoint.method,
            "path": path_of(endpoint),
            "scopes": list(tool.scopes),
            "idempotent": tool.is_idempotent,
            "input_schema": input_schema(endpoint),
        }
        for tool, endpoint in tools_of(table)
    ]
    return {"ok": True, "protocol": dict(PROTOCOL), "count": len(tools), "tools": tools}


def mcp_tools(table: Iterable[Endpoint]) -> list[dict[str, Any]]:
    """The same as MCP says it."""
    return [
        {
            "name": tool.name,
            "description": endpoint.summary,
            "inputSchema": input_schema(endpoint),
            "metadata": {
                "method": endpoint.method,
                "path": path_of(endpoint),
                "scopes": list(tool.scopes),
                "idempotent": tool.is_idempotent,
                "local_only": False,
            },
        }
        for tool, endpoint in tools_of(table)
    ]


def manifest(table: Iterable[Endpoint]) -> dict[str, Any]:
    """Every route, and who may call it."""
    return {
        "service": "cognirelay",
        "version": VERSION,
        "auth": {"type": "bearer", "header": "Authorization: Bearer <token>"},
        "endpoints": {route_of(endpoint): _listed(endpoint) for endpoint in table},
    }


def _listed(endpoint: Endpoint) -> dict[str, Any]:
    route = route_of(endpoint)
    if route == "GET /v1/mcp":
        return {"scope": None, "status": 405, "allow": "POST", "posture": "deferred"}
    if route == "POST /v1/mcp":
        return {
            "scope": "mixed (depends on tool)",
            "transport": "streamable-http",
            "mcp_protocol_version": MCP_VERSIONS[-1],
            "supported_mcp_protocol_versions": list(MCP_VERSIONS),
            "posture": "active",
        }
    if path_of(endpoint) in NOT_OFFERED:
        scope = "read:files + write:projects + write_namespaces"
        return {"scope": scope, "posture": "not_offered"}
    tool = TOOLS.get(route)
    if tool is None:
        return {"scope": "authenticated"}
    return {"scope": tool.manifest or next(iter(tool.scopes), None)}


# ── schemas ──────────────────────────────────────────────────────────────────────────────────


def input_schema(endpoint: Endpoint) -> dict[str, Any]:
    """What a tool takes: all that its route takes, in one object."""
    asked = endpoint.query_shape if endpoint.method == "GET" else endpoint.shape
    names = path_names(endpoint)
    if isinstance(asked, Model) and not names:
        return published(asked)
    schema = asked.schema() if isinstance(asked, Declared) else {}
    if isinstance(asked, Model):
        schema = published(asked)
    properties = {name: {"type": "string"} for name in names} | schema.get("properties", {})
    required = [*names, *schema.get("required", [])]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **({"$defs": schema["$defs"]} if "$defs" in schema else {}),
    }


def path_names(endpoint: Endpoint) -> list[str]:
    """The parameters in a route's path."""
    return _IN_PATH.findall(endpoint.path)


def published(model: Model) -> dict[str, Any]:
    """A shape as the original publishes it: titles, and models in `$defs`."""
    parts: dict[str, Any] = {}
    whole = _object(model, parts)
    return whole | ({"$defs": parts} if parts else {})


def _object(model: Model, parts: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, declared in model.fields.items():
        shape, default = _split(declared)
        if default is REQUIRED:
            required.append(name)
        said = _SAID.get(name, shape)
        properties[name] = _property(name, said, parts) | _default(default)
    is_closed = model.forbids_extra or model.name in _CLOSED
    return {
        "type": "object",
        "title": model.name,
        "properties": properties,
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if is_closed else {}),
    }


def _split(declared: Field | Shape) -> tuple[Shape, Any]:
    if isinstance(declared, Field):
        return declared.shape, declared.default
    return declared, REQUIRED


def _default(default: Any) -> dict[str, Any]:
    if default is REQUIRED or callable(default):
        return {}
    return {"default": None if default is ABSENT else default}


def _property(name: str, shape: Shape, parts: dict[str, Any]) -> dict[str, Any]:
    inner = shape.of if isinstance(shape, Maybe) else shape
    titled = {} if isinstance(inner, Model) else {"title": name.replace("_", " ").title()}
    return _value(shape, parts) | titled


def _value(shape: Shape, parts: dict[str, Any]) -> dict[str, Any]:
    match shape:
        case Model(name=name):
            if name not in parts:
                parts[name] = {}
                parts[name] = _object(shape, parts)
            return parts[name] if name in _WRITTEN_OUT else {"$ref": f"#/$defs/{name}"}
        case Maybe(of=inner):
            return {"anyOf": [_value(inner, parts), {"type": "null"}]}
        case Items(of=inner):
            return shape.schema() | {"items": _value(inner, parts)}
        case Choice(words=(word,)):
            return {"type": "string", "const": word}
        case _:
            return shape.schema()


# ── arguments ────────────────────────────────────────────────────────────────────────────────

Misfit = dict[str, str]
_TYPES: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "object": ("an object", (dict,)),
    "array": ("an array", (list,)),
    "string": ("a string", (str,)),
    "integer": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("a boolean", (bool,)),
    "null": ("null", (type(None),)),
}


def misfits(endpoint: Endpoint, arguments: dict[str, Any]) -> list[Misfit]:
    """What is wrong with the arguments of a tool, by its schema; nothing is a good sign."""
    schema = input_schema(endpoint)
    return _misfits(arguments, schema, "", schema.get("$defs", {}))


def _misfits(value: Any, schema: Mapping[str, Any], path: str, parts: Any) -> list[Misfit]:
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        if any(not _misfits(value, one, path, parts) for one in schema["anyOf"]):
            return []
        return [_misfit(path, "anyOf", "value does not match any allowed schema")]
    if value not in schema.get("enum", [value]):
        return [_misfit(path, "enum", "value is not one of the allowed choices")]
    if value != schema.get("const", value):
        return [_misfit(path, "const", "value does not match the required constant")]
    kind = schema.get("type")
    if kind is None:
        return []
    name, types = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        return [_misfit(path, "type", f"value must be {name}")]
    match value:
        case dict():
            return _object_misfits(value, schema, path, parts)
        case list():
            return _array_misfits(value, schema, path, parts)
        case str():
            return _string_misfits(value, schema, path)
    return []


def _object_misfits(
    value: dict[str, Any], schema: Mapping[str, Any], path: str, parts: Any
) -> list[Misfit]:
    known = schema.get("properties", {})
    found = [
        _misfit(f"{path}/{name}", "required", f"'{name}' is required")
        for name in schema.get("required", [])
        if name not in value
    ]
    for name, inner in known.items():
        if name in value:
            found += _misfits(value[name], inner, f"{path}/{name}", parts)
    if schema.get("additionalProperties") is False:
        said = "additional property is not allowed"
        extra = [name for name in value if name not in known]
        found += [_misfit(f"{path}/{name}", "additionalProperties", said) for name in extra]
    return found


def _array_misfits(
    value: list[Any], schema: Mapping[str, Any], path: str, parts: Any
) -> list[Misfit]:
    found: list[Misfit] = []
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if len(value) < least:
        found.append(_misfit(path, "minItems", f"array must contain at least {least} item(s)"))
    if len(value) > most:
        found.append(_misfit(path, "maxItems", f"array must contain at most {most} item(s)"))
    for at, item in enumerate(value):
        found += _misfits(item, schema.get("items", {}), f"{path}/{at}", parts)
    return found


def _string_misfits(value: str, schema: Mapping[str, Any], path: str) -> list[Misfit]:
    found: list[Misfit] = []
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
    if len(value) < least:
        found.append(_misfit(path, "minLength", f"string must be at least {least} character(s)"))
    if len(value) > most:
        found.append(_misfit(path, "maxLength", f"string must be at most {most} character(s)"))
    return found


def _misfit(path: str, keyword: str, message: str) -> Misfit:
    return {"path": path, "keyword": keyword, "message": message}


def misfits_of(complaints: Iterable[Complaint]) -> list[Misfit]:
    """What a shape complains of beyond its schema, in the words of a validator of schemas."""
    return [
        _misfit(
            "/" + "/".join(str(part) for part in one.loc[1:]),
            _KEYWORDS.get(one.type, "type" if _is_about_type(one.type) else one.type),
            one.msg,
        )
        for one in complaints
    ]


def _is_about_type(name: str) -> bool:
    return "type" in name or "parsing" in name
