"""Bad input is a clear 4xx with the field named, and changes nothing (I7, 001 §16)."""

import copy
import gzip
import json
import re
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.v1 import ENDPOINTS
from schemas import limits

SEGMENT = "team:t"


@pytest.fixture(scope="module")
def server(young_server):
    """Entries are counted here."""
    return young_server


@pytest.fixture
def refused(api, head):
    """Send something bad and say how it was refused; whatever it was, the log did not grow."""

    def send(method, path, **options):
        before = head()
        answer = api.request(method, path, **options)
        problem = answer.json()
        assert before == head()
        return answer.status_code, problem["error_code"], problem.get("details", {}).get("field")

    return send


def changed(body, path, value):
    """A copy of a body with one place replaced; `...` removes it."""
    made = copy.deepcopy(body)
    node = made
    *way, last = path.split(".")
    for name in way:
        node = node.setdefault(name, {})
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return made


# ── what is no JSON at all ───────────────────────────────────────────────────────────────────

UNREADABLE = {
    "empty": b"",
    "blank": b"  \n ",
    "truncated": b'{"scope": "org:a',
    "single quotes": b"{'scope': 'org:a'}",
    "comment": b'{"scope": "org:a" /* here */}',
    "trailing comma": b'{"scope": "org:a",}',
    "bad UTF-8": b'{"scope": "\xff\xfe"}',
    "UTF-8 cut short": b'{"scope": "\xe2\x82"}',
    "overlong UTF-8": b'{"scope": "\xc0\xaf"}',
    "UTF-16": '{"scope": "org:a"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"scope": "org:a"}',
    "lone surrogate": b'{"scope": "\\ud800"}',
    "surrogates the wrong way round": b'{"scope": "\\udc00\\ud800"}',
    "raw control character": b'{"scope": "a\nb"}',
    "deep nesting": b'{"content":' + b"[" * 100_000,
    "deep objects": b'{"content":' + b'{"a":' * 100_000,
    "NaN": b'{"content": NaN}',
    "Infinity": b'{"content": Infinity}',
    "minus Infinity": b'{"content": -Infinity}',
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("path", ["/v1/experience", "/v1/experience/bulk"])
def test_a_body_that_cannot_be_read(refused, path, name):
    """400 INVALID_BODY when it is no JSON; 422 when it already went wrong before that showed."""
    status, code, field = refused("POST", path, content=UNREADABLE[name])

    assert (status, code) in [(400, "INVALID_BODY"), (422, "INVALID_ENVELOPE")]
    assert field


@pytest.mark.parametrize("after", [b"{}", b",", b"null", b"\x00"])
def test_a_body_with_something_after_it(refused, envelope, after):
    """One envelope, and nothing else."""
    body = json.dumps(envelope()).encode() + after

    assert (400, "INVALID_BODY", "body") == refused("POST", "/v1/experience", content=body)


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"5", b"true", b"[{}]", b"[" * 9])
def test_a_body_that_is_no_object(refused, body):
    """JSON of another shape is refused as an envelope."""
    assert (422, "INVALID_ENVELOPE", "body") == refused("POST", "/v1/experience", content=body)


# ── inside free-form JSON ────────────────────────────────────────────────────────────────────

FREE = {
    "depth": b"[" * (limits.JSON_DEPTH_MAX + 1) + b"]" * (limits.JSON_DEPTH_MAX + 1),
    "depth of objects": b'{"a":' * 300 + b"1" + b"}" * 300,
    "64 bits and one": b"18446744073709551616",
    "minus 63 bits and one": b"-9223372036854775809",
    "a long integer": b"9" * 400,
    "a very long integer": b"9" * 5000,
    "inside": b'{"a": [1, {"b": 18446744073709551616}]}',
    "a float beyond double": b"1e999",
}


@pytest.mark.parametrize("name", FREE)
def test_free_json_that_a_reader_could_not_take(refused, envelope, name):
    """Depth and integers are bounded wherever the client's own shape is allowed."""
    body = json.dumps(envelope(content={"kind": "json", "data": "HERE"})).encode()
    sent = body.replace(b'"HERE"', FREE[name])

    assert (422, "INVALID_ENVELOPE", "content.data") == refused(
        "POST", "/v1/experience", content=sent
    )


