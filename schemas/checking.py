"""What of an envelope do the types alone not refuse, and what does a bulk call mean in full?"""

from datetime import UTC
from typing import Any

import msgspec
from msgspec import UNSET

from schemas import limits
from schemas.envelope import (
    Actor,
    BulkItem,
    BulkRequest,
    Envelope,
    JsonContent,
    Term,
    TripleContent,
)
from schemas.errors import InvalidEnvelope
from schemas.times import as_utc


def checked(envelope: Envelope, at: str = "") -> Envelope:
    """Refuse what the types alone cannot, naming the field; times come back in UTC.

    The log keeps instants, not zones: what projectors see at capture is what replay will see.
    """
    if envelope.observed_actor is not None:
        _check_type(envelope.observed_actor, at, "observed_actor")
    if envelope.subject is not None:
        _check_type(envelope.subject, at, "subject")
    _check_own_json(envelope, at)
    context = envelope.context
    upstream = context.source_recorded_at
    if context.observed_at.tzinfo is UTC and (upstream is None or upstream.tzinfo is UTC):
        return envelope
    observed_at = as_utc(context.observed_at, f"{at}context.observed_at")
    if upstream is not None:
        upstream = as_utc(upstream, f"{at}context.source_recorded_at")
    context = msgspec.structs.replace(context, observed_at=observed_at, source_recorded_at=upstream)
    return msgspec.structs.replace(envelope, context=context)


def _check_type(actor: Actor, at: str, name: str) -> None:
    """A type that is stated must be that of the id."""
    if actor.type is not None and not actor.id.startswith(actor.type + ":"):
        reason = f"type {actor.type!r} is not the type of id {actor.id!r}"
        raise InvalidEnvelope(field=f"{at}{name}.type", reason=reason)


def _check_own_json(envelope: Envelope, at: str) -> None:
    """Look at every place of the envelope that holds JSON of the client's own shape."""
    content, context = envelope.content, envelope.context
    if isinstance(content, JsonContent):
        check_free_json(content.data, "content.data", at)
    elif isinstance(content, TripleContent):
        for end in ("subject", "object"):
            term = getattr(content.triple, end)
            value = term.value if isinstance(term, Term) else term
            check_free_json(value, f"content.triple.{end}", at)
    if content.media is not UNSET:
        for index, media in enumerate(content.media):
            if media.hints is not None:
                check_free_json(media.hints, f"content.media[{index}].hints", at)
    if isinstance(context.location, dict):
        check_free_json(context.location, "context.location", at)
    if context.refers_to:
        check_free_json(context.refers_to, "context.refers_to", at)
    if envelope.source is not None:
        check_free_json(envelope.source, "source", at)


def check_free_json(value: Any, field: str, at: str = "") -> None:
    """Refuse nesting and integers that a reader of the record could not take."""
    level = [value]
    for _ in range(limits.JSON_DEPTH_MAX):
        deeper: list[Any] = []
        for node in level:
            if type(node) is str:
                continue
            if isinstance(node, dict):
                deeper.extend(node.values())
            elif isinstance(node, list):
                deeper.extend(node)
            elif type(node) is int and not limits.INTEGER_MIN <= node <= limits.INTEGER_MAX:
                raise InvalidEnvelope(field=at + field, reason="an integer does not fit in 64 bits")
        if not deeper:
            return
        level = deeper
    raise InvalidEnvelope(
        field=at + field, reason=f"nested deeper than {limits.JSON_DEPTH_MAX} levels"
    )


def scopes_of(request: BulkRequest) -> set[str]:
    """Every scope a bulk call names."""
    named = {request.scope, *(item.scope for item in request.items)}
    return {scope for scope in named if scope is not None}


def full_envelopes(request: BulkRequest) -> list[Envelope]:
    """Every item of a bulk call as an envelope of its own, the shared header filled in."""
    shared_actor = request.observed_actor or request.actor
    return [_full(request, item, shared_actor, at) for at, item in enumerate(request.items)]


def _full(request: BulkRequest, item: BulkItem, actor: Actor | None, at: int) -> Envelope:
    scope = item.scope or request.scope
    if scope is None:
        raise InvalidEnvelope(field=f"items[{at}].scope", reason="no scope here nor in the header")
    return Envelope(
        scope=scope,
        observed_actor=item.observed_actor or item.actor or actor,
        subject=item.subject or request.subject,
        modality=item.modality,
        content=item.content,
        context=item.context,
        directives=item.directives or request.directives,
        idempotency_key=item.idempotency_key,
        language=item.language,
        scripts=item.scripts,
        source=item.source,
    )
