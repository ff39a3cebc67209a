"""What does an envelope take, what does it refuse, and how is a bulk call filled in?  (001 §3.5)"""

import msgspec
import pytest

from schemas import limits
from schemas.checking import check_free_json, checked, full_envelopes, scopes_of
from schemas.envelope import MODALITIES, BulkRequest, Duration, Envelope
from schemas.errors import InvalidEnvelope, InvalidTimestamp

SENT = {
    "scope": "org:acme/user:alice",
    "modality": "conversation",
    "content": {"kind": "message", "role": "user", "text": "hello"},
    "context": {"observed_at": "2026-05-13T15:42:00Z"},
    "idempotency_key": "k-1",
}


def made(**changes):
    """An envelope with some parts replaced."""
    return msgspec.convert(SENT | changes, Envelope)


def item(**changes):
    """A bulk item without a scope."""
    return {name: value for name, value in SENT.items() if name != "scope"} | changes


def nested(depth):
    """A value of so many levels."""
    value = 1
    for _ in range(depth - 1):
        value = [value]
    return value


def test_what_was_not_sent_is_not_made_up():
    """An envelope encodes to what it was decoded from."""
    envelope = msgspec.json.decode(msgspec.json.encode(SENT), type=Envelope)

    assert SENT == msgspec.json.decode(msgspec.json.encode(envelope))


def test_the_listed_modalities():
    """Those that trigger extraction (001 §3.5.3); others are taken, too."""
    listed = "conversation document tool_result observation feedback imported"

    assert tuple(listed.split()) == MODALITIES
    assert "smell" == made(modality="smell").modality


@pytest.mark.parametrize(
    "text",
    ["P30D", "P1Y2M3W4DT5H6M7S", "PT0.5S", "P1W", "PT1H"],
)
def test_durations(text):
    """ISO 8601."""
    assert text == msgspec.convert(text, Duration)


@pytest.mark.parametrize("text", ["P", "PT", "30D", "P1D\n", "P-1D", "p1d", "P1H", "P1DT", ""])
def test_what_is_no_duration(text):
    """At least one part, in order, hours only after T."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Duration)


# ── what the types cannot say ────────────────────────────────────────────────────────────────


def test_a_good_envelope_comes_back_as_it_is():
    """Nothing to change: the very same object."""
    envelope = made(observed_actor={"id": "user:a", "type": "user"}, subject={"id": "user:b"})

    assert envelope is checked(envelope)


def test_times_come_back_in_utc():
    """The log keeps instants, not zones."""
    context = {
        "observed_at": "2026-05-13T17:42:00+02:00",
        "source_recorded_at": "2026-05-13T10:42:00-05:00",
    }
    found = msgspec.to_builtins(checked(made(context=context)).context)

    assert dict.fromkeys(context, "2026-05-13T15:42:00Z") == found


@pytest.mark.parametrize("name", ["observed_at", "source_recorded_at"])
def test_a_time_outside_the_calendar(name):
    """InvalidTimestamp names the field, with the place in a bulk call before it."""
    context = SENT["context"] | {name: "0001-01-01T00:00:00+14:00"}
    with pytest.raises(InvalidTimestamp) as raised:
        checked(made(context=context), "items[3].")

    assert f"items[3].context.{name}" == raised.value.details["field"]


@pytest.mark.parametrize("name", ["observed_actor", "subject"])
def test_the_type_of_an_actor_is_that_of_its_id(name):
    """Two types for one actor is a mistake of the client's."""
    with pytest.raises(InvalidEnvelope) as raised:
        checked(made(**{name: {"id": "user:a", "type": "agent"}}), "items[0].")

    assert f"items[0].{name}.type" == raised.value.details["field"]


