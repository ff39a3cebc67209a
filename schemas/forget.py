"""What may be forgotten, and what is answered?  (001 §8.5, §11.1, §11.2)"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from schemas import limits
from schemas.envelope import IdempotencyKey
from schemas.scope import ActorId, ScopePath
from schemas.temporal import During
from schemas.times import Instant

Cascade = Literal["derived_only", "redact_events"]
ForgetLayer = Literal["events", "episodes", "facts", "beliefs", "understanding"]
Note = Annotated[str, Meta(max_length=limits.NOTE_CHARS_MAX)]
MemoryId = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]


class Selector(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which records are meant: all filters that are set must match (001 §11.2).

    `memory_ids` come on top, whatever the filters say. `created_during` is the older name of
    `recorded_during`.
    """

    about_subject: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None
    about_entity: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None
    predicate: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] | None = None
    memory_ids: Annotated[list[MemoryId], Meta(max_length=limits.FORGET_IDS_MAX)] = []
    valid_during: During | None = None
    recorded_during: During | None = None
    created_during: During | None = None

    @property
    def has_filters(self) -> bool:
        """Whether it says more than ids."""
        named = (self.about_subject, self.about_entity, self.predicate)
        during = (self.valid_during, self.recorded_during, self.created_during)
        return any(named) or any(one is not None for one in during)

    @property
    def is_empty(self) -> bool:
        """Whether it would match everything (001 §18.2.13)."""
        return not self.has_filters and not self.memory_ids


class ForgetRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What is to be forgotten in one scope. `reason` is the published client's `audit_note`."""

    scope: ScopePath
    layers: Annotated[list[ForgetLayer], Meta(max_length=5)] = []
    selector: Selector = Selector()
    cascade: Cascade = "derived_only"
    confirm_all: bool = False
    audit_note: Note | None = None
    reason: Note | None = None
    from_preview_id: str | None = None
    idempotency_key: IdempotencyKey | None = None

    @property
    def note(self) -> str | None:
        """Why, in whichever of the two fields it was said."""
        return self.audit_note or self.reason


class LayerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many of each layer."""

    events: int = 0
    episodes: int = 0
    facts: int = 0
    beliefs: int = 0
    understanding: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.events + self.episodes + self.facts + self.beliefs + self.understanding


class ForgetReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten, and the row that proves it.

    `pending` when what is read does not show it yet; it is forgotten all the same.
    """

    deleted: LayerCounts
    audit_id: str
    cascade: Cascade = "derived_only"
    deleted_count: int = 0
    forgotten: int = 0
    events_under_legal_hold: int = 0
    reversible_until: Instant | None = None
    pending: bool = False


class ForgetPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a forget would do now; nothing was changed."""

    preview_id: str
    scope: str
    cascade: Cascade
    estimated_deleted: LayerCounts
    estimated_total: int
    events_under_legal_hold: int
    expires_at: Instant


class RevertReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten is derived again: views are rebuilt beside those that are read."""

    audit_id: str
    reverted: str
    restored: LayerCounts
    status: Literal["rebuilding", "nothing to do"]


class HoldRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A legal hold begins or ends."""

    held: bool = True
    reason: Note | None = None


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a scope and what is below it may not be erased."""

    path: str
    held: bool
    by: str | None = None
    since: Instant | None = None
    reason: str | None = None


class RollbackRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Whose events are not to be derived from: all that is said must hold of an event."""

    scope: ScopePath | None = None
    caller: ActorId | None = None
    actor: ActorId | None = None
    recorded_from: Instant | None = None
    recorded_to: Instant | None = None
    dry_run: bool = True
    audit_note: Note | None = None


class RollbackReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollback takes out: events, and the records that rest on them alone or in part."""

    rollback_id: str | None
    dry_run: bool
    events: int
    first_event: str | None
    last_event: str | None
    records_before: LayerCounts
    records_after: LayerCounts | None
    resting_on_them: LayerCounts
    status: Literal["preview", "rebuilding", "reverted", "done"]
