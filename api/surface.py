"""What is a surface?  A table of routes with a place of its own and its own way of saying errors.

Each is mounted beside `/v1`, and can be served alone at the root of a port (DESIGN §8.9).
"""

from collections.abc import Callable
from dataclasses import dataclass

from api.errors import render, status_of
from schemas.errors import EngineError


@dataclass(frozen=True)
class Dialect:
    """How a surface says that something went wrong."""

    render: Callable[[EngineError, str], bytes]
    status: Callable[[EngineError], int]


CORE = Dialect(render, status_of)