@pytest.mark.parametrize(
    "path, field",
    [
        ("source", "source"),
        ("context.location", "context.location"),
        ("context.refers_to", "context.refers_to"),
        ("content.media", "content.media[0].hints"),
    ],
)
def test_every_free_place_is_bounded(refused, envelope, path, field):
    """Not only `content.data`: each place for JSON of the client's own is looked into."""
    big = {"n": 2**64}
    values = {"context.refers_to": [big], "content.media": [{"blob_id": "blob_1", "hints": big}]}
    body = changed(envelope(), path, values.get(path, big))

    assert (422, "INVALID_ENVELOPE", field) == refused("POST", "/v1/experience", json=body)


def test_a_term_of_a_triple_is_bounded(refused, envelope):
    """A triple's value is free JSON, too."""
    triple = {"subject": "Acme", "predicate": "seats", "object": {"value": 2**64}}
    body = envelope(content={"kind": "triple", "triple": triple})

    assert (422, "INVALID_ENVELOPE", "content.triple.object") == refused(
        "POST", "/v1/experience", json=body
    )


def test_the_deepest_json_that_is_allowed(api, envelope):
    """At the bound it is stored and read back whole."""
    data = 1
    for _ in range(limits.JSON_DEPTH_MAX - 1):
        data = [data]
    content = {"kind": "json", "data": data}
    receipt = api.post("/v1/experience?wait=settled", json=envelope(content=content)).json()

    assert content == api.get(f"/v1/events/{receipt['event_id']}").json()["content"]


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1.7976931348623157e308, 5e-324, -0.0])
def test_the_largest_numbers_that_are_allowed(api, envelope, number):
    """At the bounds they are stored and read back exactly."""
    content = {"kind": "json", "data": {"n": number}}
    receipt = api.post("/v1/experience?wait=settled", json=envelope(content=content)).json()

    assert content == api.get(f"/v1/events/{receipt['event_id']}").json()["content"]


# ── closed objects ───────────────────────────────────────────────────────────────────────────

CLOSED = [
    "surprise",
    "observed_actor.surprise",
    "subject.surprise",
    "content.surprise",
    "context.surprise",
    "context.recorded_at",
    "context.happened_at",
    "directives.surprise",
    "actor",
    "id",
    "wal_offset",
    "tenant_id",
]


@pytest.mark.parametrize("path", CLOSED)
def test_an_unknown_field_is_named(refused, envelope, path):
    """A typo is told, not ignored, at each level of the envelope."""
    whole = envelope(observed_actor={"id": "user:a"}, subject={"id": "user:a"}, directives={})
    body = changed(whole, path, 1)

    assert (422, "INVALID_ENVELOPE", path) == refused("POST", "/v1/experience", json=body)


@pytest.mark.parametrize(
    "content, field",
    [
        ({"kind": "text", "text": "a", "role": "user"}, "content.role"),
        ({"kind": "json", "data": 1, "surprise": 1}, "content.surprise"),
        ({"kind": "blob_ref", "blob_id": "blob_1", "surprise": 1}, "content.surprise"),
        (
            {
                "kind": "message",
                "role": "user",
                "text": "a",
                "media": [{"blob_id": "blob_1", "x": 1}],
            },
            "content.media[0].x",
        ),
        (
            {"kind": "triple", "triple": {"subject": "a", "predicate": "b", "object": "c", "x": 1}},
            "content.triple.x",
        ),
        (
            {
                "kind": "triple",
                "triple": {"subject": {"value": 1, "x": 1}, "predicate": "b", "object": "c"},
            },
            "content.triple.subject.x",
        ),
    ],
)
def test_an_unknown_field_of_any_content(refused, envelope, content, field):
    """Each kind of content is closed, and what it holds."""
    found = refused("POST", "/v1/experience", json=envelope(content=content))

    assert (422, "INVALID_ENVELOPE", field) == found


