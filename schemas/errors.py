"""What can go wrong, grouped by what the caller should do?

* EngineError
  x InvalidRequest     change the request
      InvalidBody · MissingField · InvalidEnvelope · InvalidScope · InvalidTimestamp ·
      UnparseableTemporal · InvalidParameter · InvalidCursor · InvalidActor ·
      UnregisteredScopeType · BodyTooLarge · BodyTimeout · UnsupportedMediaType ·
      MethodNotAllowed
  x Unauthenticated    present a good token
      MissingToken · BadSignature · ExpiredToken · RevokedToken · ActorMismatch · WrongTenant
  x Denied             ask for a capability
      PolicyDenied · NotAMember
  x NotFound           it is not here
      ResourceDeleted · LifecycleExpired · PackExpired
  x Conflict           read again, then decide
      IdempotencyConflict · ScopeExists · ScopeHasRecords
  x RateLimited        wait, then retry
  x Unavailable        retry as is
      WalUnavailable · LayerUnavailable · AnswerUnavailable · Overloaded
  x Internal           a bug of ours; retry once, then report it

The codes are those of 001 §16; where the seed has none, ours follow its casing. HTTP statuses live
in `api/errors.py`: nothing below `api` knows them.
"""

import re
from typing import Any, ClassVar, Final

_QUOTED: Final = re.compile(r"""'[^']*'?|"[^"]*"?|(?<=field )`[^`]*`?""")


def unquoted(text: str) -> str:
    """What an error says, without the words it quotes: those are somebody's, and may be erased."""
    return _QUOTED.sub("…", text)


def told_plainly(error: BaseException) -> str:
    """What went wrong, for the log: of what kind it is, and what it says in words of ours."""
    return f"{type(error).__name__}: {unquoted(str(error))}"


class EngineError(Exception):
    """Something the caller must hear about, in terms of the caller's request."""

    code: ClassVar[str] = "INTERNAL"
    retriable: ClassVar[bool] = False
    summary: ClassVar[str] = "Something went wrong."

    def __init__(self, message: str = "", /, **details: Any) -> None:
        self.message = message or self._sentence(details)
        self.details = details
        super().__init__(self.message)

    def _sentence(self, details: dict[str, Any]) -> str:
        field, reason = details.get("field"), details.get("reason")
        if field and reason:
            return f"{self.summary} `{field}`: {reason}."
        return f"{self.summary} {reason}." if reason else self.summary


class InvalidRequest(EngineError):
    """The request itself must change."""

    code = "INVALID_REQUEST"


class InvalidBody(InvalidRequest):
    """The body is not JSON of the expected shape."""

    code = "INVALID_BODY"
    summary = "The request body cannot be read."


class MissingField(InvalidRequest):
    """A required field is absent."""

    code = "MISSING_REQUIRED_FIELD"
    summary = "A required field is missing."


class InvalidEnvelope(InvalidRequest):
    """The experience envelope failed validation."""

    code = "INVALID_ENVELOPE"
    summary = "The experience envelope is not valid."


class InvalidScope(InvalidRequest):
    """A scope path is malformed."""

    code = "INVALID_SCOPE_GRAMMAR"
    summary = "The scope path is malformed."


class InvalidTimestamp(InvalidRequest):
    """A time is not RFC 3339 with a zone."""

    code = "INVALID_TIMESTAMP"
    summary = "The time is not RFC 3339 with a zone."


class UnparseableTemporal(InvalidRequest):
    """A phrase about time was not understood."""

    code = "UNPARSEABLE_TEMPORAL"
    summary = "The temporal phrase was not understood."


class InvalidParameter(InvalidRequest):
    """A query or path parameter is unknown, repeated or out of range."""

    code = "INVALID_PARAMETER"
    summary = "A parameter is not valid."


class InvalidCursor(InvalidRequest):
    """A cursor was not made by this listing."""

    code = "INVALID_CURSOR"
    summary = "The cursor does not belong to this listing."


class InvalidActor(InvalidRequest):
    """The asserted actor is not of the form type:id."""

    code = "INVALID_ACTOR"
    summary = "The actor is not of the form type:id."


class UnregisteredScopeType(InvalidRequest):
    """The scope's type is not of the deployment's closed set (001 §18.2.19)."""

    code = "UNREGISTERED_SCOPE_TYPE"
    summary = "The scope's type is not one of this deployment's."


class EmptySelector(InvalidRequest):
    """An empty selector would forget everything, and that was not confirmed (001 §18.2.13)."""

    code = "EMPTY_SELECTOR_WITHOUT_CONFIRMATION"
    summary = "An empty selector needs confirm_all."


class AmbiguousConfirmAll(InvalidRequest):
    """A selector and `confirm_all` together: one of them is a mistake."""

    code = "AMBIGUOUS_SELECTOR_CONFIRM_ALL"
    summary = "A selector and confirm_all contradict each other."


class BodyTooLarge(InvalidRequest):
    """The body is larger than the endpoint takes."""

    code = "BODY_TOO_LARGE"
    summary = "The request body is too large."


class BodyTimeout(InvalidRequest):
    """The body did not arrive in time."""

    code = "REQUEST_TIMEOUT"
    summary = "The request body did not arrive in time."
    retriable = True


