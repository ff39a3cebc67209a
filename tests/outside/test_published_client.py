"""Is the published Python client of CortexDB at home here?  Its own code, a token, our server."""

import ast
import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyseto
import pytest
from cortexdb.v1 import AsyncV1Client, V1Client
from cortexdb.v1.exceptions import (
    V1APIError,
    V1AuthError,
    V1NotConfiguredError,
    V1PolicyDeniedError,
    V1RateLimitError,
)
from pyseto import Key

from api.issuer.store import opened

ME = "user:ines"
KNOWS = {
    "subject": {"type": "entity", "id": "user:ines"},
    "predicate": "knows",
    "object": {"type": "entity", "id": "user:dana"},
}
CONTACT = {
    "subject": {"type": "entity", "id": "org:acme"},
    "predicate": "billing_contact",
    "object": {"type": "literal", "datatype": "string", "value": "Dana"},
}


@pytest.fixture
def connect(realm) -> Iterator[Callable[..., V1Client]]:
    """The client, with a token minted for its actor; a bearer of the test's own may replace it."""
    with contextlib.ExitStack() as stack:

        def connected(actor: str = ME, *more: str, **options: Any) -> V1Client:
            bearer = options.get("bearer") or realm.token(actor, "acme", *more)
            client = V1Client(realm.server.url, actor=actor, bearer=bearer)
            return stack.enter_context(client)

        yield connected


@pytest.fixture
def ines(connect) -> V1Client:
    """The client, connected."""
    return connect()


# ── writing ──────────────────────────────────────────────────────────────────────────────────

CONTENTS = [
    pytest.param(
        {"text": "Acme has 200 seats", "role": "assistant"},
        {"kind": "message", "role": "assistant", "text": "Acme has 200 seats"},
        id="text",
    ),
    pytest.param(
        {"json_data": {"seats": 200, "tags": ["a"], "owner": None}},
        {"kind": "json", "data": {"seats": 200, "tags": ["a"], "owner": None}},
        id="json",
    ),
    pytest.param({"triple": KNOWS}, {"kind": "triple", "triple": KNOWS}, id="triple"),
    pytest.param(
        {"triple": CONTACT},
        {"kind": "triple", "triple": CONTACT},
        id="triple with a literal",
    ),
]
"""What the client is given, and the event's content afterwards."""


@pytest.mark.parametrize("given, kept", CONTENTS)
def test_each_kind_of_content_is_written_and_read(ines, scope, given, kept):
    """What the client sends is what a reader gets back, once it is indexed."""
    written = ines.experience(scope, wait="indexed", **given)
    (event,) = ines.events(scope)["items"]

    assert "indexed" in written["stages_completed"]
    assert (written["event_id"], ME) == (event["id"], event["caller"])
    assert kept == event["content"]


@pytest.mark.parametrize("more", [{}, {"transcript": "hello"}], ids=["blob", "transcript"])
def test_a_blob_is_uploaded_and_cited(ines, scope, more):
    """The client uploads raw bytes, and an experience is about them."""
    uploaded = ines.upload_blob(b"the words of a page", "text/plain")
    ines.experience(scope, blob_id=uploaded["blob_id"], wait="indexed", **more)
    (event,) = ines.events(scope)["items"]

    assert {"kind": "blob_ref", "blob_id": uploaded["blob_id"]} | more == event["content"]


def test_hints_of_language_and_time_are_kept(ines, scope):
    """The optional fields of the client's capture are the event's afterwards."""
    ines.experience(
        scope,
        text="kal milte hain",
        modality="observation",
        language="hi-Latn",
        scripts=["Latn"],
        timezone="Asia/Kolkata",
        refers_to=[{"from": "2026-05-14", "to": "2026-05-15"}],
        wait="indexed",
    )
    (event,) = ines.events(scope)["items"]

    assert ("observation", "hi-Latn") == (event["modality"], event["language"])
    assert ["Latn"] == event["scripts"]
    assert "Asia/Kolkata" == event["context"]["timezone"]


