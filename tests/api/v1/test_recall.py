"""Recall over HTTP: every example of 001 §8.3, §9 and §10, and what a caller may count on."""

import json
import re
from pathlib import Path

import pytest

from schemas import limits

SEED = Path(__file__).parents[2] / "golden" / "seed"
LAYERS = {"events", "episodes", "facts", "beliefs", "understanding"}


@pytest.fixture
def told(api, envelope):
    """Experiences written and findable, by their text: event id."""

    def write(*texts, **changes):
        items = [envelope(text, **changes) for text in texts]
        bulk = api.post("/v1/experience/bulk?wait=indexed", json={"items": items})
        assert bulk.status_code in {200, 202}, bulk.text
        found = {}
        for item in items:
            status = api.get(f"/v1/experience/by-idempotency-key/{item['idempotency_key']}")
            found[item["content"]["text"]] = status.json()["event_id"]
        return found

    return write


@pytest.fixture
def ask(api, scope):
    """Recall in the test's scope; the pack."""

    def post(query=None, **fields):
        body = {"scope": scope, **({} if query is None else {"query": query}), **fields}
        answer = api.post("/v1/recall", json=body)
        assert 200 == answer.status_code, answer.text
        return answer.json()

    return post


def texts(pack):
    """What the events of a pack say, best first."""
    return [item["content"]["text"] for item in pack["layers"]["events"]]


def seed_body(name, **changes):
    """A request as the seed prints it."""
    return json.loads((SEED / f"{name}.txt").read_text(encoding="utf-8")) | changes


ACME = (
    "Acme moved to 200 seats and signed by 3:42pm",
    "The Q3 launch was decided for July",
    "Dana from Acme prefers tea to coffee",
    "The office printer is out of paper again",
)


# ── the pack (001 §8.3, §9) ──────────────────────────────────────────────────────────────────


def test_section_8_3_example(api, told, scope):
    """The seed's own request is answered with a pack of the documented shape."""
    told(*ACME)
    answer = api.post("/v1/recall", json=seed_body("8.3-request", scope=scope))
    pack = answer.json()

    assert 200 == answer.status_code, answer.text
    assert "stable" == answer.headers["x-cortex-stability"]
    assert (scope, "holistic") == (pack["scope"], pack["view"])
    assert answer.headers["x-cortex-request-id"] == pack["request_id"]
    assert pack["pack_id"].startswith("pack_")
    assert LAYERS == set(pack["layers"])
    assert ["observed_actor.in", "confidence.gte"] == pack["diagnostics"]["filters_applied"]
    assert [scope, "org:tests"] == pack["diagnostics"]["scopes_traversed"]
    assert pack["diagnostics"]["time_ms"]["total"] >= 0


def test_the_right_things_are_found(ask, told):
    """An event comes back verbatim, first, with its place and score."""
    told(*ACME)
    pack = ask("How many seats does Acme have now?")
    first = pack["layers"]["events"][0]

    assert ACME[0] == first["content"]["text"]
    assert 1 == first["ranked_position"]
    assert 0 < first["score"] <= 1
    assert ("user:anonymous", "first_hand") == (first["source"], first["trust"]) or first["source"]
    positions = [item["ranked_position"] for item in pack["layers"]["events"]]
    assert list(range(1, len(positions) + 1)) == positions


def test_recall_returns_the_bytes_that_were_stored(api, ask, told):
    """The content of a recalled event is the content of the event, not a rendering of it."""
    words = "  Spaced,\n\tand with a tab [user] …\n"
    event_id = told(words)[words]
    (item,) = [i for i in ask("spaced tab")["layers"]["events"] if i["id"] == event_id]

    assert api.get(f"/v1/events/{event_id}").json()["content"] == item["content"]
    assert words == item["content"]["text"]


