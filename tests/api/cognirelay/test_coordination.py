"""/v1/coordination: every limit at its edge, and who wins when two want the same."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

SHARED = "/v1/coordination/shared/create"
OPEN = "/v1/coordination/reconciliation/open"
LISTS = ("constraints", "drift_signals", "coordination_alerts")

SIZES = (0, 120, 121)


def state(**fields):
    body = {"participant_peers": ["bob"], "title": "plan", "constraints": ["one"]}
    return body | fields


@pytest.mark.parametrize("field, most", [("title", 120), ("summary", 240)])
def test_longest_text_of_shared_state(peers, field, most):
    """A text of the greatest length is taken; one more, or none, is a 400 that names it."""
    taken = peers.post(SHARED, state(**{field: "é" * most}), "alice")
    longer = peers.post(SHARED, state(**{field: "é" * (most + 1)}), "alice")
    shorter = peers.post(SHARED, state(**{field: ""}), "alice")

    assert [200, 400, 400] == [one.status_code for one in (taken, longer, shorter)]
    assert f"Value too long in coordination_shared.{field}" == longer.json()["detail"]
    assert f"Value too short in coordination_shared.{field}" == shorter.json()["detail"]


def test_longest_message_of_a_change(peers):
    """A message has at most 120 characters; an empty one is as good as none."""
    sizes = {size: peers.post(SHARED, state(commit_message="é" * size), "alice") for size in SIZES}

    assert [200, 200, 400] == [one.status_code for one in sizes.values()]
    assert "Value too long in coordination_shared.commit_message" == sizes[121].json()["detail"]


@pytest.mark.parametrize(
    "participants, status, detail",
    [
        (["bob", "alice"], 400, "participant_peers must not include owner_peer"),
        (["nobody", "alice"], 404, "Peer not found: nobody"),
        (["bob", "bob", "alice"], 400, "participant_peers must not contain duplicates"),
    ],
)
def test_participants_are_looked_at_one_by_one(peers, participants, status, detail):
    """The first that is wrong is said, before anything is said of texts."""
    body = state(participant_peers=participants, title="")
    refused = peers.post(SHARED, body, "alice")

    assert (status, detail) == (refused.status_code, refused.json()["detail"])


@pytest.mark.parametrize("field", LISTS)
def test_largest_lists_of_shared_state(peers, field):
    """Eight items of 160 characters are taken; nine are 422, a longer one is 400."""
    full = peers.post(SHARED, state(**{field: ["x" * 160] * 8}), "alice")
    many = peers.post(SHARED, state(**{field: ["x"] * 9}), "alice")
    long = peers.post(SHARED, state(**{field: ["x" * 161]}), "alice")

    assert [200, 422, 400] == [one.status_code for one in (full, many, long)]
    assert ["body", field] == many.json()["detail"][0]["loc"]


def test_most_participants(peers):
    """Eight peers share at most, each of them known."""
    for number in range(9):
        body = {"peer_id": f"p{number}", "base_url": "http://x"}
        peers.post("/v1/peers/register", body)
    names = [f"p{number}" for number in range(9)]
    taken = peers.post(SHARED, state(participant_peers=names[:8]), "alice")
    refused = peers.post(SHARED, state(participant_peers=names), "alice")

    assert [200, 422] == [taken.status_code, refused.status_code]


@pytest.mark.parametrize("body", [{}, {"participant_peers": None}, {"participant_peers": []}])
def test_nobody_to_share_with(peers, body):
    """Shared state without others is 422, said or left unsaid."""
    fields = {name: value for name, value in state().items() if name != "participant_peers"}
    refused = peers.post(SHARED, fields | body, "alice")

    assert 422 == refused.status_code
    assert ["body", "participant_peers"] == refused.json()["detail"][0]["loc"]


@pytest.mark.parametrize("field", ["task_id", "thread_id"])
def test_longest_links(peers, field):
    """Ids of tasks and threads have at most 200 characters."""
    taken = peers.post(SHARED, state(**{field: "t" * 200}), "alice")
    refused = peers.post(SHARED, state(**{field: "t" * 201}), "alice")

    assert [200, 422] == [taken.status_code, refused.status_code]


def shared(peers, **fields):
    answer = peers.post(SHARED, state(**fields), "alice")
    assert 200 == answer.status_code, answer.text
    return answer.json()["shared"]["shared_id"]


def claim(source_id, peer="alice", **fields):
    return {
        "source_kind": "shared",
        "source_id": source_id,
        "claimant_peer": peer,
        "claim_summary": f"says {peer}",
        "epistemic_status": "frame_present",
        "observed_version": 1,
    } | fields


def dispute(claims, **fields):
    return {
        "thread_id": "one",
        "title": "who is right",
        "classification": "contradictory",
        "trigger": "shared_vs_shared",
        "claims": claims,
    } | fields


@pytest.mark.parametrize("count, status", [(0, 400), (1, 400), (2, 200), (4, 200), (5, 422)])
def test_how_many_claims(peers, count, status):
    """Two to four claims make a disagreement."""
    sources = [shared(peers) for _ in range((count + 1) // 2)]
    claims = [claim(source, peer) for source in sources for peer in ("alice", "bob")][:count]

    assert status == peers.post(OPEN, dispute(claims), "alice").status_code


@pytest.mark.parametrize(
    "where, field, most",
    [
        ("record", "title", 120),
        ("record", "summary", 240),
        ("record", "commit_message", 120),
        ("claim", "claim_summary", 240),
        ("claim", "evidence_refs", 160),
    ],
)
def test_longest_texts_of_a_reconciliation(peers, where, field, most):
    """A text of the greatest length is taken, one character more is a 400 that names it."""
    source = shared(peers)

    def opened(length):
        text = ["x" * length] if field == "evidence_refs" else "x" * length
        in_claim = {field: text} if where == "claim" else {}
        in_record = {field: text} if where == "record" else {}
        claims = [claim(source, **in_claim), claim(source, "bob")]
        return peers.post(OPEN, dispute(claims, **in_record), "alice")

    taken, refused = opened(most), opened(most + 1)

    assert [200, 400] == [taken.status_code, refused.status_code]
    assert f"Value too long in coordination_reconciliation.{field}" == refused.json()["detail"]


@pytest.mark.parametrize("count, status", [(4, 200), (5, 422)])
def test_most_evidence(peers, count, status):
    """A claim names at most four references."""
    source = shared(peers)
    claims = [claim(source, evidence_refs=["e"] * count), claim(source, "bob")]

    assert status == peers.post(OPEN, dispute(claims), "alice").status_code


def resolution(**fields):
    return {"expected_version": 1, "outcome": "rejected", "resolution_summary": "so be it"} | fields


@pytest.fixture
def record(peers):
    """An open reconciliation: where to resolve it."""
    source = shared(peers)
    claims = [claim(source), claim(source, "bob")]
    answer = peers.post(OPEN, dispute(claims), "alice").json()
    return f"/v1/coordination/reconciliation/{answer['reconciliation']['reconciliation_id']}"


def test_longest_resolution(peers, record):
    """A summary has 1 to 240 characters."""
    path = record + "/resolve"
    long = peers.post(path, resolution(resolution_summary="s" * 241), "alice")
    taken = peers.post(path, resolution(resolution_summary="s" * 240), "alice")

    assert [400, 200] == [long.status_code, taken.status_code]


def test_the_name_of_the_text_is_taken(peers, record):
    """`resolution_outcome`, as the text has it, is taken where the request is whole."""
    whole = {"expected_version": 1, "resolution_outcome": "rejected", "resolution_summary": "ok"}
    taken = peers.post(record + "/resolve", whole, "alice")

    assert 200 == taken.status_code
    assert "rejected" == taken.json()["reconciliation"]["resolution_outcome"]


def test_first_resolution_wins(peers, record):
    """Of many outcomes at once one is written; the same words are a replay, others a conflict."""

    def resolve(number):
        body = resolution(resolution_summary=f"number {number % 4}")
        return peers.post(record + "/resolve", body, "alice")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(resolve, range(8)))

    written = [one.json() for one in answers if one.status_code == 200]
    assert [200] * 2 + [409] * 6 == sorted(one.status_code for one in answers)
    assert [False, True] == sorted(one["updated"] for one in written)
    assert 2 == peers.get(record, "bob").json()["reconciliation"]["version"]


def test_one_of_many_updates_wins(peers):
    """Of updates that name one version, one is written."""
    path = f"/v1/coordination/shared/{shared(peers)}/update"

    def update(number):
        body = {"expected_version": 1, "title": f"title {number}", "constraints": ["x"]}
        return peers.post(path, body, "alice").status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(update, range(6)))

    assert [200] + [409] * 5 == sorted(statuses)


QUERIES = (
    "handoffs/query?recipient_peer=bob",
    "shared/query?owner_peer=bob",
    "reconciliations/query?claimant_peer=bob",
)
PAGES = (
    ("limit=1", 200),
    ("limit=100", 200),
    ("limit=0", 422),
    ("limit=101", 422),
    ("limit=x", 422),
    ("offset=0", 200),
    ("offset=-1", 422),
)


@pytest.mark.parametrize("path", QUERIES)
@pytest.mark.parametrize("page, status", PAGES)
def test_query_limits(peers, path, page, status):
    """A page has 1 to 100 rows and begins at 0 or later."""
    assert status == peers.get(f"/v1/coordination/{path}&{page}", "bob").status_code


@pytest.mark.parametrize("length, status", [(200, 403), (201, 422)])
def test_longest_peer_in_a_query(peers, length, status):
    """A peer's id has at most 200 characters; who asks about others is refused."""
    query = f"/v1/coordination/handoffs/query?sender_peer={'p' * length}"

    assert status == peers.get(query, "bob").status_code