@pytest.mark.parametrize("field", ["surprise", "modality", "content", "idempotency_key"])
def test_an_unknown_field_of_the_bulk_header(refused, envelope, field):
    """The shared header is closed: what belongs into items is not taken from it."""
    body = {"items": [envelope()], field: "x"}

    assert (422, "INVALID_ENVELOPE", field) == refused("POST", "/v1/experience/bulk", json=body)


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.body_optional],
    ids=lambda endpoint: endpoint.path,
)
def test_an_unknown_field_of_a_command(refused, endpoint):
    """Commands without arguments take none."""
    path = endpoint.path.format(event_id="evt_1", name="derives", job_id="imp_1")

    assert (400, "INVALID_BODY", "surprise") == refused("POST", path, json={"surprise": 1})


@pytest.mark.parametrize(
    "path",
    [
        "scope",
        "modality",
        "content",
        "content.kind",
        "content.role",
        "content.text",
        "context",
        "context.observed_at",
        "idempotency_key",
    ],
)
def test_a_required_field_is_named(refused, envelope, path):
    """400 MISSING_REQUIRED_FIELD with the whole path."""
    body = changed(envelope(), path, ...)

    assert (400, "MISSING_REQUIRED_FIELD", path) == refused("POST", "/v1/experience", json=body)


# ── wrong types and values ───────────────────────────────────────────────────────────────────

WRONG = [
    ("modality", 5),
    ("modality", ""),
    ("modality", None),
    ("modality", "x" * 65),
    ("content", "text"),
    ("content", None),
    ("content.kind", "poem"),
    ("content.kind", 5),
    ("content.role", "narrator"),
    ("content.text", ""),
    ("content.text", ["a"]),
    ("content.media", {}),
    ("content.media", [{"blob_id": "evt_1"}]),
    ("content.media", [{"blob_id": "blob_1"}] * 33),
    ("observed_actor", "user:alice"),
    ("observed_actor.id", "alice"),
    ("observed_actor.id", "user:a\x00b"),
    ("observed_actor.id", "user:alice\n"),
    ("observed_actor.id", "User:alice"),
    ("subject.id", "user:" + "x" * 129),
    ("context", []),
    ("context.preceded_by", ["lce_1"]),
    ("context.preceded_by", ["evt_\x00"]),
    ("context.preceded_by", ["evt_1"] * 65),
    ("context.labels", "sales"),
    ("context.labels", [""]),
    ("context.labels", ["x"] * 65),
    ("context.refers_to", [1]),
    ("directives", []),
    ("directives.extract", ["everything"]),
    ("directives.confidence_floor", 1.5),
    ("directives.confidence_floor", True),
    ("directives.ttl_for_belief_layer", "30 days"),
    ("directives.ttl_for_belief_layer", "P"),
    ("directives.embed", "later"),
    ("idempotency_key", ""),
    ("idempotency_key", 5),
    ("idempotency_key", "x" * 65),
    ("idempotency_key", "a\x00b"),
    ("idempotency_key", "a\nb"),
    ("idempotency_key", "a\n"),
    ("idempotency_key", "a\x7f"),
    ("source", "somewhere"),
    ("scripts", "Latn"),
]


@pytest.mark.parametrize("path, value", WRONG, ids=lambda part: repr(part)[:40])
def test_a_wrong_value_is_named(refused, envelope, path, value):
    """422 INVALID_ENVELOPE, and the field is the one that was wrong."""
    body = changed(envelope(), path, value)
    status, code, field = refused("POST", "/v1/experience", json=body)

    assert (422, "INVALID_ENVELOPE") == (status, code)
    assert re.sub(r"\[\d+\]", "", field).startswith(path)


def test_an_actor_of_two_types(refused, envelope):
    """The type of an actor is the type of its id."""
    body = envelope(observed_actor={"id": "user:alice", "type": "agent"})

    assert (422, "INVALID_ENVELOPE", "observed_actor.type") == refused(
        "POST", "/v1/experience", json=body
    )


# ── scopes ───────────────────────────────────────────────────────────────────────────────────

