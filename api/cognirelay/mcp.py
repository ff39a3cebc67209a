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
from api.cognirelay.translate import mcp
from api.cognirelay.translate.catalogue import mcp_tools, misfits, misfits_of, path_names, tools_of
from api.cognirelay.translate.mcp import Fault, Message, NoRequest
from api.cognirelay.translate.schedule import check_tool
from api.cognirelay.translate.times import second
from api.endpoint import Call, Endpoint, Reply
from engine.courtesy import Way
from schemas import limits
from schemas.errors import Denied, EngineError
from schemas.surfaces.cognirelay.catalogue import VERSION
from schemas.surfaces.shapes import BadShape, Table
from schemas.times import from_us

_ready: WeakKeyDictionary[Way, "OrderedDict[tuple[str, str], None]"] = WeakKeyDictionary()
"""Who has called `initialize`, of each engine that is served; the last to come stay. An engine is
known by a part of it that can be referred to weakly: what is compiled cannot."""


async def _speak(call: Call) -> Reply:
    try:
        message = mcp.read_message(call.body)
    except NoRequest as fault:
        return _answer(None, fault, status=400)
    try:
        if message.method not in mcp.METHODS:
            raise Fault(mcp.METHOD_NOT_FOUND, method=message.method)
        result = await _result(call, message)
    except Fault as fault:
        return _answer(message.id, fault)
    if result is None:
        return Reply(status=204, raw=b"")
    return Reply({"jsonrpc": "2.0", "id": message.id, "result": result})


def _answer(message_id: Any, fault: Fault, status: int = 200) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": message_id, "error": fault.error}, status=status)


async def _result(call: Call, message: Message) -> dict[str, Any] | None:
    """What is answered; nothing to a notification."""
    if message.method == "initialize":
        return _initialize(call, message.params)
    if message.method == mcp.INITIALIZED:
        return None
    if message.method == "ping":
        return {"ok": True, "ts": second(from_us(call.engine.clock.now_us()))}
    if (call.caller.tenant, call.caller.actor) not in _callers(call):
        raise Fault(mcp.NOT_READY, required_step="initialize")
    if message.method == "tools/list":
        mcp.check_listing(message)
        return {"tools": mcp_tools(call.table)}
    return await _called(call, *mcp.call_of(message.params))


def _initialize(call: Call, params: Any) -> dict[str, Any]:
    version = mcp.version_of(params)
    callers, caller = _callers(call), (call.caller.tenant, call.caller.actor)
    callers[caller] = None
    callers.move_to_end(caller)
    while len(callers) > limits.MCP_CALLERS_MAX:
        callers.popitem(last=False)
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "cognirelay", "version": VERSION},
    }


def _callers(call: Call) -> "OrderedDict[tuple[str, str], None]":
    return _ready.setdefault(call.engine.committer.way, OrderedDict())


# ── tools ────────────────────────────────────────────────────────────────────────────────────


async def _called(call: Call, name: str, arguments: Any) -> dict[str, Any]:
    endpoint = {tool.name: one for tool, one in tools_of(call.table)}.get(name)
    if endpoint is None:
        raise Fault(mcp.INVALID_PARAMS, reason="unknown tool", name=name)
    if not isinstance(arguments, dict):
        raise Fault(mcp.INVALID_PARAMS, reason="arguments must be an object")
    is_scheduled = name.startswith("schedule.")
    wrong = [] if is_scheduled else misfits(endpoint, arguments)
    if wrong:
        raise Fault(mcp.INVALID_PARAMS, reason="schema validation failed", details=wrong)
    try:
        if is_scheduled:  # it has its own words for what is wrong
            check_tool(name, arguments)
        reply = await _handled(endpoint, _call_of(call, endpoint, arguments))
    except BadShape as error:
        wrong = misfits_of(error.complaints)
        fault = Fault(mcp.INVALID_PARAMS, reason="schema validation failed", details=wrong)
        raise fault from error
    except Denied:
        raise  # policy's own word is said and recorded as on any route
    except EngineError as error:
        detail = msgspec.to_builtins(detail_of(error))
        raise mcp.refused(name, DIALECT.status(error), detail) from error
    value = msgspec.json.decode(reply.raw) if reply.raw is not None else reply.value
    content = [{"type": "text", "text": f"Executed {name}"}]
    return {"content": content, "structuredContent": value}


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
