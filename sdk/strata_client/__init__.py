"""The client of Strata: memory for agents, over HTTP or in process."""

from strata_client.client import AsyncClient, Client
from strata_client.errors import (
    ApiError,
    Conflict,
    ConnectionLost,
    Denied,
    EmbeddedError,
    Internal,
    InvalidRequest,
    NotFound,
    RateLimited,
    StrataError,
    StreamLost,
    TimedOut,
    TransportError,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnstableEndpoint,
)
from strata_client.talk import Retries

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Denied",
    "EmbeddedError",
    "Internal",
    "InvalidRequest",
    "NotFound",
    "RateLimited",
    "Retries",
    "StrataError",
    "StreamLost",
    "TimedOut",
    "TransportError",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "UnstableEndpoint",
]