def test_a_bulk_is_written_at_once(ines, scope):
    """Every item is there when the barrier that the client asked for has passed."""
    items = [{"text": f"turn {number}"} for number in range(20)] + [{"triple": CONTACT}]
    receipt = ines.experience_bulk(scope, items, wait="indexed")
    page = ines.events(scope)

    assert 21 == receipt["accepted"] == len(page["items"])


@pytest.mark.parametrize(
    "repeats, fragments",
    [
        (1_000, 1),
        (80_000, 2),
    ],
)
def test_a_document_is_written_in_fragments(ines, scope, repeats, fragments):
    """A source larger than one experience is split by the client, put together by a reader."""
    text = "Zoë and Łukasz. " * repeats
    written = ines.experience_source_text(scope, text, source_id="doc-1", wait="indexed")
    events = ines.events(scope)["items"]

    parts = {event["source"]["fragments"][0]["fragment_id"]: event for event in events}
    assert fragments == written["fragment_count"] == len(parts)
    assert text == "".join(parts[name]["content"]["text"] for name in sorted(parts))


def test_a_repeated_key_is_a_replay(ines, scope, fresh_key):
    """The client may retry after a timeout: the same key is the same event."""
    key = fresh_key()
    first = ines.experience(scope, text="once", idempotency_key=key)
    again = ines.experience(scope, text="once", idempotency_key=key)

    assert first["event_id"] == again["event_id"]
    assert again["replayed_from_idempotency"]


def test_a_write_is_found_by_its_key_and_by_its_id(ines, scope, fresh_key):
    """The client's way back after a timeout: did it land, and how far has it come?"""
    key = fresh_key()
    written = ines.experience(scope, text="did it land?", idempotency_key=key, wait="indexed")
    by_key = ines.write_status(idempotency_key=key)
    by_id = ines.write_status(event_id=written["event_id"])

    assert written["event_id"] == by_key["event_id"] == by_id["event_id"]
    assert "indexed" in by_key["stages_completed"]


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_pages_follow_the_cursor(ines, scope):
    """Every event once, newest first, however the client cuts its pages."""
    items = [{"text": f"turn {number}"} for number in range(7)]
    ines.experience_bulk(scope, items, wait="indexed")
    found, cursor = [], None
    while True:
        page = ines.events(scope, limit=3, cursor=cursor)
        found += [event["content"]["text"] for event in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert [item["text"] for item in reversed(items)] == found


@pytest.mark.parametrize(
    "asked, found",
    [
        ({"labels": ["red"]}, {"a", "b"}),
        ({"labels": ["red", "blue"]}, {"b"}),
        ({"modality": "document"}, {"c"}),
        ({"since": "2026-02-01T00:00:00Z"}, {"b", "c"}),
        ({"since": "2026-02-01T00:00:00Z", "modality": "conversation"}, {"b"}),
    ],
)
def test_filters_narrow_the_listing(ines, scope, asked, found):
    """The client's filters are ours: labels all of them, modality, and time observed."""
    ines.experience(scope, text="a", labels=["red"], observed_at="2026-01-01T00:00:00Z")
    ines.experience(scope, text="b", labels=["red", "blue"], observed_at="2026-02-01T00:00:00Z")
    ines.experience(
        scope,
        text="c",
        modality="document",
        observed_at="2026-03-01T00:00:00Z",
        wait="indexed",
    )
    page = ines.events(scope, **asked)

    assert found == {event["content"]["text"] for event in page["items"]}


def test_the_client_learns_who_it_is(ines):
    """The client's first question: whom does the server take me for?"""
    me = ines.whoami()

    assert (ME, "acme") == (me["caller"], me["tenant_id"])
    assert "scope.write" in me["effective_capabilities"]


def test_the_client_learns_what_is_running(ines):
    """Version and capabilities, as the client reads them."""
    assert "v1" == ines.version()["api_version"]
    assert ines.capabilities()


# ── the audit log ────────────────────────────────────────────────────────────────────────────


def test_the_client_reads_its_own_rows(connect, scope):
    """Its write is in the log, and its denial; the filters choose between them."""
    client = connect("agent:audited", "--cap", "scope.write", "--cap", "audit.read")
    client.experience(scope, text="on the record")
    with pytest.raises(V1PolicyDeniedError):
        client.events(scope)
    written = client.audit_list(capability="scope.write")["items"]
    denied = client.audit_list(actor="agent:audited", decision="deny", limit=10)["items"]

    assert [("scope.write", "allow", scope)] == [
        (row["capability"], row["decision"], row["scope"]) for row in written
    ]
    assert [("scope.read.local", 403)] == [
        (row["capability"], row["response_status"]) for row in denied
    ]


def test_a_body_is_proven_against_its_row(connect, scope):
    """The very bytes that the client sent match, any other do not."""
    client = connect("agent:witness")
    sent = []
    client._session.hooks["response"].append(lambda answer, **_: sent.append(answer.request.body))
    client.experience(scope, text="these bytes")
    (row,) = client.audit_list(actor="agent:witness", capability="scope.write")["items"]
    body = sent[0].decode()

    assert client.audit_verify(row["id"], body)["match"]
    assert not client.audit_verify(row["id"], body.replace("these", "those"))["match"]


def test_the_chain_is_whole(ines, scope):
    """Head and length, and every row read again."""
    ines.experience(scope, text="another leaf")
    chain = ines.audit_chain()
    report = ines.audit_chain_verify()

    assert chain["length"] >= 1
    assert (True, 0) == (report["valid"], report["legacy_rows"])
    assert report["length"] >= chain["length"]


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────


def expired(realm) -> str:
    """A token that was good yesterday, under the issuer's own key."""
    with opened(realm.db, read_only=True) as store:
        key, now_s, issuer = store.list_keys()[0], store.now_s(), store.issuer()
    day_s = 24 * 3600
    claims = {
        "iss": issuer,
        "sub": ME,
        "aud": "cortexdb:tenant:acme",
        "iat": now_s - 2 * day_s,
        "exp": now_s - day_s,
        "jti": "yesterday",
    }
    secret = Key.from_asymmetric_key_params(4, d=key.secret)
    footer = msgspec.json.encode({"kid": key.kid})
    return pyseto.encode(secret, msgspec.json.encode(claims), footer=footer).decode()


def tampered(realm) -> str:
    """A good token with one letter of its signed part changed."""
    token = realm.token(ME)
    at = len("v4.public.") + 20
    return token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]


