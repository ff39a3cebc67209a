"""What makes two posts the same write?"""

from datetime import UTC, datetime

import msgspec
import pytest

from engine.capture import identity_of
from schemas.envelope import Actor, Context, Directives, Envelope, PlainText

MOMENT = datetime(2026, 5, 13, 12, tzinfo=UTC)
SAID = Envelope(
    scope="org:acme/user:ana",
    observed_actor=Actor(id="user:ana", type="user"),
    subject=Actor(id="user:ben"),
    modality="conversation",
    content=PlainText(text="hello"),
    context=Context(
        observed_at=MOMENT,
        source_recorded_at=MOMENT,
        location={"b": 1, "a": 2},
        preceded_by=["evt_1"],
        intent="greet",
        labels=["x", "y"],
        timezone="Europe/Lisbon",
        refers_to=[{"kind": "ticket"}],
    ),
    directives=Directives(extract=["facts"]),
    idempotency_key="k1",
    language="en",
    scripts=["Latn"],
    source={"z": 1, "app": "assistant"},
)


def test_the_identity_of_a_write_is_what_it_always_was():
    """Its hash is in the log: other fields, or another order, and every retry is a conflict."""
    context = SAID.context
    said = (
        SAID.scope,
        SAID.observed_actor,
        SAID.subject,
        SAID.modality,
        SAID.content,
        (
            context.source_recorded_at,
            context.location,
            context.preceded_by,
            context.intent,
            context.labels,
            context.timezone,
            context.refers_to,
        ),
        SAID.directives,
        SAID.language,
        SAID.scripts,
        SAID.source,
    )

    assert msgspec.msgpack.encode(said, order="deterministic") == identity_of(SAID)


@pytest.mark.parametrize(
    "again",
    [
        msgspec.structs.replace(SAID, idempotency_key="k2"),
        msgspec.structs.replace(
            SAID, context=msgspec.structs.replace(SAID.context, observed_at=MOMENT.replace(1999))
        ),
    ],
)
def test_the_key_and_the_time_of_observation_are_no_part_of_it(again):
    """A retry may carry another time; its key is compared by itself."""
    assert identity_of(SAID) == identity_of(again)