SCOPES = {
    "empty": "",
    "no type": "acme",
    "no id": "org:",
    "no segment": "/",
    "leading slash": "/org:acme",
    "trailing slash": "org:acme/",
    "double slash": "org:acme//user:a",
    "upper-case type": "Org:acme",
    "digit first": "1org:acme",
    "space": "org:ac me",
    "dot": "org:acme.com",
    "dots": "org:acme/..",
    "wildcard": "org:*",
    "unicode": "org:åcme",
    "NUL": "org:acme\x00",
    "trailing newline": "org:acme\n",
    "two colons": "org:a:b",
    "33 segments": "/".join([SEGMENT] * 33),
    "5000 characters": "/".join(["t:" + "x" * 127] * 39)[:5000],
    "a long type": "a" * 33 + ":b",
    "a long id": "a:" + "b" * 129,
    "a number": 5,
    "null": None,
    "a list": ["org:acme"],
}


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_against_the_grammar(refused, envelope, name):
    """422 INVALID_SCOPE_GRAMMAR (001 §3.4.1)."""
    found = refused("POST", "/v1/experience", json=envelope(scope=SCOPES[name]))

    assert (422, "INVALID_SCOPE_GRAMMAR", "scope") == found


@pytest.mark.parametrize("name", [name for name in SCOPES if isinstance(SCOPES[name], str)])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/lifecycle", "/v1/lifecycle/stream"])
def test_a_scope_in_a_query_against_the_grammar(refused, path, name):
    """The same grammar for readers."""
    found = refused("GET", path, params={"scope": SCOPES[name]})

    assert (422, "INVALID_SCOPE_GRAMMAR", "scope") == found


def test_consolidate_into_is_a_scope(refused, envelope):
    """A directive that names a scope is held to the grammar."""
    body = envelope(directives={"consolidate_into": "Nope"})

    assert (422, "INVALID_SCOPE_GRAMMAR", "directives.consolidate_into") == refused(
        "POST", "/v1/experience", json=body
    )


def test_the_longest_scope(api, envelope):
    """At the bounds of the grammar it is a scope like any other."""
    longest = "/".join(["a" * 30 + ":" + "b" * 96] * 32)
    answer = api.post("/v1/experience", json=envelope(scope=longest))
    listed = api.get("/v1/events", params={"scope": longest}).json()

    assert limits.SCOPE_CHARS_MAX - 1 == len(longest)
    assert 202 == answer.status_code
    assert longest == listed["items"][0]["scope"]


# ── times ────────────────────────────────────────────────────────────────────────────────────

TIMES = [
    "2026-05-13T15:42:00",
    "2026-05-13",
    "15:42:00Z",
    "13.05.2026 15:42",
    "yesterday",
    "",
    "2026-02-30T00:00:00Z",
    "2026-05-13T24:01:00Z",
    "2026-05-13T23:59:60Z",
    "2026-05-13T15:42:00+25:00",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-05-13T15:42:00Z\n",
    "2026-05-13T15:42:00Z\x00",
    1747147320,
    1747147320.5,
    ["2026-05-13T15:42:00Z"],
]


@pytest.mark.parametrize("time", [None, *TIMES], ids=repr)
def test_a_time_that_is_none(refused, envelope, time):
    """422 INVALID_TIMESTAMP: no zone is guessed, and no calendar overflows."""
    body = envelope(context={"observed_at": time})

    assert (422, "INVALID_TIMESTAMP", "context.observed_at") == refused(
        "POST", "/v1/experience", json=body
    )


@pytest.mark.parametrize("time", TIMES, ids=repr)
def test_a_time_of_the_source_that_is_none(refused, envelope, time):
    """An upstream time may be absent or null, but not wrong."""
    body = changed(envelope(), "context.source_recorded_at", time)

    assert (422, "INVALID_TIMESTAMP", "context.source_recorded_at") == refused(
        "POST", "/v1/experience", json=body
    )


