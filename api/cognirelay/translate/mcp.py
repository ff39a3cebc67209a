"""Which request of MCP is this, and what is wrong with it?  (000, discovery: `POST /v1/mcp`)

Pure. The protocol has its own errors: what cannot be a request at all is a 400 without an id, and
everything else is answered under the id that was sent.
"""

from typing import Any, Final, NamedTuple

import msgspec

from schemas.surfaces.cognirelay.catalogue import MCP_VERSIONS

PARSE_ERROR: Final = (-32700, "Parse error")
INVALID_REQUEST: Final = (-32600, "Invalid Request")
METHOD_NOT_FOUND: Final = (-32601, "Method not found")
INVALID_PARAMS: Final = (-32602, "Invalid params")
NOT_READY: Final = (-32000, "Server not initialized")
FORBIDDEN: Final = (-32002, "Forbidden")
FAILED: Final = (-32003, "Tool execution failed")
NOT_FOUND: Final = (-32004, "Not Found")

INITIALIZED: Final = "notifications/initialized"
METHODS: Final = ("initialize", "ping", INITIALIZED, "tools/list", "tools/call")
_META: Final = "_meta"
_CLIENT_WORDS: Final = ("title", "description", "websiteUrl")
_SCHEDULE_CODES: Final = (404, 409, 422, 503)


class Fault(Exception):
    """A request that gets an error of the protocol's own."""

    def __init__(self, kind: tuple[int, str], **data: Any) -> None:
        super().__init__(kind[1])
        self.error: dict[str, Any] = {"code": kind[0], "message": kind[1]}
        if data:
            self.error["data"] = data


class NoRequest(Fault):
    """What was sent is no request, so there is no id to answer under."""


class Message(NamedTuple):
    """A request; a notification has no id."""

    method: str
    id: Any
    params: Any
    has_params: bool


def read_message(raw: bytes) -> Message:
    """The request that was sent."""
    try:
        sent = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoRequest(PARSE_ERROR, reason="request body must be valid JSON") from None
    fault = _fault(sent)
    if fault is not None:
        raise NoRequest(INVALID_REQUEST, reason=fault)
    return Message(sent["method"], sent.get("id"), sent.get("params"), "params" in sent)


def _fault(sent: Any) -> str | None:
    if isinstance(sent, list):
        return "batch requests are not supported"
    if not isinstance(sent, dict):
        return "request body must be a JSON object"
    if sent.get("jsonrpc") != "2.0":
        return 'jsonrpc must be exactly "2.0"'
    method = sent.get("method")
    if not isinstance(method, str):
        return "method must be a string"
    if method == INITIALIZED:
        return "notifications/initialized is notification-only" if "id" in sent else None
    if "id" not in sent:
        return "id is required for this method"
    return None if _is_id(sent["id"]) else "id must be a string or integer"


def _is_id(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, str | int) and not isinstance(value, bool)


def version_of(params: Any) -> str:
    """The version of the protocol that both speak."""
    known = ("protocolVersion", "capabilities", "clientInfo")
    given = _params(params, known, "initialize")
    asked = given.get("protocolVersion")
    if "protocolVersion" not in given:
        raise _invalid("protocolVersion is required")
    if not isinstance(asked, str):
        raise _invalid("protocolVersion must be a string")
    if asked not in MCP_VERSIONS:
        kind = (INVALID_PARAMS[0], "Unsupported protocol version")
        raise Fault(kind, supported=list(MCP_VERSIONS), requested=asked)
    if not isinstance(given.get("capabilities", {}), dict):
        raise _invalid("capabilities must be an object")
    if "clientInfo" in given:
        _check_client(given["clientInfo"])
    return asked


def _check_client(told: Any) -> None:
    if not isinstance(told, dict):
        raise _invalid("clientInfo must be an object")
    for name in told:
        if name not in ("name", "version", *_CLIENT_WORDS, "icons"):
            raise _invalid("unexpected clientInfo field", field=name)
    if "name" not in told:
        raise _invalid("clientInfo.name is required")
    for name in ("name", "version"):
        value = told.get(name, "unsaid")
        if not isinstance(value, str) or not value.strip():
            raise _invalid(f"clientInfo.{name} must be a non-empty string")
    for name in _CLIENT_WORDS:
        if not isinstance(told.get(name, ""), str):
            raise _invalid(f"clientInfo.{name} must be a string")
    if not isinstance(told.get("icons", []), list):
        raise _invalid("clientInfo.icons must be an array")


def check_listing(message: Message) -> None:
    """All tools are listed at once: there is no page to ask for."""
    given = _params(message.params if message.has_params else {}, ("cursor",), "tools/list")
    cursor = given.get("cursor")
    if cursor in (None, ""):
        return
    if not isinstance(cursor, str):
        raise _invalid("cursor must be a string or null")
    raise _invalid("cursor pagination is not supported in slice 2")


def call_of(params: Any) -> tuple[str, Any]:
    """The tool that is called, and its arguments; none are an empty object."""
    given = _params(params, ("name", "arguments"), "tools/call")
    name = given.get("name")
    if "name" not in given or (isinstance(name, str) and not name.strip(" \t\n\r")):
        raise _invalid("name is required")
    if not isinstance(name, str):
        raise _invalid("name must be a non-empty string")
    return name, given.get("arguments", {})


def _params(params: Any, known: tuple[str, ...], method: str) -> dict[str, Any]:
    if not isinstance(params, dict):
        raise _invalid("params must be an object")
    for name in params:
        if name not in (*known, _META):
            raise _invalid(f"unexpected {method} param", field=name)
    if not isinstance(params.get(_META, {}), dict):
        raise _invalid("_meta must be an object")
    return params


def _invalid(reason: str, **data: Any) -> Fault:
    return Fault(INVALID_PARAMS, reason=reason, **data)


def refused(name: str, status: int, detail: Any) -> Fault:
    """What a tool's refusal is in the protocol's words; ours besides."""
    said = {"status": status, "detail": detail}
    if status == 403:
        return Fault(FORBIDDEN, reason="forbidden", **said)
    is_scheduled = name.startswith("schedule.") and status in _SCHEDULE_CODES
    if status == 404 and not is_scheduled:
        return Fault(NOT_FOUND, reason="not found", **said)
    code = detail.get("code", "") if is_scheduled and isinstance(detail, dict) else ""
    if status == 422 and code.startswith("invalid_"):
        return Fault(INVALID_PARAMS, reason="schema validation failed", **said)
    return Fault(FAILED, reason="tool execution failed", **said)
