"""What do the owner of the log and its workers say to each other?  MessagePack over HTTP.

Redis carries none of it: there, a task is a number that a worker may ask about.
"""

from hashlib import blake2b
from typing import Final

import msgspec

WORK: Final = "work"
"""The queue of what every worker can do; models and embedders have queues by their names."""

MODEL: Final = "model:"

FUNCTION: Final = "task"
"""What a message in Redis asks for: there is only this."""

encode = msgspec.msgpack.Encoder().encode


class Take(msgspec.Struct, frozen=True):
    """A worker would do a task, as it stood when it was announced."""

    worker: str
    epoch: int


class Taken(msgspec.Struct, frozen=True):
    """It is the worker's now: what is asked, and whether there are bytes to fetch for it."""

    kind: str
    asked: msgspec.Raw
    has_source: bool = False


class Given(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it: an answer, a reason why there can be none, or what went wrong this time."""

    worker: str
    epoch: int
    answer: bytes | None = None
    refused: str | None = None
    error: str | None = None


class Beat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker is there, for these queues, and has these tasks at hand."""

    worker: str
    host: str
    pid: int
    version: str
    queues: list[str]
    calls: int = 0
    """Questions it puts to a model at once."""
    tasks: dict[str, int] = {}
    done: int = 0
    leaving: bool = False


class Heard(msgspec.Struct, frozen=True):
    """Which of these tasks nobody waits for any more."""

    gone: list[str] = []


def model_queue(model: str) -> str:
    """Where questions to a model wait."""
    return f"{MODEL}{model}"


def embed_queue(embedder: str) -> str:
    """Where texts wait that are to be embedded."""
    return f"embed:{embedder}"


def redis_name(token: str, queue: str) -> str:
    """A queue's name in Redis: servers that share one, and no token, do not share their work."""
    place = blake2b(token.encode(), digest_size=8, person=b"strata work").hexdigest()
    return f"strata:{place}:{queue}"