@pytest.mark.parametrize("name", ["since", "until", "recorded_since", "recorded_until"])
@pytest.mark.parametrize("time", [time for time in TIMES if isinstance(time, str)], ids=repr)
def test_a_time_in_a_query_that_is_none(refused, scope, name, time):
    """The same rule for readers."""
    found = refused("GET", "/v1/events", params={"scope": scope, name: time})

    assert (422, "INVALID_TIMESTAMP", name) == found


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"]
)
def test_the_edges_of_the_calendar(api, envelope, scope, time):
    """The first and the last moment are stored, filtered and read back."""
    body = envelope(context={"observed_at": time, "source_recorded_at": time})
    bulk = {"items": [body, envelope()], "ordering": "strict_temporal"}
    api.post("/v1/experience/bulk?wait=settled", json=bulk)
    parameters = {"scope": scope, "since": time, "order": "oldest"}
    found = api.get("/v1/events", params=parameters).json()["items"]
    times = [event["context"]["observed_at"] for event in found]

    assert time in times


# ── queries ──────────────────────────────────────────────────────────────────────────────────


def filled(endpoint):
    """An endpoint's path with something in every place."""
    return re.sub(r"\{\w+(:\w+)?\}", "x", endpoint.path)


def content_of(endpoint, envelope):
    """A body that the endpoint would take."""
    return {
        "/v1/experience": envelope(),
        "/v1/experience/bulk": {"items": [envelope()]},
    }.get(endpoint.path)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_an_unknown_parameter_is_named(refused, envelope, endpoint):
    """On every endpoint of the table: never ignored (DESIGN §8.7)."""
    needed = {"scope": "org:a"} if endpoint.path == "/v1/events" else {}
    found = refused(
        endpoint.method,
        filled(endpoint),
        params=needed | {"surprise": "1"},
        json=content_of(endpoint, envelope),
    )

    assert (422, "INVALID_PARAMETER", "surprise") == found


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_a_repeated_parameter_is_named(refused, envelope, endpoint):
    """On every endpoint: which of the two was meant is not ours to say."""
    name = next(iter(endpoint.query.__struct_fields__), "surprise")
    found = refused(
        endpoint.method,
        f"{filled(endpoint)}?{name}=a&{name}=a",
        json=content_of(endpoint, envelope),
    )

    assert (422, "INVALID_PARAMETER", name) == found


@pytest.mark.parametrize(
    "query",
    ["%ff=1", "scope=%ff", "x" * (limits.QUERY_STRING_BYTES_MAX + 1), "&".join(["a=1"] * 101)],
    ids=["a name", "a value", "long", "many"],
)
def test_a_query_that_cannot_be_read(refused, query):
    """Bytes that are no UTF-8, a query without end, a hundred parameters."""
    assert (422, "INVALID_PARAMETER", "query") == refused("GET", f"/v1/events?{query}")


# ── headers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind, field",
    [
        ("text/plain", "Content-Type"),
        ("application/x-www-form-urlencoded", "Content-Type"),
        ("multipart/form-data; boundary=x", "Content-Type"),
        ("application/xml", "Content-Type"),
        ("application/json; charset=latin-1", "Content-Type"),
        ("application/json, text/plain", "Content-Type"),
        ("json", "Content-Type"),
    ],
)
def test_a_content_type_we_do_not_read(refused, envelope, kind, field):
    """415 with what would do."""
    body = json.dumps(envelope()).encode()
    headers = {"Content-Type": kind}

    assert (415, "UNSUPPORTED_MEDIA_TYPE", field) == refused(
        "POST", "/v1/experience", content=body, headers=headers
    )


@pytest.mark.parametrize(
    "kind",
    ["application/json", 'Application/JSON; charset="UTF-8"', "application/cloudevents+json"],
)
def test_a_content_type_we_read(api, envelope, kind):
    """JSON by any of its names."""
    body = json.dumps(envelope()).encode()
    answer = api.post("/v1/experience", content=body, headers={"Content-Type": kind})

    assert 202 == answer.status_code


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, identity"])
def test_a_compressed_body(refused, envelope, encoding):
    """415: a small body could unfold into a large one."""
    body = gzip.compress(json.dumps(envelope()).encode())
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}

    assert (415, "UNSUPPORTED_MEDIA_TYPE", "Content-Encoding") == refused(
        "POST", "/v1/experience", content=body, headers=headers
    )


