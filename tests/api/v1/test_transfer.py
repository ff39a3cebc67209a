"""Do memories move in and out whole, whatever file they come in?  (001 §8.11, §8.12, §15)"""

import gzip
import itertools
import json
import time

import pytest

MEM0 = [
    {
        "id": "m-1",
        "memory": "Alice lives in Lisbon",
        "hash": "h1",
        "metadata": {"source": "chat"},
        "categories": ["home"],
        "created_at": "2026-01-05T10:00:00-08:00",
        "updated_at": "2026-02-01T09:00:00Z",
        "user_id": "alice",
        "run_id": "r1",
        "score": 0.4,
    },
    {
        "id": "m-2",
        "memory": "Keep answers short",
        "immutable": True,
        "expiration_date": "2026-03-01",
        "created_at": "2026-01-06T10:00:00Z",
        "user_id": "alice",
        "agent_id": "helper",
    },
]
ZEP = {
    "group_id": "team a",
    "nodes": [{"uuid": "n1", "name": "Alice"}, {"uuid": "n2", "name": "Acme"}],
    "messages": [
        {"uuid": "z1", "role_type": "user", "role": "Alice", "content": "I joined Acme",
         "created_at": "2026-01-02T00:00:00Z"},
    ],
    "edges": [
        {"uuid": "e1", "name": "works_at", "fact": "Alice works at Acme", "source_node_uuid": "n1",
         "target_node_uuid": "n2", "valid_at": "2026-01-01T00:00:00Z",
         "invalid_at": "2026-04-01T00:00:00Z", "created_at": "2026-01-02T00:00:00Z"},
    ],
}  # fmt: skip
LETTA = {
    "agents": [
        {"name": "Scout", "block_ids": ["b1", "b2"], "messages": [
            {"id": "x1", "role": "user", "content": [{"type": "text", "text": "Hello Scout"}],
             "created_at": "2026-01-02T00:00:00Z"},
            {"id": "x2", "role": "assistant", "content": [{"type": "tool_use"}]},
        ]},
    ],
    "blocks": [
        {"id": "b1", "label": "persona", "value": "Scout is a patient guide"},
        {"id": "b2", "label": "human", "value": ""},
    ],
}  # fmt: skip
OPENAI = {
    "memories": [
        {"id": "o1", "text": "Prefers metric units", "created": 1767261600,
         "source": {"session_id": "s-9"}},
    ],
}  # fmt: skip

_numbers = itertools.count(1)


@pytest.fixture
def tree():
    """A scope with nothing below it yet."""
    return f"org:transfer{next(_numbers)}"


@pytest.fixture
def bring(client):
    """Import something inline and wait for its end."""

    def run(system, inline, template, **options):
        body = {"scope_template": template, "source": {"inline": inline}, "options": options}
        answer = client.post(f"/v1/import/{system}", json=body)
        assert 202 == answer.status_code, answer.text
        return ended(client, f"/v1/import/{answer.json()['import_id']}")

    return run


def ended(client, path):
    """A job's state once it is over."""
    while True:
        state = client.get(path).json()
        if state["status"] not in ("running", "cancelling"):
            return state
        time.sleep(0.02)


def events_of(client, scope, **more):
    params = {"scope": scope, "view": "descend", "order": "oldest", "limit": 1000} | more
    return client.get("/v1/events", params=params).json()["items"]


def test_mem0(client, bring, tree):
    """Every row of the mapping of 001 §15.1."""
    state = bring("mem0", MEM0, tree + "/user:{user_id}")
    assert [] == state["errors"]
    first, update, short = sorted(events_of(client, tree), key=lambda e: e["content"]["text"])[:3]

    assert ("completed", 3) == (state["status"], state["summary"]["imported"])
    assert {"mem0_source_id:m-1", "mem0_hash:h1", "mem0_metadata.source:chat", "concept:home"} == {
        *first["context"]["labels"]
    }
    assert "2026-01-05T18:00:00Z" == first["context"]["observed_at"]
    assert ("imported", "user:alice", "r1") == (
        first["modality"],
        first["observed_actor"]["id"],
        first["observed_actor"]["session"],
    )
    assert [first["id"]] == update["context"]["preceded_by"]
    assert ("agent:helper", True) == (short["actor"], short["directives"]["no_supersede"])
    assert "ttl_for_event_layer" in short["directives"]