def test_without_a_query_the_newest_comes_first(ask, told):
    """The published client may ask for a scope and nothing else."""
    told("the first thing")
    told("the second thing")
    pack = ask()

    assert ["the second thing", "the first thing"] == texts(pack)[:2]


def test_an_empty_scope_is_an_empty_pack(ask):
    """A scope nobody wrote to has nothing to say, and says so."""
    pack = ask("anything?")

    assert all(not items for items in pack["layers"].values())
    assert "" == pack["context_block"]
    assert 0 == pack["budget"]["used_tokens"]


# ── views (001 §9.1) ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "view, filled, has_block",
    [
        ("holistic", True, True),
        ("local", True, True),
        ("descend", True, True),
        ("raw", True, False),
        ("granular", True, False),
        ("narrative", False, True),
        ("structured", False, False),
    ],
)
def test_a_view_fills_what_it_says(ask, told, view, filled, has_block):
    """Each view fills its part of the pack and leaves the rest empty."""
    told(*ACME)
    pack = ask("Acme seats", view=view)

    assert filled == bool(pack["layers"]["events"])
    assert has_block == bool(pack["context_block"])
    assert (view == "structured") == ("knowledge_subgraph" in pack)
    if view == "raw":
        assert {"events"} == {layer for layer, items in pack["layers"].items() if items}


def test_narratives_are_experimental(api, told, scope):
    """The tier of 001 §2.4.3 is said on the answer."""
    told(*ACME)
    answer = api.post("/v1/recall", json={"scope": scope, "query": "Acme", "view": "narrative"})

    assert "experimental" == answer.headers["x-cortex-stability"]
    assert answer.headers["x-cortex-experimental-notice"]


def test_the_graph_is_json_ld(ask, told):
    """Every key of a node is a term of the context or a keyword, and every node has an IRI."""
    told(*ACME)
    graph = ask("Acme seats", view="structured")["knowledge_subgraph"]
    context = graph["@context"]

    assert {"@context", "@graph"} == set(graph)
    assert context["@vocab"].endswith(":")
    nodes = {node["id"] for node in graph["@graph"]}
    assert len(nodes) == len(graph["@graph"]) > 0
    for node in graph["@graph"]:
        assert re.fullmatch(r"urn:strata:[A-Za-z0-9_.:~%-]+", node["id"])
        assert node["type"] in {"Event", "Episode", "Fact", "Belief", "Concept", "Entity"}
        assert set(node.get("wasDerivedFrom", [])) <= nodes


def test_holistic_reads_the_scopes_above(api, told, scope):
    """What a user knows is found from a workspace of that user; local stays where it is."""
    told("Acme Holdings is in Lisbon")
    below = f"{scope}/ws:launch"
    told(*ACME, scope=below)
    found = {}
    for view in ("holistic", "local"):
        body = {"scope": below, "query": "Where is Acme Holdings?", "view": view}
        found[view] = texts(api.post("/v1/recall", json=body).json())

    assert "Acme Holdings is in Lisbon" in found["holistic"]
    assert "Acme Holdings is in Lisbon" not in found["local"]


def test_a_closed_scope_below_is_a_placeholder(api, told, scope, envelope):
    """Descending shows that something is there and how much, not what (001 §18.2.4)."""
    closed = f"{scope}/ws:closed"
    told(*ACME)
    for text in ("a secret plan", "another secret plan"):
        body = envelope(text, scope=closed, idempotency_key=text[:30] + scope[-6:])
        api.post("/v1/experience?wait=indexed", json=body)
    register = {"path": closed, "members": [{"actor": "user:owner", "role": "owner"}]}
    made = api.post("/v1/scopes", json=register, headers={"X-Cortex-Actor": "user:owner"})
    assert made.status_code in {200, 201}, made.text
    body = {"scope": scope, "query": "plan", "view": "descend"}
    answer = api.post("/v1/recall", json=body, headers={"X-Cortex-Actor": "user:stranger"})
    pack = answer.json()

    (placeholder,) = [one for one in pack["scopes_traversed"] if one.get("denied")]
    assert (closed, 2) == (placeholder["scope"], placeholder["item_count"])
    assert "scope" in placeholder["denied_reason"]
    assert "secret" not in answer.text
    then = body | {"temporal": {"as_of": "2026-01-01T00:00:00Z"}}
    pack = api.post("/v1/recall", json=then, headers={"X-Cortex-Actor": "user:stranger"}).json()
    assert [0] == [one["item_count"] for one in pack["scopes_traversed"] if one.get("denied")]


