"""What does a capsule look like, and what may be asked of one?  (000, continuity)

Counts, enumerations and a few lengths are of the shape; the lengths of items, dates, paths and
duplicates are rules of `api/cognirelay/translate`, which answers them with another status.
"""

from typing import Any, Final

from schemas.limits import (
    CAPSULE_CHARS as CHARS,
)
from schemas.limits import (
    CAPSULE_ENTRIES as ENTRIES,
)
from schemas.limits import (
    CAPSULE_LISTS,
    CAPSULE_PAGE_ITEMS_DEFAULT,
    CAPSULE_PAGE_ITEMS_MAX,
    CAPSULE_REASON_CHARS_MIN,
    CAPSULE_STALE_S,
    COGNIRELAY_ID_CHARS_MAX,
)
from schemas.surfaces.shapes import (
    ABSENT,
    Anything,
    Choice,
    Field,
    Flag,
    Items,
    Maybe,
    Model,
    Number,
    Shape,
    Table,
    Text,
)

KINDS: Final = ("user", "peer", "thread", "task")
VERIFIERS: Final = (
    "self_review",
    "external_observation",
    "user_confirmation",
    "peer_confirmation",
    "system_check",
)
TRANSITIONS: Final = ("suspend", "resume", "conclude", "supersede")
LIFECYCLES: Final = ("active", "suspended", "concluded", "superseded")
CORE_LISTS: Final = (
    "top_priorities",
    "active_concerns",
    "active_constraints",
    "open_loops",
    "drift_signals",
)
"""The lists every capsule has."""
MORE_LISTS: Final = tuple(name for name in CAPSULE_LISTS if name not in CORE_LISTS)

KIND: Final = Choice(KINDS)
SUBJECT: Final = Text(COGNIRELAY_ID_CHARS_MAX, 1)
MESSAGE: Final = Field(Maybe(Text(CHARS["message"])), None)


def _may(shape: Shape) -> Field:
    """A field that may be left out or null; stored, it is not there then."""
    return Field(Maybe(shape), ABSENT)


def _list(shape: Shape, count: int) -> Field:
    """A list that is empty when it is not given."""
    return Field(Items(shape, count), list)


def _sentences(name: str) -> Items:
    return Items(Text(), CAPSULE_LISTS[name][0])


_STAMPS: Final[dict[str, Field | Shape]] = {
    name: _may(Text()) for name in ("created_at", "updated_at", "last_confirmed_at")
}
NEGATIVE_DECISION: Final = Model(
    "NegativeDecision", {"decision": Text(), "rationale": Text(), **_STAMPS}, forbids_extra=True
)
RATIONALE_ENTRY: Final = Model(
    "RationaleEntry",
    {
        "tag": Text(CHARS["tag"], 1),
        "kind": Choice(("decision", "assumption", "tension")),
        "status": Choice(("active", "superseded", "retired")),
        "summary": Text(CHARS["summary"]),
        "reasoning": Text(CHARS["reasoning"]),
        "alternatives_considered": _list(Text(), ENTRIES["considered"]),
        "depends_on": _list(Text(), ENTRIES["considered"]),
        "supersedes": _may(Text(CHARS["tag"])),
        **_STAMPS,
    },
    forbids_extra=True,
)
STABLE_PREFERENCE: Final = Model(
    "StablePreference",
    {"tag": Text(CHARS["tag"], 1), "content": Text(CHARS["preference"], 1), **_STAMPS},
    forbids_extra=True,
)
IDENTITY_ANCHOR: Final = Model(
    "IdentityAnchor", {"kind": Text(CHARS["anchor_kind"], 1), "value": SUBJECT}
)
THREAD_DESCRIPTOR: Final = Model(
    "ThreadDescriptor",
    {
        "label": Text(CHARS["label"], 1),
        "keywords": _list(Text(), ENTRIES["keywords"]),
        "scope_anchors": _list(Text(), ENTRIES["scope_anchors"]),
        "identity_anchors": _list(IDENTITY_ANCHOR, ENTRIES["identity_anchors"]),
        "lifecycle": _may(Choice(LIFECYCLES)),
        "superseded_by": _may(SUBJECT),
    },
)
STRUCTURED: Final = {
    "negative_decisions": NEGATIVE_DECISION,
    "rationale_entries": RATIONALE_ENTRY,
    "stable_preferences": STABLE_PREFERENCE,
    "identity_anchors": IDENTITY_ANCHOR,
}
"""Lists whose items are more than a sentence."""