def test_a_peer_is_known_once(relay):
    """Registering again changes what is known, and remembers who changed the trust."""
    body = {"peer_id": "dave", "base_url": "http://x", "public_key": "k"}
    first = relay.post("/v1/peers/register", body).json()
    more = {"trust_level": "trusted", "transition_reason": "met", "public_key": None}
    second = relay.post("/v1/peers/register", body | more).json()
    history = [(change["to"], change["reason"]) for change in second["peer"]["trust_history"]]

    assert [True, False] == [first["created"], second["created"]]
    assert [("restricted", "register_update"), ("trusted", "met")] == history
    assert first["peer"]["created_at"] == second["peer"]["created_at"]
    mark = "sha256:" + sha256(b"k").hexdigest()
    assert [mark] * 2 == [one["peer"]["public_key_fingerprint"] for one in (first, second)]


@pytest.mark.parametrize(
    "more, status, detail",
    [
        ({"trust_level": "trusted"}, 400, "Trust transition reason is required"),
        (
            {"trust_level": "trusted", "transition_reason": "met"},
            400,
            "public_key fingerprint is required for trusted peers",
        ),
        (
            {"public_key": "k", "expected_public_key_fingerprint": "0"},
            400,
            "public_key fingerprint mismatch",
        ),
    ],
)
def test_trust_is_changed_for_a_reason(relay, more, status, detail):
    """A step of trust says why, and only who has shown a key is trusted."""
    body = {"peer_id": "dave", "base_url": "http://x"}
    relay.post("/v1/peers/register", body)
    refused = relay.post("/v1/peers/register", body | more)

    assert (status, detail) == (refused.status_code, refused.json()["detail"])


