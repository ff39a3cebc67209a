"""What do agents hand to each other?  Peers, handoffs, shared state, reconciliations (000).

Lengths of single texts that the contract answers with 400 are no part of a shape: the service
checks them after the shape (`api/cognirelay/translate/coordination.py`).
"""

from typing import Any, Final

from schemas import limits
from schemas.surfaces.shapes import (
    Choice,
    Complaint,
    Field,
    Items,
    Loc,
    Maybe,
    Model,
    Number,
    Shape,
    Text,
)

Fields = dict[str, Field | Shape]

SUBJECT_KINDS: Final = ("user", "peer", "thread", "task")
TRUST_LEVELS: Final = ("trusted", "restricted", "untrusted")
HANDOFF_ENDINGS: Final = ("accepted_advisory", "deferred", "rejected")
HANDOFF_STATUSES: Final = ("pending", *HANDOFF_ENDINGS)
SOURCE_KINDS: Final = ("handoff", "shared")
CLASSIFICATIONS: Final = (
    "contradictory",
    "stale_observation",
    "frame_conflict",
    "concurrent_race",
)
TRIGGERS: Final = (
    "handoff_vs_handoff",
    "shared_vs_shared",
    "handoff_vs_shared",
    "concurrent_mutation_race",
)
EPISTEMIC_STATUSES: Final = (
    "frame_present",
    "frame_absent_evidence_confirms",
    "frame_status_unknown",
)
OUTCOMES: Final = ("advisory_only", "conflicted", "rejected")

_ID = Text(limits.COGNIRELAY_ID_CHARS_MAX, 1)
_MAYBE_ID = Field(Maybe(Text(limits.COGNIRELAY_ID_CHARS_MAX)), None)
_MAYBE_TEXT = Field(Maybe(Text()), None)
_MAYBE_NOTE = Field(Maybe(Text(limits.COORDINATION_NOTE_CHARS_MAX)), None)
_TEXTS = Field(Items(Text(), limits.COORDINATION_ITEMS_MAX), list)
_LINKS: Final[Fields] = {"task_id": _MAYBE_ID, "thread_id": _MAYBE_ID}
_VERSION = Number(1)
_PAGE: Final[Fields] = {
    "offset": Field(Number(0), 0),
    "limit": Field(
        Number(1, limits.COORDINATION_PAGE_ITEMS_MAX), limits.COORDINATION_PAGE_ITEMS_DEFAULT
    ),
}
_STATE: Final[Fields] = {
    "title": Text(),
    "summary": _MAYBE_TEXT,
    "constraints": _TEXTS,
    "drift_signals": _TEXTS,
    "coordination_alerts": _TEXTS,
    "commit_message": _MAYBE_TEXT,
}

REGISTER_PEER: Final = Model(
    "PeerRegisterRequest",
    {
        "peer_id": _ID,
        "base_url": Text(limits.PEER_URL_CHARS_MAX),
        "public_key": Field(Maybe(Text(limits.PEER_KEY_CHARS_MAX)), None),
        "capabilities_url": Field(Text(limits.PEER_URL_CHARS_MAX), "/v1/manifest"),
        "trust_level": Field(Choice(TRUST_LEVELS), "restricted"),
        "allowed_scopes": Field(
            Items(Text(limits.COGNIRELAY_ID_CHARS_MAX, 1), limits.PEER_SCOPES_MAX), list
        ),
        "expected_public_key_fingerprint": Field(Maybe(Text(limits.COGNIRELAY_ID_CHARS_MAX)), None),
        "transition_reason": Field(Maybe(Text(limits.COORDINATION_NOTE_CHARS_MAX)), None),
    },
)

CREATE_HANDOFF: Final = Model(
    "CoordinationHandoffCreateRequest",
    {
        "recipient_peer": _ID,
        "subject_kind": Choice(SUBJECT_KINDS),
        "subject_id": _ID,
        **_LINKS,
        "note": _MAYBE_NOTE,
        "commit_message": _MAYBE_TEXT,
    },
)

CONSUME_HANDOFF: Final = Model(
    "CoordinationHandoffConsumeRequest",
    {"status": Choice(HANDOFF_ENDINGS), "reason": _MAYBE_NOTE, "note": _MAYBE_NOTE},
)
"""`note` is the seed's word; the running system knows only `reason`. Each is kept as it came."""

QUERY_HANDOFFS: Final = Model(
    "CoordinationHandoffQueryRequest",
    {
        "recipient_peer": _MAYBE_ID,
        "sender_peer": _MAYBE_ID,
        "status": Field(Maybe(Choice(HANDOFF_STATUSES)), None),
        **_PAGE,
    },
)

CREATE_SHARED: Final = Model(
    "CoordinationSharedCreateRequest",
    {
        "participant_peers": Field(Items(_ID, limits.COORDINATION_ITEMS_MAX, 1), list),
        **_LINKS,
        **_STATE,
    },
)
"""Nobody to share with is refused, said or unsaid; the published schema says only the first."""

QUERY_SHARED: Final = Model(
    "CoordinationSharedQueryRequest",
    {"owner_peer": _MAYBE_ID, "participant_peer": _MAYBE_ID, **_LINKS, **_PAGE},
)

UPDATE_SHARED: Final = Model(
    "CoordinationSharedUpdateRequest",
    {"expected_version": _VERSION, **_STATE},
    forbids_extra=True,
)

CLAIM: Final = Model(
    "CoordinationReconciliationClaim",
    {
        "source_kind": Choice(SOURCE_KINDS),
        "source_id": Text(limits.COORDINATION_SOURCE_CHARS_MAX, 1),
        "claimant_peer": _ID,
        "claim_summary": Text(),
        "epistemic_status": Choice(EPISTEMIC_STATUSES),
        "evidence_refs": Field(Items(Text(), limits.COORDINATION_EVIDENCE_MAX), list),
        "observed_version": Field(Maybe(_VERSION), None),
    },
    forbids_extra=True,
)

OPEN_RECONCILIATION: Final = Model(
    "CoordinationReconciliationOpenRequest",
    {
        **_LINKS,
        "title": Text(),
        "summary": _MAYBE_TEXT,
        "classification": Choice(CLASSIFICATIONS),
        "trigger": Choice(TRIGGERS),
        "claims": Field(Items(CLAIM, limits.COORDINATION_CLAIMS_MAX), list),
        "commit_message": _MAYBE_TEXT,
    },
    forbids_extra=True,
)


class _Resolve(Model):
    """The text calls the outcome `resolution_outcome`; the running system refuses that name.

    A request that is complete but for the name is taken; any other hears what the system says.
    """

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The fields, with the outcome under the system's name."""
        if isinstance(value, dict) and value.get("resolution_summary") and "outcome" not in value:
            names = {"resolution_outcome": "outcome"}
            value = {names.get(name, name): item for name, item in value.items()}
        return super().read(value, loc, wrong)


RESOLVE_RECONCILIATION: Final = _Resolve(
    "CoordinationReconciliationResolveRequest",
    {
        "expected_version": _VERSION,
        "outcome": Choice(OUTCOMES),
        "resolution_summary": _MAYBE_TEXT,
        "commit_message": _MAYBE_TEXT,
    },
    forbids_extra=True,
)

QUERY_RECONCILIATIONS: Final = Model(
    "CoordinationReconciliationQueryRequest",
    {
        "owner_peer": _MAYBE_ID,
        "claimant_peer": _MAYBE_ID,
        "status": Field(Maybe(Choice(("open", "resolved"))), None),
        "classification": Field(Maybe(Choice(CLASSIFICATIONS)), None),
        **_LINKS,
        **_PAGE,
    },
)