_CONTINUITY: Final = Model(
    "ContinuityState",
    {
        "top_priorities": _sentences("top_priorities"),
        "active_concerns": _sentences("active_concerns"),
        "active_constraints": _sentences("active_constraints"),
        "open_loops": _sentences("open_loops"),
        "stance_summary": Text(CHARS["stance_summary"]),
        "drift_signals": _sentences("drift_signals"),
        "working_hypotheses": Field(_sentences("working_hypotheses"), list),
        "long_horizon_commitments": Field(_sentences("long_horizon_commitments"), list),
        "session_trajectory": Field(_sentences("session_trajectory"), list),
        "negative_decisions": _list(NEGATIVE_DECISION, ENTRIES["negative_decisions"]),
        "trailing_notes": Field(_sentences("trailing_notes"), list),
        "curiosity_queue": Field(_sentences("curiosity_queue"), list),
        "rationale_entries": _list(RATIONALE_ENTRY, ENTRIES["rationale_entries"]),
        "related_documents": Field(Anything(), ABSENT),
        "relationship_model": _may(
            Model(
                "ContinuityRelationshipModel",
                {
                    "trust_level": _may(Choice(("low", "guarded", "normal", "high"))),
                    "preferred_style": _list(Text(), ENTRIES["preferred_style"]),
                    "sensitivity_notes": _list(Text(), ENTRIES["sensitivity_notes"]),
                },
            )
        ),
        "retrieval_hints": _may(
            Model(
                "ContinuityRetrievalHints",
                {
                    name: _list(Text(), ENTRIES["hints"])
                    for name in ("must_include", "avoid", "load_next")
                },
            )
        ),
    },
)
_SHARE: Final = Number(0, 1, is_whole=False)
CAPSULE: Final = Model(
    "ContinuityCapsule",
    {
        "schema_version": Field(Choice(("1.0", "1.1")), "1.1"),
        "subject_kind": KIND,
        "subject_id": SUBJECT,
        "updated_at": Text(),
        "verified_at": Text(),
        "source": Model(
            "ContinuitySource",
            {
                "producer": Text(CHARS["producer"], 1),
                "update_reason": Choice(
                    (
                        "startup_refresh",
                        "pre_compaction",
                        "interaction_boundary",
                        "manual",
                        "migration",
                    )
                ),
                "inputs": _list(Text(), ENTRIES["inputs"]),
            },
        ),
        "continuity": _CONTINUITY,
        "confidence": Model(
            "ContinuityConfidence", {"continuity": _SHARE, "relationship_model": _SHARE}
        ),
        "verification_kind": _may(Choice(VERIFIERS)),
        "attention_policy": _may(
            Model(
                "ContinuityAttentionPolicy",
                {
                    "early_load": _list(Text(), ENTRIES["early_load"]),
                    "presence_bias_overrides": _list(Text(), ENTRIES["presence_bias_overrides"]),
                },
            )
        ),
        "freshness": _may(
            Model(
                "ContinuityFreshness",
                {
                    "freshness_class": _may(
                        Choice(("persistent", "durable", "situational", "ephemeral"))
                    ),
                    "expires_at": _may(Text()),
                    "stale_after_seconds": _may(Number(*CAPSULE_STALE_S)),
                },
            )
        ),
        "canonical_sources": _list(Text(), ENTRIES["canonical_sources"]),
        "metadata": Field(Table(), dict),
        "verification_state": _may(
            Model(
                "ContinuityVerificationState",
                {
                    "status": Choice(
                        (
                            "unverified",
                            "self_attested",
                            "externally_supported",
                            "user_confirmed",
                            "peer_confirmed",
                            "system_confirmed",
                            "conflicted",
                        )
                    ),
                    "last_revalidated_at": Text(),
                    "strongest_signal": Choice(VERIFIERS),
                    "evidence_refs": _list(Text(), ENTRIES["evidence_refs"]),
                    "conflict_summary": _may(Text(CHARS["message"])),
                },
            )
        ),
        "capsule_health": _may(
            Model(
                "ContinuityCapsuleHealth",
                {
                    "status": Choice(("healthy", "degraded", "conflicted")),
                    "reasons": _list(Text(), ENTRIES["reasons"]),
                    "last_checked_at": Text(),
                },
            )
        ),
        "stable_preferences": _list(STABLE_PREFERENCE, ENTRIES["stable_preferences"]),
        "thread_descriptor": _may(THREAD_DESCRIPTOR),
    },
)
SNAPSHOT: Final = Model(
    "SessionEndSnapshot",
    {
        "open_loops": _sentences("open_loops"),
        "top_priorities": _sentences("top_priorities"),
        "active_constraints": _sentences("active_constraints"),
        "stance_summary": Text(CHARS["stance_summary"]),
        "negative_decisions": _may(Items(NEGATIVE_DECISION, ENTRIES["negative_decisions"])),
        "session_trajectory": _may(_sentences("session_trajectory")),
        "rationale_entries": _may(Items(RATIONALE_ENTRY, ENTRIES["rationale_entries"])),
    },
)

# ── requests ─────────────────────────────────────────────────────────────────────────────────

