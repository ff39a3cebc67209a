"""The CortexDB v1 contract (001), one file a resource."""

from api.endpoint import Endpoint
from api.v1 import (
    admin,
    audit,
    blobs,
    episodes,
    events,
    experience,
    identity,
    lifecycle,
    phrases,
    policy,
    problems,
    scopes,
    vocabularies,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *experience.ENDPOINTS,
    *events.ENDPOINTS,
    *episodes.ENDPOINTS,
    *blobs.ENDPOINTS,
    *lifecycle.ENDPOINTS,
    *scopes.ENDPOINTS,
    *vocabularies.ENDPOINTS,
    *phrases.ENDPOINTS,
    *policy.ENDPOINTS,
    *identity.ENDPOINTS,
    *audit.ENDPOINTS,
    *admin.ENDPOINTS,
    *problems.ENDPOINTS,
)
