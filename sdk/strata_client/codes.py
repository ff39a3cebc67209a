"""Which class has which error code?  Written by scripts/client."""

from typing import Final

from strata_client.errors import (
    ApiError,
    Conflict,
    Denied,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)


class InvalidBody(InvalidRequest):
    """The body is not JSON of the expected shape."""


class MissingField(InvalidRequest):
    """A required field is absent."""


class InvalidEnvelope(InvalidRequest):
    """The experience envelope failed validation."""


class InvalidScope(InvalidRequest):
    """A scope path is malformed."""


class InvalidTimestamp(InvalidRequest):
    """A time is not RFC 3339 with a zone."""


class UnparseableTemporal(InvalidRequest):
    """A phrase about time was not understood."""


class InvalidParameter(InvalidRequest):
    """A query or path parameter is unknown, repeated or out of range."""


class InvalidCursor(InvalidRequest):
    """A cursor was not made by this listing."""


class InvalidActor(InvalidRequest):
    """The asserted actor is not of the form type:id."""


class UnregisteredScopeType(InvalidRequest):
    """The scope's type is not of the deployment's closed set."""


class EmptySelector(InvalidRequest):
    """An empty selector would forget everything, and that was not confirmed."""


class AmbiguousConfirmAll(InvalidRequest):
    """A selector and `confirm_all` together: one of them is a mistake."""


class BodyTooLarge(InvalidRequest):
    """The body is larger than the endpoint takes."""


class BodyTimeout(InvalidRequest):
    """The body did not arrive in time."""


class UnsupportedMediaType(InvalidRequest):
    """The content type is not one the endpoint reads."""


class MethodNotAllowed(InvalidRequest):
    """The path exists, the method does not."""


class MissingToken(Unauthenticated):
    """No Authorization header."""


class BadSignature(Unauthenticated):
    """The token's signature does not verify."""


class ExpiredToken(Unauthenticated):
    """The token has expired."""


class RevokedToken(Unauthenticated):
    """The token was revoked."""


class ActorMismatch(Unauthenticated):
    """X-Cortex-Actor is not the token's subject."""


class WrongTenant(Unauthenticated):
    """The token is bound to another deployment or tenant."""


class PolicyDenied(Denied):
    """The effective policy lacks the capability; the details name the tier that denied."""


class NotAMember(Denied):
    """The scope is registered and the caller is not a member."""


class ResourceDeleted(NotFound):
    """The resource was forgotten."""


class LifecycleExpired(NotFound):
    """The lifecycle id is older than the replay buffer."""


class PackExpired(NotFound):
    """The pack is older than sixty seconds, or there never was one."""


class IdempotencyConflict(Conflict):
    """The key was used with another body."""


class ScopeExists(Conflict):
    """The scope path is already registered."""


class ScopeHasRecords(Conflict):
    """The scope holds records, and the request does not say what becomes of them."""


class BlobInUse(Conflict):
    """Events cite the blob; it goes with the last of them."""


class WalUnavailable(Unavailable):
    """The log does not accept writes."""


class LayerUnavailable(Unavailable):
    """A derived layer cannot be read."""


class AnswerUnavailable(Unavailable):
    """The model that was named cannot be had; the published client looks for this code."""


class Overloaded(Unavailable):
    """A queue is full."""


BY_CODE: Final[dict[str, type[ApiError]]] = {
    "INVALID_BODY": InvalidBody,
    "MISSING_REQUIRED_FIELD": MissingField,
    "INVALID_ENVELOPE": InvalidEnvelope,
    "INVALID_SCOPE_GRAMMAR": InvalidScope,
    "INVALID_TIMESTAMP": InvalidTimestamp,
    "UNPARSEABLE_TEMPORAL": UnparseableTemporal,
    "INVALID_PARAMETER": InvalidParameter,
    "INVALID_CURSOR": InvalidCursor,
    "INVALID_ACTOR": InvalidActor,
    "UNREGISTERED_SCOPE_TYPE": UnregisteredScopeType,
    "EMPTY_SELECTOR_WITHOUT_CONFIRMATION": EmptySelector,
    "AMBIGUOUS_SELECTOR_CONFIRM_ALL": AmbiguousConfirmAll,
    "BODY_TOO_LARGE": BodyTooLarge,
    "REQUEST_TIMEOUT": BodyTimeout,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaType,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "MISSING_TOKEN": MissingToken,
    "INVALID_TOKEN_SIGNATURE": BadSignature,
    "EXPIRED_TOKEN": ExpiredToken,
    "REVOKED_TOKEN": RevokedToken,
    "ACTOR_MISMATCH": ActorMismatch,
    "WRONG_TENANT": WrongTenant,
    "POLICY_DENIED": PolicyDenied,
    "NOT_A_MEMBER": NotAMember,
    "RESOURCE_DELETED": ResourceDeleted,
    "LIFECYCLE_EXPIRED": LifecycleExpired,
    "PACK_EXPIRED": PackExpired,
    "IDEMPOTENCY_CONFLICT": IdempotencyConflict,
    "SCOPE_REGISTRATION_EXISTS": ScopeExists,
    "SCOPE_HAS_RECORDS": ScopeHasRecords,
    "BLOB_IN_USE": BlobInUse,
    "WAL_UNAVAILABLE": WalUnavailable,
    "DERIVED_LAYER_UNAVAILABLE": LayerUnavailable,
    "ANSWER_UNAVAILABLE": AnswerUnavailable,
    "OVERLOADED": Overloaded,
}
"""The class of each code; a code that is not here has the class of its status."""