def revoked(realm) -> str:
    """A token that its owner took back."""
    token = realm.token(ME, "acme", "--ttl", "5m")
    with realm.server.client(headers=realm.headers(ME)) as me:
        claims = me.get("/v1/auth/whoami", headers={"Authorization": f"Bearer {token}"}).json()
        me.post("/v1/auth/revoke", json={"jti": claims["token"]["jti"]}).raise_for_status()
    return token


REFUSED = {
    "EXPIRED_TOKEN": expired,
    "INVALID_TOKEN_SIGNATURE": tampered,
    "REVOKED_TOKEN": revoked,
    "WRONG_TENANT": lambda realm: realm.token(ME, "elsewhere"),
    "ACTOR_MISMATCH": lambda realm: realm.token("user:mallory"),
}


@pytest.mark.parametrize("code, token", REFUSED.items(), ids=REFUSED)
def test_a_bad_token_is_the_client_s_auth_error(realm, connect, code, token):
    """Whatever is wrong with it, code and all: the client knows that it must ask for another."""
    client = connect(bearer=token(realm))
    with pytest.raises(V1AuthError) as refused:
        client.whoami()

    assert (401, code) == (refused.value.status, refused.value.error_code)
    assert refused.value.request_id
    assert not refused.value.retriable


def test_no_token_is_the_client_s_auth_error(realm):
    """A client without a bearer is told that it needs one."""
    with V1Client(realm.server.url, actor=ME) as client, pytest.raises(V1AuthError) as refused:
        client.whoami()

    assert "MISSING_TOKEN" == refused.value.error_code


