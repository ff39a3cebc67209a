"""Which contracts are spoken, and where is each mounted?  (DESIGN §8.9)"""

from dataclasses import dataclass, replace
from typing import Final

from api import cognirelay, v1
from api.endpoint import Endpoint
from api.surface import CORE, Dialect


@dataclass(frozen=True)
class Surface:
    """A contract: its name, its place beside the others, its routes and its words for errors."""

    name: str
    mount: str
    endpoints: tuple[Endpoint, ...]
    dialect: Dialect = CORE

    def table(self) -> tuple[Endpoint, ...]:
        """The routes as they are reached here."""
        if not self.mount:
            return self.endpoints
        return tuple(replace(one, path=self.mount + one.path) for one in self.endpoints)


SURFACES: Final = (
    Surface("v1", "", v1.ENDPOINTS),
    Surface("cognirelay", "/cognirelay", cognirelay.ENDPOINTS, cognirelay.DIALECT),
)
"""The core comes first: it answers what is asked of no other's place."""

ALONE: Final = {surface.name: surface for surface in SURFACES if surface.mount}
"""Those that may have a port to themselves."""


def at_root(surface: Surface) -> Surface:
    """A surface that is served alone: its existing clients need only another base URL."""
    return replace(surface, mount="")
