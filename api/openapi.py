"""What does the interface look like to a machine?  OpenAPI 3.1, made from the route table."""

import re
from functools import lru_cache
from typing import Any

import msgspec

from api.endpoint import Endpoint
from api.errors import status_of
from engine.admin import package_version
from schemas.errors import (
    BodyTooLarge,
    Denied,
    EngineError,
    Internal,
    InvalidActor,
    InvalidBody,
    InvalidParameter,
    RateLimited,
    Unauthenticated,
    UnsupportedMediaType,
    WalUnavailable,
)
from schemas.problem import ErrorEnvelope

_ALWAYS = (InvalidParameter, InvalidActor, Unauthenticated, Denied, RateLimited, Internal)
_WITH_BODY = (InvalidBody, BodyTooLarge, UnsupportedMediaType)


@lru_cache(maxsize=1)
def document(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    """The whole interface; every endpoint of the table, every type they use."""
    types = _types(endpoints)
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    found = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = re.sub(r"\{(\w+)(:\w+)?\}", r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Strata",
            "version": package_version(),
            "summary": "An event-sourced memory engine for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    }


def _types(endpoints: tuple[Endpoint, ...]) -> list[Any]:
    found: list[Any] = [ErrorEnvelope]
    for endpoint in endpoints:
        for kind in (endpoint.body, endpoint.other_body, *_answers(endpoint)):
            if kind is not None and kind not in found:
                found.append(kind)
    return found


def _answers(endpoint: Endpoint) -> tuple[Any, ...]:
    """The types an endpoint may answer with: none, one, or the forms of one answer."""
    if endpoint.response is None:
        return ()
    return endpoint.response if isinstance(endpoint.response, tuple) else (endpoint.response,)


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.path.split("/")[2].partition(".")[0]],
        "x-stability": endpoint.tier,
        "parameters": [*_path_parameters(endpoint), *_query(endpoint), *_header(endpoint)],
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.capability is not None:
        operation["x-capability"] = endpoint.capability
    if endpoint.is_experimental is not None:
        operation["x-experimental-when"] = endpoint.is_experimental.__doc__
    if endpoint.body is not None:
        taken = [schemas[repr(kind)] for kind in (endpoint.body, endpoint.other_body) if kind]
        schema = taken[0] if len(taken) == 1 else {"anyOf": taken}
        operation["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {"application/json": {"schema": schema}},
        }
    if endpoint.takes_bytes:
        raw = {"schema": {"type": "string", "format": "binary"}}
        form = {"type": "object", "required": ["file"], "properties": {"file": raw["schema"]}}
        content = {"application/octet-stream": raw, "multipart/form-data": {"schema": form}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r":\w+", "", endpoint.path))
    return "_".join([endpoint.method.lower(), *words[1:]])


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)", endpoint.path)
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


def _query(endpoint: Endpoint) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(endpoint.query)
    described: dict[str, Any] = next(iter(schema.get("$defs", {}).values()), {})
    required = described.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in described.get("properties", {}).items()
    ]


def _header(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = ("X-Cortex-Actor", "X-Cortex-Request-ID", *endpoint.header_names)
    return [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in names
    ]


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {
        str(status): {"description": endpoint.summary} for status in endpoint.statuses
    }
    answers = [schemas[repr(kind)] for kind in _answers(endpoint)]
    if answers:
        schema = answers[0] if len(answers) == 1 else {"anyOf": answers}
        media_types = (endpoint.media_type, *(("text/event-stream",) if endpoint.streams else ()))
        content = {kind: {"schema": schema} for kind in media_types}
        for response in responses.values():
            response["content"] = content
    elif endpoint.media_type == "application/octet-stream":
        raw = {"schema": {"type": "string", "format": "binary"}}
        responses[str(endpoint.statuses[0])]["content"] = {endpoint.media_type: raw}
    with_body: tuple[type[EngineError], ...] = _WITH_BODY if endpoint.body is not None else ()
    if endpoint.capability is not None:
        with_body = (*with_body, WalUnavailable)  # its audit row could not be recorded
    for status, codes in sorted(_codes((*_ALWAYS, *with_body, *endpoint.errors)).items()):
        if status not in endpoint.statuses:
            envelope = {"application/json": {"schema": schemas[repr(ErrorEnvelope)]}}
            said = ", ".join(sorted(codes))
            responses[str(status)] = {"description": said, "content": envelope}
    return responses


def _codes(kinds: tuple[type[EngineError], ...]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for kind in kinds:
        found.setdefault(status_of(kind), set()).add(kind.code)
    return found