def test_a_denial_is_the_client_s_policy_error(connect, scope):
    """With the capability and the tier that said no, where the client can show them."""
    reader = connect("agent:reader", "--cap", "scope.read.local")
    with pytest.raises(V1PolicyDeniedError) as denied:
        reader.experience(scope, text="may I?")

    assert (403, "POLICY_DENIED") == (denied.value.status, denied.value.error_code)
    assert ("scope.write", "token") == (
        denied.value.details["capability"],
        denied.value.details["denied_by_tier"],
    )


def test_a_closed_scope_is_the_client_s_policy_error(realm, ines, scope):
    """Who is no member of a registered scope may not write there."""
    with realm.client("user:owner") as owner:
        owner.post("/v1/scopes", json={"path": scope, "owner": "user:owner"}).raise_for_status()
    with pytest.raises(V1PolicyDeniedError) as denied:
        ines.experience(scope, text="let me in")

    assert "NOT_A_MEMBER" == denied.value.error_code


def test_a_limit_is_the_client_s_rate_error(realm, connect):
    """When the bucket is empty the client is told to come back, and may."""
    hasty = connect("agent:hasty")
    with realm.client("user:admin") as admin:
        limits = {"rate_limits": {"read": "1/h"}}
        admin.put("/v1/policy/actor/agent:hasty", json=limits).raise_for_status()
    hasty.whoami()
    with pytest.raises(V1RateLimitError) as limited:
        hasty.whoami()

    assert (429, True) == (limited.value.status, limited.value.retriable)


def test_a_key_used_twice_is_a_conflict(ines, scope, fresh_key):
    """The same key with another body: the client's own mistake, said as such."""
    key = fresh_key()
    ines.experience(scope, text="one", idempotency_key=key)
    with pytest.raises(V1APIError) as conflict:
        ines.experience(scope, text="another", idempotency_key=key)

    assert (409, "IDEMPOTENCY_CONFLICT") == (conflict.value.status, conflict.value.error_code)
    assert not conflict.value.retriable


@pytest.mark.parametrize(
    "code, field, ask",
    [
        ("INVALID_SCOPE_GRAMMAR", "scope", lambda c: c.events("not a scope")),
        ("INVALID_TIMESTAMP", "since", lambda c: c.events("org:a", since="yesterday")),
        ("INVALID_CURSOR", "cursor", lambda c: c.events("org:a", cursor="abc")),
        ("INVALID_PARAMETER", "limit", lambda c: c.events("org:a", limit=0)),
        ("INVALID_PARAMETER", "wait", lambda c: c.experience("org:a", text="x", wait="soon")),
    ],
)
def test_a_bad_request_names_its_field(ines, code, field, ask):
    """The client passes on what is wrong and where, so that a person can mend it."""
    with pytest.raises(V1APIError) as refused:
        ask(ines)

    assert (422, code) == (refused.value.status, refused.value.error_code)
    assert field == refused.value.details["field"]


def test_what_is_unknown_is_not_found(ines):
    """An id that was never given out."""
    with pytest.raises(V1APIError) as missing:
        ines.write_status(event_id="evt_01980000-0000-7000-8000-000000000000")

    assert (404, "NOT_FOUND") == (missing.value.status, missing.value.error_code)


# ── asking ───────────────────────────────────────────────────────────────────────────────────


def test_recall_gives_a_pack(ines, scope):
    """The client asks with nothing but a scope, and with everything it knows."""
    ines.experience(scope, text="Acme moved to 200 seats", wait="indexed")
    newest = ines.recall(scope)
    full = ines.recall(
        scope,
        query="How many seats does Acme have?",
        view="granular",
        include=["facts", "events"],
        diagnostics="full",
        budgets={"max_tokens": 500},
        filters={"modality": "conversation"},
        language="en",
        scripts=["Latn"],
        query_variants=[{"text": "seat count of Acme"}],
    )

    assert "Acme moved to 200 seats" in newest["context_block"]
    assert "Acme moved to 200 seats" == full["layers"]["events"][0]["content"]["text"]
    assert full["diagnostics"]["receipt"]["signature"]