# ── what may come back ───────────────────────────────────────────────────────────────────────


def test_include_names_the_layers(ask, told):
    """Only the layers that were asked for are filled; `concepts` is understanding."""
    told(*ACME)

    assert not ask("Acme", include=["facts", "concepts"])["layers"]["events"]
    assert ask("Acme", layers=["events"])["layers"]["events"]


def test_content_can_be_left_out(ask, told):
    """With exclude_content come ids, places and metadata."""
    told(*ACME)
    item = ask("Acme seats", exclude_content=True)["layers"]["events"][0]

    assert "content" not in item
    assert {"id", "context", "ranked_position", "score"} <= set(item)


@pytest.mark.parametrize("name", ["budgets", "limits"])
def test_caps_and_budget_have_two_names(ask, told, name):
    """`budgets.per_layer_limits` and `limits.per_layer` are the same (001 §9.2)."""
    told(*ACME)
    caps, tokens = (
        ("per_layer_limits", "max_tokens") if name == "budgets" else ("per_layer", "total_tokens")
    )

    assert 1 == len(ask("Acme", **{name: {caps: {"events": 1}}})["layers"]["events"])
    assert 0 == ask("Acme", **{name: {tokens: 0}})["budget"]["used_tokens"]


def test_a_binding_budget_says_what_it_left_out(ask, told):
    """The number of evictions, and in full what each would have cost."""
    told(*(f"Acme seat number {n} is by the window of the long hall" for n in range(8)))
    pack = ask("Acme seats", budgets={"max_tokens": 150}, diagnostics="full")
    said = pack["diagnostics"]

    assert 0 < pack["budget"]["used_tokens"] <= 150
    assert said["knapsack_evictions"] == len(said["evictions"]) > 0
    assert all(eviction["tokens"] > 0 for eviction in said["evictions"])
    assert 0.9 == said["mmr"]["lambda"]


def test_a_long_text_comes_as_an_excerpt(ask, told):
    """What would take more than a quarter of the budget is cut to the part that matters."""
    filler = "The weather was grey and nothing happened. " * 200
    words = f"{filler}The vault code is 7741. {filler}"
    told(words)
    pack = ask("What is the vault code?", budgets={"max_tokens": 400})
    (item,) = pack["layers"]["events"]

    assert "7741" in item["excerpt"]["text"]
    assert words[item["excerpt"]["start"] : item["excerpt"]["end"]] == item["excerpt"]["text"]
    assert "content" not in item
    assert "7741" in pack["context_block"]


@pytest.mark.parametrize(
    "mode, marker, sources",
    [
        ("inline_with_markers", True, False),
        ("block_at_end", False, True),
        ("structured_only", False, False),
        ("none", False, False),
    ],
)
def test_a_block_cites_as_it_was_asked_to(ask, told, mode, marker, sources):
    """The four citation modes."""
    event_id = told("Acme has 200 seats")["Acme has 200 seats"]
    pack = ask("Acme seats", citation_mode=mode)

    assert marker == (" [1]" in pack["context_block"])
    assert sources == (event_id in pack["context_block"])
    assert (mode != "none") == bool(pack["citations"])
    if mode != "none":
        named = {citation["id"] for citation in pack["citations"]}
        assert event_id in named