def test_zep(client, bring, tree):
    """Messages as messages, edges as triples with the time they were true (001 §15.2)."""
    state = bring("zep", ZEP, tree + "/ws:{group_id}", ontology_mapping={"works_at": "works_at"})
    message, edge = events_of(client, tree)
    client.post("/v1/admin/flush-views")
    asked = {
        "scope": edge["scope"],
        "predicate": "works_at",
        "valid_during": "2026-02-01..2026-02-02",
    }
    (fact,) = client.get("/v1/facts", params=asked | {"subject": "Alice"}).json()["items"]

    assert ("2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z") == (
        fact["valid_from"],
        fact["valid_to"],
    )
    assert ("completed", 2) == (state["status"], state["summary"]["imported"])
    assert message["scope"].startswith(f"{tree}/ws:team_a")
    assert {"kind": "message", "role": "user", "text": "I joined Acme"} == message["content"]
    assert "works_at" == edge["content"]["triple"]["predicate"]
    assert [{"from": "2026-01-01T00:00:00+00:00", "to": "2026-04-01T00:00:00+00:00"}] == edge[
        "context"
    ]["refers_to"]


def test_letta(client, bring, tree):
    """Blocks with their tags, messages with words; what says nothing is passed over (§15.3)."""
    state = bring("letta", LETTA, tree + "/agent:{agent_name}")
    block, message = events_of(client, tree)

    assert (2, 2) == (state["summary"]["imported"], state["summary"]["skipped"])
    assert "actor_self_description" in block["context"]["labels"]
    assert ("Hello Scout", "user:human") == (message["content"]["text"], message["actor"])


def test_openai(client, bring, tree):
    """A memory, its time and its session (§15.4)."""
    bring("openai", OPENAI, tree)
    (event,) = events_of(client, tree)

    assert ("Prefers metric units", "s-9") == (
        event["content"]["text"],
        event["observed_actor"]["session"],
    )
    assert "2026-01-01T10:00:00Z" == event["context"]["observed_at"]


def test_the_same_import_again_adds_nothing(client, bring, tree):
    """A row's key is made of the row: repeated, it is the experience there is."""
    first = bring("mem0", MEM0, tree)["summary"]
    again = bring("mem0", MEM0, tree)["summary"]

    assert (3, 0) == (first["imported"], first["repeated"])
    assert (0, 3) == (again["imported"], again["repeated"])
    assert 3 == len(events_of(client, tree))


def test_bad_rows_do_not_take_the_good_along(client, envelope, tree):
    """Each is told with its line and why; all others are captured (001 §8.11.6)."""
    good = [envelope(f"line {number}", scope=tree) for number in range(3)]
    lines = [
        json.dumps(good[0]),
        "{not json",
        json.dumps(envelope(scope="no scope")),
        "",
        json.dumps(good[1]),
        json.dumps({"deep": "[" * 10}),
        "[" * 5000,
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        json.dumps(good[2]),
    ]
    body = {"source": {"inline": "\n".join(lines)}}
    answer = client.post("/v1/import/jsonl", json=body)
    state = ended(client, f"/v1/import/{answer.json()['import_id']}")

    assert ("completed", 3, 5) == (
        state["status"],
        state["summary"]["imported"],
        state["error_count"],
    )
    assert [2, 3, 6, 7, 8] == [problem["line"] for problem in state["errors"]]
    assert 3 == len(events_of(client, tree))