_SUBJECT: Final[dict[str, Field | Shape]] = {"subject_kind": KIND, "subject_id": SUBJECT}
_SIGNALS: Final = Items(
    Model(
        "ContinuityVerificationSignal",
        {
            "kind": Choice(VERIFIERS),
            "source_ref": Text(CHARS["reference"], 1),
            "observed_at": Text(),
            "summary": Text(CHARS["message"], 1),
        },
    ),
    ENTRIES["signals"],
    1,
)
STRING_TARGETS: Final = (
    "continuity.open_loops",
    "continuity.top_priorities",
    "continuity.active_constraints",
    "continuity.active_concerns",
    "continuity.drift_signals",
    "continuity.working_hypotheses",
    "continuity.long_horizon_commitments",
    "continuity.session_trajectory",
    "continuity.trailing_notes",
    "continuity.curiosity_queue",
)
PATCH_TARGETS: Final = (
    *STRING_TARGETS,
    "continuity.negative_decisions",
    "continuity.rationale_entries",
    "stable_preferences",
    "thread_descriptor.keywords",
    "thread_descriptor.scope_anchors",
    "thread_descriptor.identity_anchors",
)
"""The closed list of what a patch may touch."""

UPSERT: Final = Model(
    "ContinuityUpsertRequest",
    {
        **_SUBJECT,
        "capsule": CAPSULE,
        "commit_message": MESSAGE,
        "idempotency_key": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "session_end_snapshot": Field(Maybe(SNAPSHOT), None),
        "lifecycle_transition": Field(Maybe(Choice(TRANSITIONS)), None),
        "superseded_by": Field(Maybe(SUBJECT), None),
        "merge_mode": Field(Choice(("replace", "preserve")), "replace"),
    },
)
PATCH: Final = Model(
    "ContinuityPatchRequest",
    {
        **_SUBJECT,
        "updated_at": Text(),
        "operations": Items(
            Model(
                "PatchOperation",
                {
                    "target": Choice(PATCH_TARGETS),
                    "action": Choice(("append", "remove", "replace_at")),
                    "value": Field(Anything(), None),
                    "match": Field(Maybe(Text()), None),
                    "index": Field(Maybe(Number()), None),
                },
            ),
            ENTRIES["operations"],
            1,
        ),
        "commit_message": MESSAGE,
    },
)
LIFECYCLE: Final = Model(
    "ContinuityLifecycleRequest",
    {
        "subject_kind": Choice(("thread", "task")),
        "subject_id": SUBJECT,
        "transition": Choice(TRANSITIONS),
        "superseded_by": Field(Maybe(SUBJECT), None),
        "updated_at": Text(),
        "commit_message": MESSAGE,
    },
)
READ: Final = Model(
    "ContinuityReadRequest",
    {
        **_SUBJECT,
        "allow_fallback": Field(Flag(), default=False),
        "view": Field(Maybe(Choice(("startup",))), None),
        "as_of": Field(Maybe(Text()), None),
    },
)
COMPARE: Final = Model(
    "ContinuityCompareRequest", {**_SUBJECT, "candidate_capsule": CAPSULE, "signals": _SIGNALS}
)
REVALIDATE: Final = Model(
    "ContinuityRevalidateRequest",
    {
        **_SUBJECT,
        "outcome": Choice(("confirm", "correct", "degrade", "conflict")),
        "signals": _SIGNALS,
        "candidate_capsule": Field(Maybe(CAPSULE), None),
        "reason": Field(Maybe(Text(CHARS["doubt"], 1)), None),
    },
)
LIST: Final = Model(
    "ContinuityListRequest",
    {
        "subject_kind": Field(Maybe(KIND), None),
        "limit": Field(Number(1, CAPSULE_PAGE_ITEMS_MAX), CAPSULE_PAGE_ITEMS_DEFAULT),
        "include_fallback": Field(Flag(), default=False),
        "include_archived": Field(Flag(), default=False),
        "include_cold": Field(Flag(), default=False),
        "lifecycle": Field(Maybe(Choice(LIFECYCLES)), None),
        "scope_anchor": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "keyword": Field(Maybe(Text(CHARS["keyword"])), None),
        "label_exact": Field(Maybe(Text(CHARS["label"])), None),
        "anchor_kind": Field(Maybe(Text(CHARS["anchor_kind"])), None),
        "anchor_value": Field(Maybe(Text(COGNIRELAY_ID_CHARS_MAX)), None),
        "sort": Field(Maybe(Choice(("default", "salience"))), "default"),
    },
)
_REASON: Final = Text(CHARS["message"], CAPSULE_REASON_CHARS_MIN)
ARCHIVE: Final = Model("ContinuityArchiveRequest", {**_SUBJECT, "reason": _REASON})
_PARTS: Final = ("delete_active", "delete_archive", "delete_fallback")


def _some_part(given: dict[str, Any]) -> str | None:
    return (
        None if any(given.get(name) for name in _PARTS) else "at least one delete flag must be true"
    )


DELETE: Final = Model(
    "ContinuityDeleteRequest",
    {
        **_SUBJECT,
        **{name: Field(Flag(), default=False) for name in _PARTS},
        "reason": _REASON,
    },
    check=_some_part,
)