# ── filters ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "filters, expected",
    [
        ({"labels": {"in": ["b"]}}, {"seats b", "seats ab"}),
        ({"AND": [{"labels": "a"}, {"NOT": {"labels": "b"}}]}, {"seats a"}),
        ({"OR": [{"session": "s1"}, {"labels": "b"}]}, {"seats b", "seats ab", "seats s1"}),
        ({"metadata": {"labels": "a"}}, {"seats a", "seats ab"}),
        ({"observed_at": {"gte": "2026-05-14"}}, {"seats later"}),
        ({"modality": "observation"}, {"seats seen"}),
    ],
)
def test_filters_take_what_they_say(ask, told, filters, expected):
    """AND, OR, NOT and the operators, on fields of the columns and of the record."""
    told("seats a", context={"observed_at": "2026-05-13T10:00:00Z", "labels": ["a"]})
    told("seats b", context={"observed_at": "2026-05-13T10:00:00Z", "labels": ["b"]})
    told("seats ab", context={"observed_at": "2026-05-13T10:00:00Z", "labels": ["a", "b"]})
    told("seats later", context={"observed_at": "2026-05-14T10:00:00Z"})
    told("seats seen", modality="observation")
    told("seats s1", observed_actor={"id": "user:alice", "session": "s1"})

    assert expected == set(texts(ask("seats", filters=filters)))


def test_a_rare_label_is_found_among_many(ask, told):
    """A filter that no index knows widens the search until it is satisfied."""
    told(*(f"Acme seat {n} is taken" for n in range(300)))
    rare = {"observed_at": "2026-05-13T10:00:00Z", "labels": ["rare"]}
    told("nothing much about furniture", context=rare)

    assert ["nothing much about furniture"] == texts(ask("Acme seat", filters={"labels": "rare"}))


@pytest.mark.parametrize(
    "body, field",
    [
        ({"filters": {"colour": "red"}}, "filters.colour"),
        ({"filters": {"confidence": {"above": 1}}}, "filters.confidence.above"),
        ({"temporal": {"natural": "when pigs fly"}}, "temporal.natural"),
        ({"budgets": {}, "limits": {}}, "limits"),
        ({"include": ["facts"], "layers": ["facts"]}, "layers"),
        ({"view": "sideways"}, "view"),
        ({"surprise": 1}, "surprise"),
        ({"query": ""}, "query"),
        ({"query": "x" * (limits.QUERY_CHARS_MAX + 1)}, "query"),
    ],
)
def test_what_is_not_understood_is_named(api, scope, body, field):
    """4xx with the field, and never a pack that ignored it."""
    answer = api.post("/v1/recall", json={"scope": scope, "query": "x"} | body)

    assert answer.status_code in {400, 422}
    assert field == answer.json()["details"]["field"]


def test_a_counterfactual_leaves_events_out(ask, told):
    """The pack as if those events had never been (and what rests on them alone)."""
    ids = told("Acme has 200 seats", "Acme has 300 seats")
    gone = ids["Acme has 300 seats"]
    pack = ask("How many seats has Acme?", filters={"without": [gone]})

    assert ["Acme has 200 seats"] == texts(pack)
    assert gone not in json.dumps(pack["layers"]) + json.dumps(pack["provenance"]["citations"])
    assert "300" not in pack["context_block"]


def test_a_cancelled_event_is_not_recalled(api, ask, told):
    """What its writer took back stays in the log and out of recall (001 §18.2.7)."""
    ids = told(*ACME)
    api.post(f"/v1/lifecycle/memory-event/{ids[ACME[0]]}/cancel", json={})

    assert ACME[0] not in texts(ask("How many seats does Acme have?"))


# ── time ─────────────────────────────────────────────────────────────────────────────────────


def test_as_of_knows_nothing_later(api, ask, told):
    """A pack as of a moment holds only what was recorded by then."""
    first = told("Acme has 200 seats")["Acme has 200 seats"]
    moment = api.get(f"/v1/events/{first}").json()["context"]["recorded_at"]
    told("Acme has 300 seats")
    pack = ask("How many seats has Acme?", temporal={"as_of": moment})

    assert ["Acme has 200 seats"] == texts(pack)
    assert moment == pack["as_of"]