def test_trust_is_changed_step_by_step(relay):
    """Nobody goes from no trust to full trust at once."""
    body = {"peer_id": "dave", "base_url": "http://x", "public_key": "k"}
    relay.post("/v1/peers/register", body | {"trust_level": "untrusted"})
    more = {"trust_level": "trusted", "transition_reason": "met"}

    assert 409 == relay.post("/v1/peers/register", body | more).status_code


def test_only_an_admin_registers(relay):
    """Whom one may talk to is for an admin to say."""
    body = {"peer_id": "dave", "base_url": "http://x"}

    assert 403 == relay.post("/v1/peers/register", body, "alice").status_code


def capsule(subject_id):
    return {
        "subject_kind": "thread",
        "subject_id": subject_id,
        "updated_at": "2026-01-01T00:00:00Z",
        "verified_at": "2026-01-01T00:00:00Z",
        "source": {"producer": "tests", "update_reason": "manual"},
        "continuity": {
            "top_priorities": [],
            "active_concerns": [],
            "active_constraints": [f"constraint {number}" for number in range(8)],
            "open_loops": [],
            "stance_summary": "go on",
            "drift_signals": [],
        },
        "confidence": {"continuity": 1, "relationship_model": 1},
    }


@pytest.fixture
def hand_over(peers):
    """Handoffs of one subject from alice to bob; fields may be replaced."""
    subject = {"subject_kind": "thread", "subject_id": "one"}
    body = subject | {"capsule": capsule("one")}
    assert 200 == peers.post("/v1/continuity/upsert", body).status_code

    def create(**fields):
        path = "/v1/coordination/handoff/create"
        return peers.post(path, subject | {"recipient_peer": "bob"} | fields, "alice")

    return create


