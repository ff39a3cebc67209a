"""What is a surface?  A table of routes with a place of its own and its own way of saying errors.

Each is mounted beside `/v1`, and can be served alone at the root of a port (DESIGN §8.9).
"""

from collections.abc import Callable
from dataclasses import dataclass

from api.errors import render, status_of
from schemas.errors import EngineError


@dataclass(frozen=True)
class Dialect:
    """How a surface says who calls, and that something went wrong."""

    render: Callable[[EngineError, str], bytes]
    status: Callable[[EngineError], int]
    asserts_actor: bool = True
    """Whether its clients say who they are beside their token, as 001 §4 wants."""


CORE = Dialect(render, status_of)