BIG = {"n": [2**64]}


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"content": {"kind": "json", "data": BIG}}, "content.data"),
        (
            {
                "content": {
                    "kind": "text",
                    "text": "a",
                    "media": [{"blob_id": "blob_1", "hints": BIG}],
                }
            },
            "content.media[0].hints",
        ),
        (
            {
                "content": {
                    "kind": "triple",
                    "triple": {"subject": "a", "predicate": "b", "object": {"value": BIG}},
                }
            },
            "content.triple.object",
        ),
        (
            {
                "content": {
                    "kind": "triple",
                    "triple": {"subject": {"value": BIG}, "predicate": "b", "object": 1},
                }
            },
            "content.triple.subject",
        ),
        ({"context": SENT["context"] | {"location": BIG}}, "context.location"),
        ({"context": SENT["context"] | {"refers_to": [BIG]}}, "context.refers_to"),
        ({"source": BIG}, "source"),
    ],
)
def test_every_free_place_is_looked_into(changes, field):
    """An integer beyond 64 bits is refused wherever the client's own JSON may stand."""
    with pytest.raises(InvalidEnvelope) as raised:
        checked(made(**changes))

    assert field == raised.value.details["field"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "x",
        1.5,
        [],
        {"a": [{"b": 1}]},
        limits.INTEGER_MAX,
        limits.INTEGER_MIN,
        nested(limits.JSON_DEPTH_MAX),
    ],
)
def test_free_json_within_bounds(value):
    """Any JSON, as long as every reader can take it."""
    assert check_free_json(value, "data") is None


@pytest.mark.parametrize(
    "value",
    [limits.INTEGER_MAX + 1, limits.INTEGER_MIN - 1, nested(limits.JSON_DEPTH_MAX + 1)],
    ids=["too large", "too small", "too deep"],
)
def test_free_json_beyond_bounds(value):
    """InvalidEnvelope with the field."""
    with pytest.raises(InvalidEnvelope) as raised:
        check_free_json(value, "data")

    assert "data" == raised.value.details["field"]


# ── bulk ─────────────────────────────────────────────────────────────────────────────────────


def test_a_bulk_call_fills_in_its_header():
    """Scope, actor, subject and directives; an item's own come first."""
    request = msgspec.convert(
        {
            "scope": "org:acme",
            "actor": {"id": "agent:a"},
            "subject": {"id": "user:s"},
            "directives": {"embed": "none"},
            "items": [
                item(),
                item(
                    scope="org:other",
                    actor={"id": "agent:own"},
                    subject={"id": "user:own"},
                    directives={"embed": "eager"},
                    language="en",
                    scripts=["Latn"],
                    source={"a": 1},
                ),
            ],
        },
        BulkRequest,
    )
    first, second = full_envelopes(request)

    assert SENT | {
        "scope": "org:acme",
        "observed_actor": {"id": "agent:a"},
        "subject": {"id": "user:s"},
        "directives": {"embed": "none"},
    } == msgspec.to_builtins(first)
    assert SENT | {
        "scope": "org:other",
        "observed_actor": {"id": "agent:own"},
        "subject": {"id": "user:own"},
        "directives": {"embed": "eager"},
        "language": "en",
        "scripts": ["Latn"],
        "source": {"a": 1},
    } == msgspec.to_builtins(second)


def test_observed_actor_comes_before_its_older_name():
    """In the header and in an item."""
    both = {"observed_actor": {"id": "user:new"}, "actor": {"id": "user:old"}}
    request = msgspec.convert(
        {"scope": "org:a", **both, "items": [item(), item(**both)]}, BulkRequest
    )

    assert ["user:new", "user:new"] == [e.observed_actor.id for e in full_envelopes(request)]


def test_an_item_without_a_scope():
    """Neither here nor in the header: the item is named."""
    request = msgspec.convert({"items": [item(scope="org:a"), item()]}, BulkRequest)
    with pytest.raises(InvalidEnvelope) as raised:
        full_envelopes(request)

    assert "items[1].scope" == raised.value.details["field"]


def test_the_scopes_of_a_bulk_call():
    """All that policy must be asked about."""
    request = msgspec.convert(
        {"scope": "org:a", "items": [item(), item(scope="org:b")]}, BulkRequest
    )

    assert {"org:a", "org:b"} == scopes_of(request)
