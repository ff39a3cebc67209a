"""What if a model takes its time?  An endpoint that answers well, after half a second.

Run as `python -m bench.slow_model SECONDS`; it says its address, and how many it answered on
`GET /asked`.
"""

import asyncio
import json
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_SAID = {
    "subject": "Acme",
    "predicate": "has_seat_count",
    "object": 200,
    "confidence": 0.8,
    "polarity": "positive",
    "valid_from": None,
    "valid_to": None,
    "cardinality": "single",
}


def app(seconds: float) -> Starlette:
    counted = {"asked": 0, "now": 0, "most": 0}

    async def complete(request: Request) -> JSONResponse:
        await request.body()
        counted["now"] += 1
        counted["most"] = max(counted["most"], counted["now"])
        await asyncio.sleep(seconds)
        counted["now"] -= 1
        counted["asked"] += 1
        message = {"role": "assistant", "content": json.dumps({"facts": [_SAID]})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250}
        return JSONResponse({"model": "slow", "choices": [choice], "usage": usage})

    async def asked(_: Request) -> JSONResponse:
        return JSONResponse(counted)

    return Starlette(
        routes=[
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/asked", asked),
        ]
    )


if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    server = uvicorn.Server(
        uvicorn.Config(app(float(sys.argv[1])), log_level="critical", lifespan="off")
    )
    server.run([listener])
