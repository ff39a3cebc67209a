"""CogniRelay (000) as a dialect of the same log: capsules, schedule, coordination.

One file a topic; each has its `ENDPOINTS`. Paths are as its clients know them; the mount
`/cognirelay` is put before them where all surfaces are served together.
"""

from api.cognirelay import (
    context,
    continuity,
    coordination,
    discovery,
    graph,
    mcp,
    peers,
    schedule,
    upkeep,
)
from api.cognirelay.errors import DIALECT
from api.endpoint import Endpoint

__all__ = ["DIALECT", "ENDPOINTS"]

ENDPOINTS: tuple[Endpoint, ...] = (
    *continuity.ENDPOINTS,
    *context.ENDPOINTS,
    *schedule.ENDPOINTS,
    *coordination.ENDPOINTS,
    *peers.ENDPOINTS,
    *graph.ENDPOINTS,
    *upkeep.ENDPOINTS,
    *discovery.ENDPOINTS,
    *mcp.ENDPOINTS,
)
