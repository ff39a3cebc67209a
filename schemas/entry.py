"""What does the log hold?  One row: who, when, and a body of one of three kinds (DESIGN §1)."""

from datetime import datetime
from typing import Any

import msgspec

from schemas.envelope import Envelope

SCHEMA_VERSION = 1
"""Of bodies. A stored struct only ever gains fields with defaults; a break raises this number."""


class Experience(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="experience"):
    """An envelope as it was posted."""

    envelope: Envelope
    batch_id: str | None = None


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


Command = Cancel | Park | Unpark


class Directive(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="directive"):
    """A command that changed control state."""

    command: Command
    scope: str | None = None


class Annotation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="annotation"):
    """A model's output about an entry, so that replay never calls the model."""

    about: str
    model: str
    version: str
    output: dict[str, Any]
    scope: str | None = None


Body = Experience | Directive | Annotation

KINDS: dict[type[Body], int] = {Experience: 1, Directive: 2, Annotation: 3}
"""The kind as the header keeps it: it stays readable when the payload is erased."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the log. `body` is None when the payload was erased."""

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

    @property
    def envelope(self) -> Envelope | None:
        """The experience's envelope, when this is one and it was not erased."""
        return self.body.envelope if isinstance(self.body, Experience) else None


def scope_of(body: Body) -> str:
    """The scope an entry lives in; the empty string for what concerns no scope."""
    if isinstance(body, Experience):
        return body.envelope.scope
    return body.scope or ""
