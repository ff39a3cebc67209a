"""The CortexDB v1 contract (001), one file a resource."""

from api.endpoint import Endpoint
from api.v1 import admin, events, experience, lifecycle, problems

ENDPOINTS: tuple[Endpoint, ...] = (
    *experience.ENDPOINTS,
    *events.ENDPOINTS,
    *lifecycle.ENDPOINTS,
    *admin.ENDPOINTS,
    *problems.ENDPOINTS,
)