def test_a_packed_upload(client, envelope, tree):
    """A blob, gzip or not; of what was cut off the good rows come, and it is said."""
    rows = [envelope(f"{number} " + "ab" * number, scope=tree) for number in range(200)]
    data = gzip.compress(b"\n".join(json.dumps(row).encode() for row in rows))
    states = []
    for content in (data[: len(data) // 2], data, b"\x1f\x8bjunk"):
        blob = client.post("/v1/blobs", content=content).json()["blob_id"]
        answer = client.post("/v1/import/jsonl", json={"source": {"blob_id": blob}})
        states.append(ended(client, f"/v1/import/{answer.json()['import_id']}"))

    assert ["completed", "completed", "failed"] == [state["status"] for state in states]
    assert 0 < states[0]["summary"]["imported"] < 200
    assert "the packed file is damaged or cut off" in states[0]["errors"][-1]["detail"]
    assert 200 == states[1]["summary"]["imported"] + states[1]["summary"]["repeated"]
    assert 0 == states[1]["error_count"]
    assert "gzip" in states[2]["summary"]["message"]


def test_a_row_that_is_refused_does_not_take_the_others_along(client, envelope, tree):
    """A key used before, a blob that is not there: told by line, alone or among others."""
    mine = envelope("mine", scope=tree)
    missing = envelope(
        scope=tree,
        content={"kind": "blob_ref", "blob_id": "blob_01a1e3fd-24ed-7ed0-844a-bfb08539d4fe"},
    )
    good = [envelope(f"good {number}", scope=tree) for number in range(3)]
    first = "\n".join(map(json.dumps, [mine, good[0]]))
    other = json.dumps(mine | {"content": {"kind": "text", "text": "other words"}})
    files = [
        first,
        other,
        "\n".join([json.dumps(good[1]), json.dumps(missing), other, json.dumps(good[2])]),
    ]
    states = []
    for content in files:
        started = client.post("/v1/import/jsonl", json={"source": {"inline": content}}).json()
        states.append(ended(client, f"/v1/import/{started['import_id']}"))

    assert ["completed"] * 3 == [state["status"] for state in states]
    assert [2, 0, 2] == [state["summary"]["imported"] for state in states]
    assert [[], [1], [2, 3]] == [[e["line"] for e in state["errors"]] for state in states]
    assert 4 == len(events_of(client, tree))


def test_problems_quote_nobody(client, envelope, tree):
    """They stay in the log, so they are told in our words; what a row says may be erased."""
    secret = "zqxsecretzqx"
    rows = [
        envelope(scope=f"org:{secret} {secret}"),
        envelope(scope=tree, context={"observed_at": secret}),
        envelope(scope=tree, content={"kind": secret}),
        [secret],
        secret,
    ]
    lines = [*map(json.dumps, rows), f"{{{secret}"]
    started = client.post("/v1/import/jsonl", json={"source": {"inline": "\n".join(lines)}}).json()
    state = ended(client, f"/v1/import/{started['import_id']}")

    assert (0, 6) == (state["summary"]["imported"], state["error_count"])
    assert all(problem["detail"] for problem in state["errors"])
    assert secret not in json.dumps(state)


@pytest.mark.parametrize(
    "system, source, template, field",
    [
        ("mem0", {}, "org:x", "source"),
        ("mem0", {"inline": [], "blob_id": "b"}, "org:x", "source"),
        ("mem0", {"inline": [], "format": "zep"}, "org:x", "source.format"),
        ("mem0", {"inline": []}, "", "scope_template"),
        ("mem0", {"path": "/etc/passwd"}, "org:x", "source.path"),
        ("mem0", {"url": "https://example.org/x"}, "org:x", "source.url"),
        ("mem0", {"inline": [], "credentials_ref": "s"}, "org:x", "source.credentials_ref"),
    ],
)
def test_what_cannot_be_imported_is_said_at_once(client, system, source, template, field):
    """422, the field named, and no job begun."""
    body = {"scope_template": template, "source": source}
    answer = client.post(f"/v1/import/{system}", json=body)

    assert (422, field) == (answer.status_code, answer.json()["details"]["field"])


def test_strict_temporal_orders_by_event_time(client, bring, envelope, tree):
    """Rows are captured in the order they happened, whatever the file's (001 §8.11.1)."""
    lines = [
        envelope(f"day {day}", scope=tree, context={"observed_at": f"2026-01-{day:02}T00:00:00Z"})
        for day in (3, 1, 2)
    ]
    bring("jsonl", "\n".join(map(json.dumps, lines)), "", ordering="strict_temporal")

    found = [event["content"]["text"] for event in events_of(client, tree)]
    assert ["day 1", "day 2", "day 3"] == found


def test_progress_is_on_the_stream(client, envelope, listen, tree):
    """A tick a step, each failed row, and the end with its summary (001 §13)."""
    lines = [json.dumps(envelope(f"row {n}", scope=tree)) for n in range(450)] + ["junk"]
    with listen(client, events="import_progress,import_complete,import_error") as frames:
        body = {"source": {"inline": "\n".join(lines)}}
        started = client.post("/v1/import/jsonl", json=body).json()
        seen = []
        for frame in frames:
            if frame.data["import_id"] == started["import_id"]:
                seen.append(frame)
                if frame.event == "import_complete":
                    break

    ticks = [frame.data["fraction_complete"] for frame in seen if frame.event == "import_progress"]
    assert sorted(ticks) == ticks
    assert 1.0 == ticks[-1]
    assert len(ticks) >= 3
    assert [451] == [frame.data["line"] for frame in seen if frame.event == "import_error"]
    assert 450 == seen[-1].data["summary"]["imported"]


def test_a_job_is_its_callers(client, bring, tree):
    """Nobody else's, unless they administer the tenant."""
    state = bring("mem0", MEM0, tree)
    eve = {"X-Cortex-Actor": "user:eve"}
    client.put("/v1/policy/actor/user:eve", json={"deny": ["policy.administer.tenant"]})

    assert 403 == client.get(f"/v1/import/{state['import_id']}", headers=eve).status_code
    assert 404 == client.get("/v1/import/imp_none").status_code


def exported(client, scope, **more):
    started = client.post("/v1/export", json={"scope": scope} | more)
    assert 202 == started.status_code, started.text
    state = ended(client, f"/v1/export/{started.json()['export_id']}")
    assert "completed" == state["status"], state["summary"]
    return state, client.get(state["url"]).content


def test_an_export_imports_again(client, envelope, run_server, tree):
    """The same events in an empty server, and from them the same layers."""
    said = ["I live in Lisbon", "I moved to Porto", "My sister Ana likes jazz"]
    for number, text in enumerate(said):
        context = {"observed_at": f"2026-01-0{number + 1}T00:00:00Z", "labels": ["kept"]}
        posted = envelope(text, scope=f"{tree}/user:u{number % 2}", context=context)
        client.post("/v1/experience", json=posted, params={"wait": "consolidated"})
    state, data = exported(client, tree, layers=["events", "facts", "beliefs"])
    other = run_server()
    with other.client() as empty:
        body = {"source": {"inline": data.decode()}}
        started = empty.post("/v1/import/jsonl", json=body).json()
        done = ended(empty, f"/v1/import/{started['import_id']}")
        copy = events_of(empty, tree)
        assert 200 == empty.post("/v1/admin/flush-views").status_code
        layers_there = layers_of(empty, tree)

    assert state["size_bytes"] == len(data)
    assert (3, 0) == (done["summary"]["imported"], done["error_count"])
    kept = ("scope", "actor", "modality", "content", "idempotency_key")
    first = events_of(client, tree)
    assert [[e[k] for k in kept] for e in first] == [[e[k] for k in kept] for e in copy]
    assert [e["context"]["observed_at"] for e in first] == [
        e["context"]["observed_at"] for e in copy
    ]
    layers_here = layers_of(client, tree)
    assert layers_here == layers_there
    assert len(layers_here["facts"]) >= 3
    assert len(layers_here["beliefs"]) >= 3


def layers_of(client, tree):
    """What is known under a scope, but for ids and for when it was recorded."""
    asked = {"scope": tree, "view": "descend", "include_superseded": "true", "limit": 100}
    facts = client.get("/v1/facts", params=asked).json()["items"]
    asked.pop("include_superseded")
    beliefs = client.get("/v1/beliefs", params=asked).json()["items"]
    plain = ("scope", "predicate", "polarity", "valid_from", "valid_to", "confidence", "stance")
    return {
        "facts": sorted(_plain(fact, plain, fact) for fact in facts),
        "beliefs": sorted(_plain(belief, plain, belief["claim"]) for belief in beliefs),
    }


def _plain(record, names, claim):
    said = {name: record.get(name) for name in names} | {
        "claim": [_name(claim["subject"]), claim["predicate"], _name(claim["object"])]
    }
    return json.dumps(said, sort_keys=True)


def _name(node):
    """What a node is called: its id carries the moment at which it was met."""
    return node.get("name") or node.get("value") or node.get("id")


@pytest.mark.parametrize("system", ["mem0", "zep", "letta"])
def test_an_export_for_another_system_is_its_file(client, bring, tree, system):
    """What goes out as another system's comes in by that system's importer."""
    bring("mem0", MEM0, tree)
    state, data = exported(client, tree, format=system)
    lines = [json.loads(line) for line in data.splitlines()]

    assert 3 == len(lines)
    assert state["sha256"]
    assert all(
        any(text in line.values() for text in ("Keep answers short", "Alice lives in Lisbon"))
        for line in lines
    )


def test_an_export_as_of_then(client, envelope, tree):
    """What was recorded later is not in it."""
    client.post("/v1/experience", json=envelope("early", scope=tree))
    then = events_of(client, tree)[0]["context"]["recorded_at"]
    client.post("/v1/experience", json=envelope("late", scope=tree))
    _, data = exported(client, tree, as_of=then)

    assert b"early" in data
    assert b"late" not in data