def test_a_window_is_a_filter(ask, told):
    """`valid_during` takes events by when they were observed; in raw it is ignored and said so."""
    told("seats in March", context={"observed_at": "2026-03-05T10:00:00Z"})
    told("seats in April", context={"observed_at": "2026-04-05T10:00:00Z"})
    window = {"valid_during": ["2026-03-01", "2026-04-01"]}

    assert ["seats in March"] == texts(ask("seats", temporal=window))
    assert 2 == len(texts(ask("seats", view="raw", temporal=window)))


def test_raw_says_that_it_ignores_validity(api, told, scope):
    """001 §18.2.17: a warning in a header."""
    told("seats in March")
    window = {"valid_during": ["2026-03-01", "2026-04-01"]}
    body = {"scope": scope, "query": "seats", "view": "raw", "temporal": window}
    answer = api.post("/v1/recall", json=body)

    assert "valid_during_ignored_for_view_raw" == answer.headers["x-cortex-warning"]


# ── packs of the last minute ─────────────────────────────────────────────────────────────────


def test_the_same_key_is_the_same_pack(api, told, scope, fresh_key):
    """Byte for byte, marked as a replay, even when more is known by then (001 §8.3)."""
    told(*ACME)
    body = {"scope": scope, "query": "Acme seats", "idempotency_key": fresh_key()}
    first = api.post("/v1/recall", json=body)
    told("Acme has 400 seats")
    again = api.post("/v1/recall", json=body)
    conflict = api.post("/v1/recall", json=body | {"query": "other"})

    assert first.content == again.content
    assert "true" == again.headers["x-cortex-replay"]
    assert 409 == conflict.status_code


def test_a_key_may_come_in_a_header(api, told, scope, fresh_key):
    """The alternative of 001 §6.9 for calls that only read; a bad one is named."""
    told(*ACME)
    headers = {"X-Cortex-Idempotency-Key": fresh_key()}
    body = {"scope": scope, "query": "Acme seats"}
    first, again = (api.post("/v1/recall", json=body, headers=headers) for _ in range(2))
    bad = api.post("/v1/recall", json=body, headers={"X-Cortex-Idempotency-Key": "x" * 65})

    assert first.content == again.content
    assert (422, "X-Cortex-Idempotency-Key") == (bad.status_code, bad.json()["details"]["field"])


def test_the_same_request_gives_the_same_pack(ask, told):
    """On the same point of the log the pack is the same but for when it was asked."""
    told(*ACME)
    passing = ("request_id", "as_of", "expires_at")
    packs = [ask("Acme seats") for _ in range(3)]
    for pack in packs:
        for name in passing:
            del pack[name]

    assert packs[0] == packs[1] == packs[2]


# ── receipts ─────────────────────────────────────────────────────────────────────────────────


def test_a_receipt_can_be_tried_again(api, ask, told):
    """The same question to the engine as it was gives the same answer, whatever came since."""
    told(*ACME)
    receipt = ask("How many seats has Acme?", diagnostics="full")["diagnostics"]["receipt"]
    at_once = api.post("/v1/recall/replay", json={"receipt": receipt}).json()
    told("Acme now has many more seats, seats, seats")
    answer = api.post("/v1/recall/replay", json={"receipt": receipt})
    body = answer.json()

    assert at_once["same"], at_once["differences"]

    assert 200 == answer.status_code, answer.text
    assert "many more seats" not in json.dumps(body["pack"])
    assert {"gone": [], "new": []} == {k: body["differences"][k] for k in ("gone", "new")}
    assert body["same"] == (body["digest"] == receipt["digest"])