class UnsupportedMediaType(InvalidRequest):
    """The content type is not one the endpoint reads."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    summary = "The content type is not supported."


class MethodNotAllowed(InvalidRequest):
    """The path exists, the method does not."""

    code = "METHOD_NOT_ALLOWED"
    summary = "The method is not allowed here."


class Unauthenticated(EngineError):
    """A valid identity must be presented."""

    code = "UNAUTHENTICATED"
    summary = "The caller could not be identified."


class MissingToken(Unauthenticated):
    """No Authorization header."""

    code = "MISSING_TOKEN"
    summary = "No bearer token was presented."


class BadSignature(Unauthenticated):
    """The token's signature does not verify."""

    code = "INVALID_TOKEN_SIGNATURE"
    summary = "The token's signature does not verify."


class ExpiredToken(Unauthenticated):
    """The token has expired."""

    code = "EXPIRED_TOKEN"
    summary = "The token has expired."


class RevokedToken(Unauthenticated):
    """The token was revoked."""

    code = "REVOKED_TOKEN"
    summary = "The token was revoked."


class ActorMismatch(Unauthenticated):
    """X-Cortex-Actor is not the token's subject."""

    code = "ACTOR_MISMATCH"
    summary = "X-Cortex-Actor does not match the token's subject."


class WrongTenant(Unauthenticated):
    """The token is bound to another deployment or tenant."""

    code = "WRONG_TENANT"
    summary = "The token is bound to another tenant."


class Denied(EngineError):
    """A capability is missing."""

    code = "DENIED"
    summary = "The caller may not do this."


class PolicyDenied(Denied):
    """The effective policy lacks the capability; the details name the tier that denied."""

    code = "POLICY_DENIED"
    summary = "The effective policy does not allow this."


class NotAMember(Denied):
    """The scope is registered and the caller is not a member."""

    code = "NOT_A_MEMBER"
    summary = "The caller is not a member of this scope."


class NotFound(EngineError):
    """The resource is absent."""

    code = "NOT_FOUND"
    summary = "There is no such resource."


class ResourceDeleted(NotFound):
    """The resource was forgotten."""

    code = "RESOURCE_DELETED"
    summary = "The resource was deleted."


class LifecycleExpired(NotFound):
    """The lifecycle id is older than the replay buffer."""

    code = "LIFECYCLE_EXPIRED"
    summary = "The lifecycle id is older than the replay buffer."


class PackExpired(NotFound):
    """The pack is older than sixty seconds, or there never was one."""

    code = "PACK_EXPIRED"
    summary = "The pack is no longer known."


class Conflict(EngineError):
    """The state is not what the request assumed."""

    code = "CONFLICT"
    summary = "The request conflicts with the current state."


class IdempotencyConflict(Conflict):
    """The key was used with another body."""

    code = "IDEMPOTENCY_CONFLICT"
    summary = "The idempotency key was already used with a different body."


class ScopeExists(Conflict):
    """The scope path is already registered."""

    code = "SCOPE_REGISTRATION_EXISTS"
    summary = "The scope path is already registered."


class ScopeHasRecords(Conflict):
    """The scope holds records, and the request does not say what becomes of them."""

    code = "SCOPE_HAS_RECORDS"
    summary = "The scope still holds records."


class BlobInUse(Conflict):
    """Events cite the blob; it goes with the last of them."""

    code = "BLOB_IN_USE"
    summary = "Events still cite the blob."


class RateLimited(EngineError):
    """The token bucket is empty."""

    code = "RATE_LIMITED"
    retriable = True
    summary = "Too many requests."


class Unavailable(EngineError):
    """The same request may succeed later."""

    code = "UNAVAILABLE"
    retriable = True
    summary = "The service cannot do this right now."


class WalUnavailable(Unavailable):
    """The log does not accept writes."""

    code = "WAL_UNAVAILABLE"
    summary = "The log does not accept writes."


class LayerUnavailable(Unavailable):
    """A derived layer cannot be read."""

    code = "DERIVED_LAYER_UNAVAILABLE"
    summary = "A derived layer is degraded."


class AnswerUnavailable(Unavailable):
    """The model that was named cannot be had; the published client looks for this code."""

    code = "ANSWER_UNAVAILABLE"
    summary = "The answer model cannot be reached."


class Overloaded(Unavailable):
    """A queue is full."""

    code = "OVERLOADED"
    summary = "The server is busy."


class Internal(EngineError):
    """An invariant of ours was broken."""

    code = "INTERNAL"
    retriable = True
    summary = "An unexpected error occurred."


REMEDIES: dict[type[EngineError], str] = {
    InvalidRequest: "Change the request: the details name the field and the reason.",
    Unauthenticated: "Present a valid token, and an X-Cortex-Actor that matches it.",
    Denied: "Ask for the capability that the details name, at the tier that denied it.",
    NotFound: "It is not here: check the id, or list what there is.",
    Conflict: "Read the current state again, then decide; a retry as is fails again.",
    RateLimited: "Wait as long as Retry-After says, then retry.",
    Unavailable: "Retry the same request, with the same idempotency key, after Retry-After.",
    Internal: "Retry once with the same idempotency key; then report it with the request id.",
}
"""What to do, a line a group."""
