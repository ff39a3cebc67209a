"""Asking for an answer: recall, then words with citations (001 §8.4)."""

import asyncio
from typing import Any

from api.endpoint import STABLE, Call, Endpoint, Reply
from engine.answer import answer, answer_stream
from schemas.errors import (
    AnswerUnavailable,
    InvalidParameter,
    InvalidScope,
    InvalidTimestamp,
    LayerUnavailable,
    MissingField,
    PackExpired,
    UnparseableTemporal,
)
from schemas.pack import AnswerRequest, AnswerResponse


async def post_answer(call: Call) -> Reply:
    """An answer, or a stream of it when the body says so."""
    request: AnswerRequest = call.body
    if request.stream:
        words = await asyncio.to_thread(answer_stream, call.engine, call.caller, request)
        return Reply(stream=words)
    return Reply(await answer(call.engine, call.caller, request))


def _streams_words(body: Any) -> bool:
    """A stream of words may still change its form (001 §2.4.3)."""
    return bool(body.stream)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/answer",
        post_answer,
        "An answer with its citations: quotes from the records, or a model's words.",
        capability="llm.invoke",
        tier=STABLE,
        body=AnswerRequest,
        response=AnswerResponse,
        errors=(
            AnswerUnavailable,
            InvalidParameter,
            InvalidScope,
            InvalidTimestamp,
            LayerUnavailable,
            MissingField,
            PackExpired,
            UnparseableTemporal,
        ),
        is_read=True,
        streams=True,
        is_experimental=_streams_words,
    ),
)
