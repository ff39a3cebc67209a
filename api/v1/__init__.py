"""The CortexDB v1 contract (001), one file a resource."""

from api.endpoint import Endpoint
from api.v1 import (
    admin,
    answer,
    audit,
    blobs,
    entities,
    episodes,
    events,
    experience,
    facts,
    identity,
    lifecycle,
    phrases,
    policy,
    problems,
    recall,
    scopes,
    transfer,
    vocabularies,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *experience.ENDPOINTS,
    *events.ENDPOINTS,
    *episodes.ENDPOINTS,
    *facts.ENDPOINTS,
    *entities.ENDPOINTS,
    *recall.ENDPOINTS,
    *answer.ENDPOINTS,
    *blobs.ENDPOINTS,
    *transfer.ENDPOINTS,
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