def test_a_forged_receipt_is_refused(api, ask, told):
    """A receipt is signed: what it says cannot be changed."""
    told(*ACME)
    receipt = ask("Acme seats", diagnostics="full")["diagnostics"]["receipt"]
    forged = api.post("/v1/recall/replay", json={"receipt": receipt | {"watermark": 1}})

    assert 422 == forged.status_code
    assert "receipt.signature" == forged.json()["details"]["field"]


# ── streams (001 §10) ────────────────────────────────────────────────────────────────────────


def frames_of(response):
    """(id, event, data) of every frame."""
    found, fields = [], {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "data" in fields:
            found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
            fields = {}
    return found


@pytest.mark.parametrize("path", ["/v1/recall", "/v1/recall/stream"])
def test_section_10_1_stream(api, ask, told, scope, path):
    """Plan, a layer each, the block, provenance, diagnostics, done: the same as the plain pack."""
    told(*ACME)
    body = {"scope": scope, "query": "Acme seats"}
    plain = ask("Acme seats")
    with api.stream("POST", path, json=body | {"stream": True}) as response:
        assert "text/event-stream" == response.headers["content-type"].partition(";")[0]
        frames = frames_of(response)
    named = [name for _, name, _ in frames]
    data = {name: value for _, name, value in frames}

    assert "plan" == named[0]
    assert {"plan", "filters_applied"} == set(data["plan"])
    assert ["context_block", "citations", "provenance", "diagnostics", "done"] == named[-5:]
    layers = {value["layer"]: value["items"] for _, name, value in frames if name == "layer"}
    assert {name: items for name, items in plain["layers"].items() if items} == layers
    assert plain["context_block"] == data["context_block"]["text"]
    assert plain["provenance"]["citations"] == data["provenance"]["citations"]
    assert plain["pack_id"] == data["done"]["pack_id"]


def test_section_10_2_narrative_stream(api, ask, told, scope):
    """A story word by word, then its citations and diagnostics."""
    told(*ACME)
    plain = ask("Acme seats", view="narrative")
    body = {"scope": scope, "query": "Acme seats", "view": "narrative", "stream": True}
    with api.stream("POST", "/v1/recall", json=body) as response:
        frames = frames_of(response)

    words = "".join(value["text"] for _, name, value in frames if name == "token")
    assert plain["context_block"] == words
    named = [name for _, name, _ in frames if name != "token"]
    assert ["plan", "citations", "provenance", "diagnostics", "done"] == named


def test_section_10_4_resume(api, told, scope, fresh_key):
    """After a break the rest comes, from the next frame on, whatever was written since."""
    told(*ACME)
    body = {"scope": scope, "query": "Acme", "stream": True, "idempotency_key": fresh_key()}
    with api.stream("POST", "/v1/recall", json=body) as response:
        frames = frames_of(response)
    told("Acme has 400 seats")
    headers = {"Last-Event-ID": frames[2][0]}
    with api.stream("POST", "/v1/recall", json=body, headers=headers) as response:
        rest = frames_of(response)

    assert frames[3:] == rest


@pytest.mark.parametrize(
    "last, status",
    [
        ("lce_01980000-0000-7000-8000-000000000000", 422),
        ("pack_01980000-0000-7000-8000-000000000000:1", 410),
    ],
)
def test_a_resume_that_cannot_be_is_said(api, scope, last, status):
    """An id that is no recall's is refused, one whose minute is over is gone."""
    body = {"scope": scope, "query": "Acme", "stream": True}
    refused = api.post("/v1/recall", json=body, headers={"Last-Event-ID": last})

    assert status == refused.status_code


def test_what_is_refused_is_refused_before_the_stream(api, scope):
    """A bad request is a status, not a stream with an error in it."""
    body = {"scope": scope, "query": "Acme", "stream": True, "filters": {"colour": "red"}}

    assert 422 == api.post("/v1/recall", json=body).status_code


# ── what a reader should know ────────────────────────────────────────────────────────────────

OLD = {"kind": "triple", "triple": {"subject": "Acme", "predicate": "seat_count", "object": 200}}
NEW = {"kind": "triple", "triple": {"subject": "Acme", "predicate": "seat_count", "object": 300}}


@pytest.fixture
def moved(api, envelope):
    """Acme had 200 seats, and then 300: the two events."""
    found = []
    for content, day in ((OLD, 13), (NEW, 14)):
        context = {"observed_at": f"2026-05-{day}T10:00:00Z"}
        body = envelope(content=content, context=context)
        found.append(api.post("/v1/experience?wait=settled", json=body).json()["event_id"])
    return found


def values(pack):
    """What the facts of a pack say, by whether they are marked."""
    return {
        (item["object"]["value"], item.get("superseded", False))
        for item in pack["layers"]["facts"]
        if item["predicate"] == "seat_count"
    }


def test_superseded_facts_are_left_out(ask, moved):
    """Only what holds now is told, unless the past is asked for; then it is marked."""
    question = "What is the seat count of Acme?"

    assert {(300, False)} == values(ask(question))
    assert (200, True) in values(ask(question, include_superseded=True))
    assert (200, True) in values(ask(question, treatments={"superseded": "include"}))


def test_a_superseded_event_is_marked(ask, moved):
    """The event stays as evidence, says that its news is old, and stands below the new."""
    pack = ask("What is the seat count of Acme?")
    marked = {item["id"]: item.get("superseded", False) for item in pack["layers"]["events"]}
    order = [item["id"] for item in pack["layers"]["events"]]

    assert {moved[0]: True, moved[1]: False} == marked
    assert [moved[1], moved[0]] == order
    assert "(superseded)" in pack["context_block"]


def test_superseded_events_can_be_left_out(ask, moved):
    """The request decides what becomes of what is marked."""
    pack = ask("seat count of Acme", treatments={"superseded_events": "exclude"})

    assert [moved[1]] == [item["id"] for item in pack["layers"]["events"]]


def test_as_of_before_the_news_nothing_is_superseded(api, ask, moved):
    """At that moment the old fact held, and nobody knew better."""
    moment = api.get(f"/v1/events/{moved[0]}").json()["context"]["recorded_at"]
    pack = ask(
        "seat count of Acme", temporal={"as_of": moment, "valid_during": ["2026-01-01", None]}
    )

    assert {(200, False)} == values(pack)
    assert [False] == [item.get("superseded", False) for item in pack["layers"]["events"]]


def test_citations_lead_from_beliefs_to_events(ask, moved):
    """Every derived item is in the graph, and from each there is a way to an event."""
    pack = ask("What is the seat count of Acme?")
    graph = pack["provenance"]["citations"]
    derived = [
        item["id"] for layer, items in pack["layers"].items() for item in items if layer != "events"
    ]

    assert derived
    for name in derived:
        steps = [name]
        while not steps[-1].startswith("evt_"):
            steps.append(graph[steps[-1]][0])


def test_a_counterfactual_brings_back_what_was(ask, moved):
    """Without the newer event the fact that rests on it alone is not there."""
    pack = ask("seat count of Acme", filters={"without": [moved[1]]})

    assert all(value != 300 for value, _ in values(pack))
    assert [moved[0]] == [item["id"] for item in pack["layers"]["events"]]


def test_other_words_for_the_question_help(ask, told):
    """Variants add their words to the search."""
    told("The Kaffeemaschine was repaired on Friday", "Nothing happened on Monday")
    plain = ask("espresso device mended", budgets={"per_layer_limits": {"events": 1}})
    helped = ask(
        "espresso device mended",
        query_variants=[{"text": "Kaffeemaschine repaired"}],
        budgets={"per_layer_limits": {"events": 1}},
    )

    assert ["The Kaffeemaschine was repaired on Friday"] == texts(helped)
    assert 1 == len(texts(plain))
