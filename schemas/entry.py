"""What does the log hold?  One row: who, when, and a body of one of three kinds (DESIGN §1)."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from schemas.envelope import Envelope
from schemas.jobs import CancelJob, EndJob, MoveJob, RetryJob, StartJob
from schemas.layers import Fact
from schemas.policy import PolicyDocument
from schemas.scope import ActorId, ScopePath
from schemas.temporal import Phrase
from schemas.times import Instant
from schemas.vocabularies import Vocabulary

SCHEMA_VERSION = 1
"""Of bodies. A stored struct only ever gains fields with defaults; a break raises this number."""


class PutDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A surface's value under a key is now so (DESIGN §1, ADR 0029).

    It says all there is to say, the number of the version too: what stands under the key follows
    from this entry alone, also where the payloads of earlier versions are gone.
    """

    surface: str
    kind: str
    key: str
    version: int
    state: str
    value: Any = None
    labels: tuple[str, ...] = ()


class Experience(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="experience", gc=False
):
    """An envelope as it was posted; of a surface, the document whose words it has."""

    envelope: Envelope
    batch_id: str | None = None
    document: PutDocument | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="cancel"):
    """Do not derive from this event, and leave it out of recall (001 §8.9.5).

    `stages` are those that had not run when the cancellation was written: replay skips the same.
    """

    event_id: str
    offset: int
    stages: list[str]
    note: str | None = None


class Park(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="park"):
    """A projector could not take an entry: it is skipped, here and in every replay."""

    projector: str
    offset: int
    event_id: str
    error: str
    attempts: int


class Unpark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="unpark"):
    """Try the parked entries of a projector again; its views are rebuilt beside the old ones."""

    projector: str
    offsets: list[int]


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An actor's role in a scope."""

    actor: ActorId
    role: Literal["owner", "writer", "reader"]


class ScopePolicies(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How a registered scope wants its memory treated (001 §8.8.1)."""

    consolidation: str | None = None
    conflict_resolution: str | None = None
    inherit_from: list[ScopePath] = []
    audit: str | None = None
    children: dict[str, Any] = {}


class RegisterScope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="register_scope"
):
    """A scope gets members and policies; the directive's scope is its path."""

    members: list[Member]
    policies: ScopePolicies | None = None


class SetMembers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="set_members"):
    """A scope's members are now these."""

    members: list[Member]


class DropScope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="drop_scope"):
    """A scope's registration and policy are gone; its events stay in the log."""

    records: Literal["none", "keep"]


class SetPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="set_policy"):
    """A tier's document is now this; for the tier `scope` the directive's scope is its target."""

    tier: Literal["deployment", "tenant", "scope", "actor"]
    target: str
    document: PolicyDocument


class Revoke(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="revoke"):
    """A token is not to be accepted any more, until it would have expired anyway."""

    jti: str
    expires_at: Instant
    reason: str | None = None


class SetVocabulary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="set_vocabulary"
):
    """A tenant's vocabulary of this name is now this (001 §8.14)."""

    vocabulary: Vocabulary


class DropVocabulary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="drop_vocabulary"
):
    """A tenant's vocabulary is gone; facts keep the terms they have."""

    name: str


class SetPhrase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="set_phrase"):
    """A tenant's words for a stretch of time (001 §8.17)."""

    phrase: Phrase


class DropPhrase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="drop_phrase"):
    """Those words mean nothing any more."""

    name: str


class Synthesize(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="synthesize"):
    """Make the concepts of the directive's scope anew (001 §8.7.11).

    Without `force` only those with inputs they have not seen. One entry makes at most
    `limits.SYNTHESIS_CONCEPTS_MAX`; `after` is the concept at which the entry before left off.
    """

    topics: list[str] = []
    force: bool = False
    after: str | None = None
    job_id: str | None = None


class StoreBlob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="store_blob"):
    """Bytes were kept under this id. Their key is here: with this payload it is destroyed."""

    blob_id: str
    size_bytes: int
    sha256: str
    content_type: str
    digest: bytes
    key: bytes
    sniffed: str | None = None
    filename: str | None = None
    perceptual_hash: str | None = None


class DropBlob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="drop_blob"):
    """A blob that nothing cites was taken away."""

    blob_id: str


class ForgottenRecord(msgspec.Struct, frozen=True, array_like=True):
    """A derived record that is to be known no more, and the number of the scope it lives in."""

    id: str
    scope_no: int


class ForgottenEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event that no longer counts, with what hangs on its payload: that may be gone on replay.

    `annotations` are the offsets of what a model said of it; `derived` what followed from it;
    `references` how often other scopes cite it, and `referring` the numbers of those; `told`
    concepts that rest on it, each with the offset of what a model wrote of it.
    """

    event_id: str
    offset: int
    scope_no: int
    blobs: list[str] = []
    cites: list[str] = []
    derived: list[str] = []
    annotations: list[int] = []
    references: int = 0
    told: list[tuple[str, int]] = []
    referring: list[int] = []

    @property
    def offsets(self) -> list[int]:
        """Every entry whose payload goes with it."""
        return [self.offset, *self.annotations, *(offset for _, offset in self.told)]


class KeptFact(msgspec.Struct, frozen=True, array_like=True):
    """A fact of another scope whose event loses its payload: replay could not derive it again.

    `basis` is what it rests on, as its projector keeps it; `root` what its subject is the same as.
    """

    fact: Fact
    basis: bytes
    root: str


class Forget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="forget"):
    """These records are known no more, and what rests on them is weighed anew (001 §8.5, §11).

    It says what the selector came to, so that replay does the same. With `derived_only` events are
    untouched, with the other cascades their payloads go. `counts` are what the caller was told;
    `demoted` beliefs of other scopes rest on `kept` facts alone.
    """

    cascade: Literal["derived_only", "redact_events", "gdpr"]
    audit_id: str
    records: list[ForgottenRecord] = []
    events: list[ForgottenEvent] = []
    kept: list[KeptFact] = []
    demoted: list[ForgottenRecord] = []
    counts: dict[str, int] = {}
    note: str | None = None
    erasure_id: str | None = None


class Unforget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="unforget"):
    """A forget of derived records is lifted: replay passes over the entries at these offsets."""

    audit_id: str
    offsets: list[int]


class Exclude(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="exclude"):
    """Nothing is derived from these events: what a caller brought in is not believed."""

    rollback_id: str
    offsets: list[int]
    note: str | None = None


class Include(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="include"):
    """A rollback is lifted: these events count again."""

    rollback_id: str
    offsets: list[int]


class SetHold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="set_hold"):
    """A legal hold on the directive's scope begins or ends: what is held is not erased."""

    held: bool
    reason: str | None = None


class Tick(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tick"):
    """Time has passed and nothing else was written: these records may be due.

    Projectors know time from entries only; whether a record is due by this one's they see
    themselves. Nobody's command: the engine writes it when something may be due, else never.
    """

    due: list[str]


Command = (
    Cancel
    | Park
    | Unpark
    | RegisterScope
    | SetMembers
    | DropScope
    | SetPolicy
    | Revoke
    | SetVocabulary
    | DropVocabulary
    | SetPhrase
    | DropPhrase
    | Synthesize
    | Tick
    | StoreBlob
    | DropBlob
    | StartJob
    | MoveJob
    | CancelJob
    | EndJob
    | RetryJob
    | Forget
    | Unforget
    | Exclude
    | Include
    | SetHold
)


class Directive(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="directive"):
    """A command that changed control state."""

    command: Command
    scope: str | None = None


class Annotation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="annotation"):
    """A model's output about an entry, so that replay never calls the model.

    `frame` is the envelope of that entry without its words: who spoke, when, what was asked for.
    """

    about: str
    model: str
    version: str
    output: dict[str, Any]
    scope: str | None = None
    frame: Envelope | None = None


Body = Experience | Directive | Annotation

KINDS: dict[type[Body], int] = {Experience: 1, Directive: 2, Annotation: 3}
"""The kind as the header keeps it: it stays readable when the payload is erased."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the log. `body` is None when the payload was erased.

    `into_scope` is where its records go when that is another scope than its own (001 §3.5.3).
    """

    offset: int
    id: bytes
    event_id: str
    tenant: str
    tenant_no: int
    scope: str
    scope_no: int
    caller: str
    recorded_at: datetime
    kind: int
    body: Body | None
    into_scope: str = ""
    into_scope_no: int = 0

    @property
    def home_scope(self) -> str:
        """The scope in which what follows from the entry lives."""
        return self.into_scope if self.into_scope_no else self.scope

    @property
    def home_scope_no(self) -> int:
        """The number of that scope."""
        return self.into_scope_no or self.scope_no

    @property
    def envelope(self) -> Envelope | None:
        """The experience's envelope, when this is one and it was not erased."""
        return self.body.envelope if isinstance(self.body, Experience) else None


def scope_of(body: Body) -> str:
    """The scope an entry lives in; the empty string for what concerns no scope."""
    if isinstance(body, Experience):
        return body.envelope.scope
    return body.scope or ""


def envelope_of(body: Body | None) -> Envelope | None:
    """The envelope an entry speaks for: its own, or that of the event a model has read."""
    if isinstance(body, Experience):
        return body.envelope
    return body.frame if isinstance(body, Annotation) else None


def into_scope_of(body: Body | None) -> str:
    """The scope an experience is to be consolidated into; the empty string for none."""
    envelope = envelope_of(body)
    directives = envelope.directives if envelope is not None else None
    return (directives.consolidate_into or "") if directives is not None else ""