def test_an_answer_quotes(ines, scope):
    """The words that were said, cited; a model that is not there is said in the client's terms."""
    ines.experience(scope, text="Acme moved to 200 seats in May.", wait="indexed")
    said = ines.answer(scope, "How many seats does Acme have?", cite_sources=True)
    with pytest.raises(V1NotConfiguredError):
        ines.answer(scope, "How many seats does Acme have?", answer_model="gpt-unknown")

    assert "Acme moved to 200 seats in May." in said["answer"]
    assert ["event"] == [citation["layer"] for citation in said["citations"]]


# ── the layers ───────────────────────────────────────────────────────────────────────────────


def test_the_layers_are_listed(realm, ines, scope, envelope):
    """Episodes, facts, beliefs and concepts of a scope, as the client asks for them."""
    with realm.client("user:ines") as raw:
        for number, thing in enumerate(("200 seats", "a renewal", "two offices", "a pilot")):
            said = {"subject": {"name": "Acme"}, "predicate": f"has_{number}", "object": thing}
            body = envelope(content={"kind": "triple", "triple": said})
            assert 200 == raw.post("/v1/experience?wait=settled", json=body).status_code
    facts = ines.facts(scope, subject="Acme")["items"]
    beliefs = ines.beliefs(scope)["items"]
    why = ines.belief_why(beliefs[0]["id"])
    history = ines.belief_history(beliefs[0]["id"])

    assert {f"has_{number}" for number in range(4)} == {fact["predicate"] for fact in facts}
    assert facts[:1] == ines.facts(scope, subject="Acme", predicate="has_3")["items"]
    assert ines.episodes(scope)["items"]
    assert ["Acme"] == [concept["name"] for concept in ines.understanding(scope)["items"]]
    assert why["narrative"]
    assert beliefs[0] == history["current"]
    assert ines.synthesize(scope, topics=["Acme"])["job_id"]


# ── forgetting ───────────────────────────────────────────────────────────────────────────────


def test_something_is_forgotten(ines, scope):
    """A dry run, then the same for real, then nothing; the client's own words for it."""
    ines.experience(scope, triple=CONTACT, wait="consolidated")
    shown = ines.forget_preview(scope, predicate="billing_contact")
    done = ines.forget(
        scope,
        predicate="billing_contact",
        reason="asked",
        from_preview_id=shown["preview_id"],
    )

    assert shown["estimated_deleted"] == done["deleted"]
    assert done["deleted"]["facts"] == 1
    assert [] == ines.facts(scope)["items"]
    assert 1 == len(ines.events(scope)["items"])


def test_something_is_erased(ines, scope):
    """A preview counts, the erasure of a single memory is begun from it."""
    receipt = ines.experience(scope, text="the code is 4711", wait="indexed")
    chosen = [receipt["event_id"]]
    shown = ines.erasure_preview(scope, memory_ids=chosen, audit_note="DSR 1")
    begun = ines.erase(scope, memory_ids=chosen, from_preview_id=shown["preview_id"])

    assert 1 == shown["refcount_breakdown"]["events_to_delete"]
    assert begun["erasure_id"].startswith("erasure_")


def test_a_blob_is_taken_away_and_may_be_missing(ines):
    """One that nothing cites goes; the client asks not to mind when it is gone already."""
    blob_id = ines.upload_blob(b"for a moment", "text/plain")["blob_id"]
    ines.delete_blob(blob_id)

    assert ines.delete_blob(blob_id, missing_ok=True)["already_deleted"]
    with pytest.raises(V1APIError) as gone:
        ines.delete_blob(blob_id)
    assert 404 == gone.value.status


def test_an_import_is_followed(ines, realm, scope):
    """The client asks how far an import is; it has no method to begin one of the seed's."""
    row = {"id": "m1", "memory": "Acme moved to 200 seats", "created_at": "2026-05-13T15:42:00Z"}
    body = {"source": {"inline": [row]}, "scope_template": scope}
    with realm.client(ME) as http:
        begun = http.post("/v1/import/mem0", json=body).json()
    state = ines.import_status(begun["import_id"])

    assert begun["import_id"] == state["import_id"]
    assert state["status"] in ("running", "completed")