@pytest.mark.parametrize(
    "actor",
    [
        "nobody",
        "user:",
        ":x",
        "robot:r2",
        "User:a",
        "user:a b",
        "user:a/b",
        "user:a,user:b",
        "user:å".encode(),
        "user:" + "x" * 129,
    ],
)
def test_an_actor_that_is_none(refused, envelope, actor):
    """422 INVALID_ACTOR, for readers and writers."""
    headers = {"X-Cortex-Actor": actor}
    expected = (422, "INVALID_ACTOR", "X-Cortex-Actor")

    assert expected == refused("POST", "/v1/experience", json=envelope(), headers=headers)
    assert expected == refused("GET", "/v1/events?scope=org:a", headers=headers)


# ── sizes and time, by hand ──────────────────────────────────────────────────────────────────


def talk(server, *parts, timeout_s=120.0, half_close=False):
    """Send bytes as they are, and read what comes back until the server closes or falls silent."""
    with socket.create_connection(server.address, timeout=timeout_s) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
    return answer


def parsed(answer):
    """Status, headers and JSON of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    line, *headers = head.decode("latin-1").split("\r\n")
    named = dict(header.lower().split(": ", 1) for header in headers)
    return int(line.split()[1]), named, json.loads(body)


def request_head(path, *headers, method="POST"):
    """The first lines of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test", "Content-Type: application/json", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


LIMITS = [
    ("/v1/experience", limits.EXPERIENCE_BODY_BYTES_MAX),
    ("/v1/experience/bulk", limits.BULK_BODY_BYTES_MAX),
    ("/v1/admin/compact", limits.BODY_BYTES_MAX),
]


@pytest.mark.parametrize("path, size_max", LIMITS)
def test_a_body_that_is_declared_too_large(server, head, path, size_max):
    """413 before a byte of it was read."""
    before = head()
    status, headers, problem = parsed(
        talk(server, request_head(path, f"Content-Length: {size_max + 1}"))
    )

    assert (413, "BODY_TOO_LARGE") == (status, problem["error_code"])
    assert "body" == problem["details"]["field"]
    assert size_max == problem["details"]["limit_bytes"]
    assert "close" == headers["connection"]
    assert before == head()


@pytest.mark.parametrize("path, size_max", LIMITS)
def test_a_chunked_body_that_grows_too_large(server, head, path, size_max):
    """A body without a length is counted as it comes."""
    before = head()
    chunk = b"%x\r\n%b\r\n" % (1 << 16, b" " * (1 << 16))
    parts = [chunk] * (size_max // (1 << 16) + 1)
    status, headers, problem = parsed(
        talk(server, request_head(path, "Transfer-Encoding: chunked"), *parts)
    )

    assert (413, "BODY_TOO_LARGE") == (status, problem["error_code"])
    assert "close" == headers["connection"]
    assert before == head()


def test_a_chunked_body_within_the_limit(server, envelope, head):
    """Chunks are fine in themselves."""
    before = head()
    body = json.dumps(envelope()).encode()
    halves = [body[:50], body[50:]]
    parts = [b"%x\r\n%b\r\n" % (len(half), half) for half in halves]
    first = request_head("/v1/experience", "Transfer-Encoding: chunked", "Connection: close")
    status, _, _ = parsed(talk(server, first, *parts, b"0\r\n\r\n"))

    assert 202 == status
    assert before + 1 == head()


def test_the_largest_body(api, envelope):
    """At the limit it is taken, and read back whole."""
    spare = limits.EXPERIENCE_BODY_BYTES_MAX - len(json.dumps(envelope(""), separators=(",", ":")))
    body = envelope("x" * (spare - 8))
    answer = api.post("/v1/experience?wait=settled", json=body)

    assert 200 == answer.status_code
    assert body["content"] == api.get(f"/v1/events/{answer.json()['event_id']}").json()["content"]


def test_a_body_that_was_left_unfinished(server, api, capture, head):
    """A client that goes away in the middle has asked for nothing, not for less."""
    event_id = capture()
    before = head()
    path = f"/v1/lifecycle/memory-event/{event_id}/cancel"
    talk(server, request_head(path, "Content-Length: 40"), b'{"audit_note"', half_close=True)
    talk(server, request_head(path, "Content-Length: 40"), half_close=True)
    last = capture()
    state = api.get(f"/v1/lifecycle/memory-event/{event_id}").json()

    assert before + 1 == api.get(f"/v1/events/{last}").json()["wal_offset"]
    assert False is state["excluded_from_recall"]


@pytest.mark.slow
@pytest.mark.skipif(limits.BODY_READ_S_MAX > 20, reason="the deadline is too long to wait for")
def test_a_body_that_does_not_arrive(server, head):
    """408 after the deadline, whoever is slow: it holds no place for ever."""
    before = head()
    half = b'{"scope": "org:a'
    with socket.create_connection(server.address, timeout=120) as idle:
        idle.sendall(request_head("/v1/experience", "Content-Length: 100"))
        answer = talk(server, request_head("/v1/experience", "Content-Length: 100"), half)
        silent = idle.recv(65536)
    status, headers, problem = parsed(answer)

    assert (408, "REQUEST_TIMEOUT", True) == (status, problem["error_code"], problem["retriable"])
    assert "body" == problem["details"]["field"]
    assert "close" == headers["connection"]
    assert b"408" == silent.split()[1]
    assert before == head()


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /v1/events/\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/experience HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/experience HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/experience HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /v1/admin/version HTTP/9.9\r\n\r\n",
    ],
    ids=["no request", "path bytes", "negative length", "two lengths", "bad chunk", "version"],
)
def test_what_is_no_request(server, api, head, sent):
    """What is not HTTP is answered 400 or cut off; the server goes on."""
    before = head()
    answer = talk(server, sent, half_close=True)

    assert answer == b"" or answer.split()[1] in (b"400", b"408")
    assert before == head()


