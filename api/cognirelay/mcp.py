"""/v1/mcp: how do agents call the routes as tools?  JSON-RPC over HTTP, one answer a request.

`initialize` makes a caller ready; that is remembered in memory and for a while, like a connection.
A tool is its route: the same handler, the same checks, the same answer.
"""

import asyncio
from collections import OrderedDict
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from api.cognirelay.errors import DIALECT, detail_of
from api.cognirelay.translate.catalogue import mcp_tools, misfits, path_names, tools_of
from api.endpoint import Call, Endpoint, Reply
from engine.commit import Committer
from schemas import limits
from schemas.errors import Denied, EngineError
from schemas.surfaces.cognirelay.catalogue import MCP_VERSIONS, VERSION
from schemas.surfaces.shapes import Table

_PARSE_ERROR: Final = (-32700, "Parse error")
_INVALID_REQUEST: Final = (-32600, "Invalid Request")
_METHOD_NOT_FOUND: Final = (-32601, "Method not found")
_INVALID_PARAMS: Final = (-32602, "Invalid params")
_NOT_READY: Final = (-32000, "Server not initialized")

_ready: WeakKeyDictionary[Committer, "OrderedDict[tuple[str, str], None]"] = WeakKeyDictionary()
"""Who has called `initialize`, of each engine that is served; the last to come stay."""


class Fault(Exception):
    """A request that gets an error of the protocol's own."""

    def __init__(self, kind: tuple[int, str], **data: Any) -> None:
        super().__init__(kind[1])
        self.error: dict[str, Any] = {"code": kind[0], "message": kind[1]}
        if data:
            self.error["data"] = data


async def _speak(call: Call) -> Reply:
    try:
        message = msgspec.json.decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _answer(None, Fault(_PARSE_ERROR), status=400)
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return _answer(None, Fault(_INVALID_REQUEST), status=400)
    if "id" not in message:
        return Reply(status=204, raw=b"")
    try:
        result = await _result(call, message["method"], message.get("params"))
    except Fault as fault:
        return _answer(message["id"], fault)
    return Reply({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _answer(message_id: Any, fault: Fault, status: int = 200) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": message_id, "error": fault.error}, status=status)


async def _result(call: Call, method: str, params: Any) -> dict[str, Any]:
    given = params if isinstance(params, dict) else {}
    if method == "initialize":
        return _initialize(call, given)
    if method == "ping":
        return {}
    if (call.caller.tenant, call.caller.actor) not in _callers(call):
        raise Fault(_NOT_READY, required_step="initialize")
    if method == "tools/list":
        return {"tools": mcp_tools(call.table)}
    if method == "tools/call":
        return await _called(call, given)
    raise Fault(_METHOD_NOT_FOUND, method=method)


def _initialize(call: Call, params: dict[str, Any]) -> dict[str, Any]:
    callers, caller = _callers(call), (call.caller.tenant, call.caller.actor)
    callers[caller] = None
    callers.move_to_end(caller)
    while len(callers) > limits.MCP_CALLERS_MAX:
        callers.popitem(last=False)
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in MCP_VERSIONS else MCP_VERSIONS[-1],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "cognirelay", "version": VERSION},
    }


def _callers(call: Call) -> "OrderedDict[tuple[str, str], None]":
    return _ready.setdefault(call.engine.committer, OrderedDict())


# ── tools ────────────────────────────────────────────────────────────────────────────────────


async def _called(call: Call, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    endpoint = {tool.name: one for tool, one in tools_of(call.table)}.get(str(name))
    if endpoint is None:
        raise Fault(_INVALID_PARAMS, reason="unknown tool", name=name)
    if not isinstance(arguments, dict):
        raise Fault(_INVALID_PARAMS, reason="arguments must be an object", name=name)
    wrong = misfits(endpoint, arguments)
    if wrong:
        raise Fault(_INVALID_PARAMS, reason="schema validation failed", details=wrong)
    try:
        reply = await _handled(endpoint, _call_of(call, endpoint, arguments))
    except Denied:
        raise  # policy's own word is said and recorded as on any route
    except EngineError as error:
        said = {"status": DIALECT.status(error), "detail": msgspec.to_builtins(detail_of(error))}
        text = f"{name} was refused: {msgspec.json.encode(said['detail']).decode()}"
        return _content(text, said) | {"isError": True}
    value = msgspec.json.decode(reply.raw) if reply.raw is not None else reply.value
    return _content(f"Executed {name}", value)


def _content(text: str, value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "structuredContent": value}


def _call_of(call: Call, endpoint: Endpoint, arguments: dict[str, Any]) -> Call:
    """The call that the route would have got."""
    names = path_names(endpoint)
    path = {name: str(arguments[name]) for name in names}
    rest = {name: value for name, value in arguments.items() if name not in names}
    query: Any = None
    body: Any = None
    if endpoint.method == "GET" and endpoint.query_shape is not None:
        query = endpoint.query_shape.parse(_as_query(rest), ("query",))
    elif endpoint.takes_raw:
        body = msgspec.json.encode(rest)
    elif endpoint.shape is not None:
        body = endpoint.shape.parse(rest)
    return msgspec.structs.replace(call, path=path, query=query, body=body)


def _as_query(arguments: dict[str, Any]) -> dict[str, str]:
    """Arguments as a query would have them; null is as good as not given."""
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in arguments.items()
        if value is not None
    }


async def _handled(endpoint: Endpoint, call: Call) -> Reply:
    handler: Any = endpoint.handler
    if endpoint.off_loop:
        return await asyncio.to_thread(handler, call)
    answer = handler(call)
    return answer if isinstance(answer, Reply) else await answer


def _not_here(call: Call) -> Reply:
    del call
    return Reply(status=405, raw=b"", headers=((b"allow", b"POST"),))


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/mcp",
        _speak,
        "Call the routes as tools, in JSON-RPC.",
        "scope.read.local",
        takes_raw=True,
        statuses=(200, 204),
        dialect=DIALECT,
    ),
    Endpoint(
        "GET",
        "/v1/mcp",
        _not_here,
        "There is no stream: every answer is in the response.",
        query_shape=Table(),
        is_open=True,
        statuses=(405,),
        dialect=DIALECT,
    ),
)