# ── what the seed does not have ──────────────────────────────────────────────────────────────

WHERE = "org:acme/user:ines"
BEYOND: dict[str, Callable[[V1Client], object]] = {
    "signup": lambda c: V1Client.signup(c.api_url, display_name="Ines"),
    "mint_token": lambda c: c.mint_token(subject="user:bob"),
    "compose": lambda c: c.compose(WHERE, "a digest"),
    "event_chunks": lambda c: c.event_chunks("evt_1"),
    "build_episodes": lambda c: c.build_episodes(WHERE),
    "build_beliefs": lambda c: c.build_beliefs(WHERE),
    "create_belief": lambda c: c.create_belief(WHERE, "so", confidence=0.5),
    "list_conflicts": lambda c: c.list_conflicts(WHERE),
    "get_conflict": lambda c: c.get_conflict("cf_1"),
    "resolve_conflict": lambda c: c.resolve_conflict("cf_1", "dismiss"),
    "query_claims": lambda c: c.query_claims(WHERE, subject="Acme"),
    "claim_history": lambda c: c.claim_history(WHERE, subject="Acme", predicate="owns"),
    "concept_history": lambda c: c.concept_history("concept_1"),
    "import_data": lambda c: c.import_data(WHERE, lines=["{}"]),
    "update_vocabulary": lambda c: c.update_vocabulary("crm", description="x"),
    "layer_stats": lambda c: c.layer_stats(),
    "index_audit": lambda c: c.index_audit(),
    "retention_status": lambda c: c.retention_status(),
    "retention_policy_get": lambda c: c.retention_policy_get(WHERE),
    "retention_policy_set": lambda c: c.retention_policy_set(WHERE, default_retention_days=30),
    "retention_policy_delete": lambda c: c.retention_policy_delete(WHERE),
    "retention_sweep": lambda c: c.retention_sweep(),
    "wal_status": lambda c: c.wal_status(),
    "wal_compact": lambda c: c.wal_compact(),
    "code.repos": lambda c: c.code.repos(),
}
"""Methods of the client that go where the seed has no endpoint: the deviations say why not."""

NO_CALLS = {"close", "aclose", "code"}
"""Of the client, and no call: it is closed, and `code` is a handful of calls of its own."""


@pytest.mark.parametrize("call", BEYOND.values(), ids=BEYOND)
def test_what_the_seed_does_not_have_is_refused_cleanly(ines, call):
    """404 or 405 in the envelope that its errors are read from, with an id to ask about."""
    with pytest.raises(V1APIError) as missing:
        call(ines)

    error = missing.value
    assert (error.status, error.error_code) in ((404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED"))
    assert error.request_id


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_refused_stands_among_the_deviations(name):
    """With the reason, so that nobody has to find out by trying."""
    page = Path(__file__).parents[2] / "docs" / "deviations.md"

    assert f"`{name.partition('.')[0]}`" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [V1Client, AsyncV1Client], ids=lambda kind: kind.__name__)
def test_every_public_method_is_tried_here(kind):
    """A method of the published client is called in this file, one that came with a release too."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    public = {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}

    assert set() == public - called - NO_CALLS


# ── the asynchronous client ──────────────────────────────────────────────────────────────────


def test_the_asynchronous_client_is_at_home_too(realm, scope):
    """The same requests over another library: it writes, it learns who it is, it is refused."""

    async def visit() -> tuple[dict[str, Any], dict[str, Any], str]:
        client = AsyncV1Client(realm.server.url, actor=ME, bearer=realm.token(ME))
        stranger = AsyncV1Client(realm.server.url, actor=ME, bearer="v4.public.nonsense")
        try:
            written = await client.experience(scope, json_data={"a": 1}, wait="indexed")
            with pytest.raises(V1AuthError) as refused:
                await stranger.whoami()
            return written, await client.whoami(), refused.value.error_code
        finally:
            await client.aclose()
            await stranger.aclose()

    written, me, code = asyncio.run(visit())
    assert "indexed" in written["stages_completed"]
    assert ME == me["caller"]
    assert "INVALID_TOKEN_SIGNATURE" == code