# ── anything at all ──────────────────────────────────────────────────────────────────────────

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["org:a", "evt_1", "user:a", "2026-05-13T15:42:00Z", "message", "P1D"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["kind", "text", "id", "data"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
PLACES = [
    "scope",
    "observed_actor",
    "observed_actor.id",
    "subject",
    "modality",
    "content",
    "content.kind",
    "content.role",
    "content.text",
    "content.media",
    "content.data",
    "content.triple",
    "context",
    "context.observed_at",
    "context.source_recorded_at",
    "context.location",
    "context.preceded_by",
    "context.labels",
    "context.refers_to",
    "directives",
    "directives.extract",
    "directives.consolidate_into",
    "idempotency_key",
    "source",
    "scripts",
]
SOUND = st.sampled_from(
    [
        {"kind": "message", "role": "user", "text": "hello"},
        {"kind": "text", "text": "hello"},
        {"kind": "json", "data": {"a": 1}},
        {"kind": "triple", "triple": {"subject": "a", "predicate": "b", "object": 1}},
    ]
)
THOROUGH = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check_answer(answer):
    """Taken, or refused with an envelope; never an error of ours."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json()["error_code"].isupper()


@THOROUGH
@given(body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_at_all(client, body):
    """Whatever is posted, the answer is below 500."""
    check_answer(client.post("/v1/experience", content=body))


@THOROUGH
@given(
    content=SOUND,
    mutations=st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=3),
)
def test_any_envelope_at_all(client, envelope, content, mutations):
    """An envelope with anything in place of some of its parts is taken or refused, and readable."""
    body = envelope(content=content)
    for path, value in mutations:
        try:
            body = changed(body, path, value)
        except (AttributeError, TypeError):
            continue
    answer = client.post("/v1/experience", content=json.dumps(body).encode())
    check_answer(answer)
    if answer.status_code == 202:
        assert 200 == client.get(f"/v1/events/{answer.json()['event_id']}").status_code


@THOROUGH
@given(
    path=st.sampled_from(
        ["/v1/events", "/v1/lifecycle", "/v1/experience/status", "/v1/admin/health"]
    ),
    parameters=st.dictionaries(
        st.sampled_from(["scope", "since", "limit", "cursor", "view", "events", "event_id", "x"]),
        st.text(max_size=30) | st.sampled_from(["org:a", "1", "-1", "1e9", "null", "true"]),
        max_size=4,
    ),
)
def test_any_query_at_all(client, path, parameters):
    """Whatever is asked, the answer is below 500."""
    check_answer(client.get(path, params=parameters))