@pytest.mark.parametrize(
    "field, most, status",
    [
        ("note", 240, 422),
        ("task_id", 200, 422),
        ("thread_id", 200, 422),
        ("commit_message", 120, 400),
    ],
)
def test_longest_texts_of_a_handoff(hand_over, field, most, status):
    """A text of the greatest length is taken, one character more is refused."""
    taken = hand_over(**{field: "é" * most})
    refused = hand_over(**{field: "é" * (most + 1)})

    assert [200, status] == [taken.status_code, refused.status_code]


@pytest.mark.parametrize("field", ["recipient_peer", "subject_id"])
def test_longest_ids_of_a_handoff(hand_over, field):
    """An id of 200 characters is looked for, a longer or an empty one is not."""
    known, long, empty = (hand_over(**{field: "x" * length}) for length in (200, 201, 0))

    assert [404, 422, 422] == [one.status_code for one in (known, long, empty)]


@pytest.mark.parametrize("field", ["reason", "note"])
def test_longest_answer_to_a_handoff(peers, hand_over, field):
    """The recipient's reason, and the note of the text, have at most 240 characters."""
    handoff = hand_over().json()["handoff"]["handoff_id"]
    path = f"/v1/coordination/handoff/{handoff}/consume"
    refused = peers.post(path, {"status": "deferred", field: "r" * 241}, "bob")
    taken = peers.post(path, {"status": "deferred", field: "r" * 240}, "bob")

    assert [422, 200] == [refused.status_code, taken.status_code]
    assert "r" * 240 == taken.json()["handoff"][f"recipient_{field}"]


def test_a_handoff_is_consumed_once(peers, hand_over):
    """Of many answers at once one is written; the same again is a replay, others a conflict."""
    handoff = hand_over().json()["handoff"]["handoff_id"]
    path = f"/v1/coordination/handoff/{handoff}/consume"
    outcomes = ("accepted_advisory", "deferred", "rejected") * 2

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda said: peers.post(path, {"status": said}, "bob"), outcomes))

    assert [200, 200, 409, 409, 409, 409] == sorted(one.status_code for one in answers)
    written = [one.json()["updated"] for one in answers if one.status_code == 200]
    assert [False, True] == sorted(written)


@pytest.mark.parametrize(
    "field, most", [("peer_id", 200), ("base_url", 2000), ("public_key", 4096)]
)
def test_longest_texts_of_a_peer(relay, field, most):
    """A text of the greatest length is taken, one character more is refused."""
    body = {"peer_id": "dave", "base_url": "http://x"}
    answers = [relay.post("/v1/peers/register", body | {field: "x" * (most + n)}) for n in (0, 1)]

    assert [200, 422] == [one.status_code for one in answers]


@pytest.mark.parametrize("count, status", [(64, 200), (65, 422)])
def test_most_scopes_of_a_peer(relay, count, status):
    """A peer is allowed at most 64 scopes."""
    body = {"peer_id": "dave", "base_url": "http://x", "allowed_scopes": ["read:files"] * count}

    assert status == relay.post("/v1/peers/register", body).status_code


def test_a_user_is_not_the_agent_of_its_name(client):
    """What was handed to agent bob is not user bob's to consume."""
    subject = {"subject_kind": "thread", "subject_id": "named"}

    def post(path, body, actor):
        return client.post(f"/cognirelay/v1{path}", json=body, headers={"X-Cortex-Actor": actor})

    for name in ("ann", "ben"):
        body = {"peer_id": name, "base_url": "http://x"}
        assert 200 == post("/peers/register", body, "agent:ann").status_code
    assert (
        200
        == post(
            "/continuity/upsert", subject | {"capsule": capsule("named")}, "agent:ann"
        ).status_code
    )
    made = post("/coordination/handoff/create", subject | {"recipient_peer": "ben"}, "agent:ann")
    handoff = made.json()["handoff"]
    path = f"/coordination/handoff/{handoff['handoff_id']}/consume"
    body = {"status": "deferred", "note": "later"}

    assert 5 == len(handoff["shared_continuity"]["active_constraints"])
    assert 403 == post(path, body, "user:ben").status_code
    taken = post(path, body, "agent:ben")
    assert (200, "later", None) == (
        taken.status_code,
        taken.json()["handoff"]["recipient_note"],
        taken.json()["handoff"]["recipient_reason"],
    )
