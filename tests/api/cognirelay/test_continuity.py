"""Do capsules keep their limits, their order in time, and their word?  (000, continuity)"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from schemas import limits

UPSERT = "/v1/continuity/upsert"
READ = "/v1/continuity/read"
LISTS, ENTRIES, CHARS = limits.CAPSULE_LISTS, limits.CAPSULE_ENTRIES, limits.CAPSULE_CHARS
FOUND_S = 120.0


NOW = datetime.now(UTC)  # One moment a run: what is asked twice is the same.


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def capsule(kind: str = "thread", subject: str = "loom", seconds: int = 7200) -> dict[str, Any]:
    return {
        "subject_kind": kind,
        "subject_id": subject,
        "updated_at": ago(seconds),
        "verified_at": ago(seconds),
        "source": {"producer": "weaver", "update_reason": "manual"},
        "continuity": {
            "top_priorities": ["Finish the border"],
            "active_concerns": ["The blue yarn runs out"],
            "active_constraints": ["No synthetic dye"],
            "open_loops": ["Ask the mill about indigo"],
            "stance_summary": "Weave the border first and dye later.",
            "drift_signals": ["The pattern grows"],
        },
        "confidence": {"continuity": 0.5, "relationship_model": 0.5},
    }


def upsert_of(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    subject = {name: made[name] for name in ("subject_kind", "subject_id")}
    return subject | {"capsule": made} | more


def subject(kind: str = "thread", name: str = "loom", **more: Any) -> dict[str, Any]:
    return {"subject_kind": kind, "subject_id": name, **more}


# ── limits ───────────────────────────────────────────────────────────────────────────────────

DECISION = {"decision": "do not rush", "rationale": "it shows"}
RATIONALE = {
    "tag": "t",
    "kind": "decision",
    "status": "active",
    "summary": "so",
    "reasoning": "because",
}
DESCRIPTOR = {"label": "The loom"}


def _held(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda made: made["continuity"].update({name: value})


def _own(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda made: made.update({name: value})


def _lists() -> list[Any]:
    """(name, most, how to make so many, the status of one more) for every list of the capsule."""
    cases: list[Any] = []
    for name, (count, chars) in LISTS.items():
        many = lambda n, name=name: _held(name, [f"{name} {i}" for i in range(n)])  # noqa: E731
        long = lambda n, name=name: _held(name, ["y" * n])  # noqa: E731
        cases += [(f"{name} items", count, many, 422), (f"{name} chars", chars, long, 400)]
    return cases


def _numbered(entry: dict[str, Any], key: str, count: int) -> list[dict[str, Any]]:
    return [entry | {key: f"{key} {number}"} for number in range(count)]


def _rationale(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return _held("rationale_entries", [RATIONALE | fields])


def _descriptor(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return _own("thread_descriptor", DESCRIPTOR | fields)


def _hints(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return _held("retrieval_hints", fields)


def _model(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return _held("relationship_model", fields)


def _document(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return _held("related_documents", [{"path": "a.md", "kind": "k", "label": "l"} | fields])


def _documents(count: int) -> Callable[[dict[str, Any]], None]:
    entry = {"kind": "k", "label": "l"}
    return _held("related_documents", _numbered_paths(entry, count))


def _numbered_paths(entry: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [entry | {"path": f"d/{number}.md"} for number in range(count)]


def _anchors(count: int) -> Callable[[dict[str, Any]], None]:
    pins = [{"kind": f"k{number}", "value": "v"} for number in range(count)]
    return _descriptor(identity_anchors=pins)


def _inputs(value: list[str]) -> Callable[[dict[str, Any]], None]:
    return lambda made: made["source"].update(inputs=value)


CASES = [
    *_lists(),
    ("stance", CHARS["stance_summary"], lambda n: _held("stance_summary", "s" * n), 422),
    (
        "decisions",
        ENTRIES["negative_decisions"],
        lambda n: _held("negative_decisions", _numbered(DECISION, "decision", n)),
        422,
    ),
    (
        "decision chars",
        CHARS["decision"],
        lambda n: _held("negative_decisions", [DECISION | {"decision": "d" * n}]),
        400,
    ),
    (
        "decision rationale",
        CHARS["decision_rationale"],
        lambda n: _held("negative_decisions", [DECISION | {"rationale": "d" * n}]),
        400,
    ),
    (
        "rationales",
        ENTRIES["rationale_entries"],
        lambda n: _held("rationale_entries", _numbered(RATIONALE, "tag", n)),
        422,
    ),
    ("rationale tag", CHARS["tag"], lambda n: _rationale(tag="t" * n), 422),
    ("rationale summary", CHARS["summary"], lambda n: _rationale(summary="t" * n), 422),
    ("rationale reasoning", CHARS["reasoning"], lambda n: _rationale(reasoning="t" * n), 422),
    (
        "alternatives",
        ENTRIES["considered"],
        lambda n: _rationale(alternatives_considered=["a"] * n),
        422,
    ),
    (
        "alternative",
        CHARS["alternative"],
        lambda n: _rationale(alternatives_considered=["a" * n]),
        400,
    ),
    ("dependencies", ENTRIES["considered"], lambda n: _rationale(depends_on=["a"] * n), 422),
    ("dependency", CHARS["dependency"], lambda n: _rationale(depends_on=["a" * n]), 400),
    ("documents", ENTRIES["related_documents"], _documents, 400),
    ("document path", CHARS["document_path"], lambda n: _document(path="p" * n), 400),
    ("document kind", CHARS["document_kind"], lambda n: _document(kind="k" * n), 400),
    ("document label", CHARS["label"], lambda n: _document(label="k" * n), 400),
    ("label", CHARS["label"], lambda n: _descriptor(label="L" * n), 422),
    (
        "keywords",
        ENTRIES["keywords"],
        lambda n: _descriptor(keywords=[f"k{i}" for i in range(n)]),
        422,
    ),
    ("keyword", CHARS["keyword"], lambda n: _descriptor(keywords=["k" * n]), 400),
    (
        "scope anchors",
        ENTRIES["scope_anchors"],
        lambda n: _descriptor(scope_anchors=[f"user:u{i}" for i in range(n)]),
        422,
    ),
    ("identity anchors", ENTRIES["identity_anchors"], _anchors, 422),
    (
        "anchor kind",
        CHARS["anchor_kind"],
        lambda n: _descriptor(identity_anchors=[{"kind": "k" * n, "value": "v"}]),
        422,
    ),
    (
        "anchor value",
        CHARS["reference"],
        lambda n: _descriptor(identity_anchors=[{"kind": "k", "value": "v" * n}]),
        422,
    ),
    ("inputs", ENTRIES["inputs"], lambda n: _inputs(["i"] * n), 422),
    ("input", CHARS["reference"], lambda n: _inputs(["i" * n]), 400),
    (
        "producer",
        CHARS["producer"],
        lambda n: lambda made: made["source"].update(producer="p" * n),
        422,
    ),
    ("styles", ENTRIES["preferred_style"], lambda n: _model(preferred_style=["s"] * n), 422),
    ("style", CHARS["style"], lambda n: _model(preferred_style=["s" * n]), 400),
    (
        "sensitivities",
        ENTRIES["sensitivity_notes"],
        lambda n: _model(sensitivity_notes=["s"] * n),
        422,
    ),
    ("sensitivity", CHARS["sensitivity"], lambda n: _model(sensitivity_notes=["s" * n]), 400),
    ("must include", ENTRIES["hints"], lambda n: _hints(must_include=["m"] * n), 422),
    ("must include chars", CHARS["hint"], lambda n: _hints(must_include=["m" * n]), 400),
    ("avoid", ENTRIES["hints"], lambda n: _hints(avoid=["m"] * n), 422),
    ("load next", ENTRIES["hints"], lambda n: _hints(load_next=["memory/a.md"] * n), 422),
    (
        "early load",
        ENTRIES["early_load"],
        lambda n: _own("attention_policy", {"early_load": ["e"] * n}),
        422,
    ),
    (
        "biases",
        ENTRIES["presence_bias_overrides"],
        lambda n: _own("attention_policy", {"presence_bias_overrides": ["e"] * n}),
        422,
    ),
    (
        "bias",
        CHARS["hint"],
        lambda n: _own("attention_policy", {"presence_bias_overrides": ["e" * n]}),
        400,
    ),
    (
        "sources",
        ENTRIES["canonical_sources"],
        lambda n: _own("canonical_sources", [f"memory/{i}.md" for i in range(n)]),
        422,
    ),
    (
        "metadata",
        ENTRIES["metadata"],
        lambda n: _own("metadata", {f"k{i}": i for i in range(n)}),
        400,
    ),
    (
        "stale after",
        limits.CAPSULE_STALE_S[1],
        lambda n: _own("freshness", {"stale_after_seconds": n}),
        422,
    ),
]


@pytest.mark.parametrize("most, make, status", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_limit_at_its_edge(relay, most, make, status):
    """At the limit a capsule is stored; one beyond, it is refused and nothing changes."""
    within, beyond = capsule(), capsule(seconds=3600)
    make(most)(within)
    make(most + 1)(beyond)
    first, second = relay.post(UPSERT, upsert_of(within)), relay.post(UPSERT, upsert_of(beyond))
    stored = relay.post(READ, subject()).json()["capsule"]

    assert (200, status) == (first.status_code, second.status_code), (first.text, second.text)
    assert within["updated_at"] == stored["updated_at"]


def test_preferences_at_their_edges(relay):
    """Only people have stable preferences: so many, each so long."""
    most, chars = ENTRIES["stable_preferences"], CHARS["preference"]
    cases = [
        ([{"tag": f"t{n}", "content": "c"} for n in range(most)], 200),
        ([{"tag": f"t{n}", "content": "c"} for n in range(most + 1)], 422),
        ([{"tag": "t" * CHARS["tag"], "content": "c" * chars}], 200),
        ([{"tag": "t" * (CHARS["tag"] + 1), "content": "c"}], 422),
        ([{"tag": "t", "content": "c" * (chars + 1)}], 422),
    ]
    for number, (preferences, status) in enumerate(cases):
        made = capsule("user", "ada", 7200 - 60 * number) | {"stable_preferences": preferences}

        assert status == relay.post(UPSERT, upsert_of(made)).status_code


def test_the_cap_of_bytes_is_exact(relay):
    """20 KB of canonical JSON are stored, in whatever script; a byte more is not."""
    made = capsule()
    made["metadata"] = {"pad": ""}
    relay.post(UPSERT, upsert_of(made))
    stored = relay.post(READ, subject()).json()["capsule"]
    size = len(json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode())
    room = limits.CAPSULE_BYTES_MAX - size
    fits, over = capsule(seconds=3600), capsule(seconds=1800)
    fits["metadata"] = {"pad": "ß" * (room // 2) + "x" * (room % 2)}
    over["metadata"] = {"pad": fits["metadata"]["pad"] + "x"}

    assert 200 == relay.post(UPSERT, upsert_of(fits)).status_code
    assert 400 == relay.post(UPSERT, upsert_of(over)).status_code


@pytest.mark.parametrize(
    "path, field, most, value",
    [
        ("upsert", "commit_message", CHARS["message"], "m"),
        ("upsert", "idempotency_key", limits.COGNIRELAY_ID_CHARS_MAX, "k"),
        ("patch", "commit_message", CHARS["message"], "m"),
        ("archive", "reason", CHARS["message"], "r"),
        ("delete", "reason", CHARS["message"], "r"),
        ("list", "keyword", CHARS["keyword"], "k"),
        ("list", "scope_anchor", limits.COGNIRELAY_ID_CHARS_MAX, "k"),
        ("list", "label_exact", CHARS["label"], "k"),
        ("list", "anchor_kind", CHARS["anchor_kind"], "k"),
        ("list", "anchor_value", limits.COGNIRELAY_ID_CHARS_MAX, "k"),
    ],
)
def test_a_field_of_a_request_at_its_edge(relay, path, field, most, value):
    """A request's own fields have limits too."""
    relay.post(UPSERT, upsert_of(capsule()))
    operation = {"target": "continuity.open_loops", "action": "append", "value": "x"}
    bodies = {
        "upsert": upsert_of(capsule(seconds=60)),
        "patch": subject(updated_at=ago(60), operations=[operation]),
        "archive": subject(),
        "delete": subject(delete_active=True),
        "list": {},
    }
    beyond = relay.post(f"/v1/continuity/{path}", bodies[path] | {field: value * (most + 1)})
    within = relay.post(f"/v1/continuity/{path}", bodies[path] | {field: value * most})

    assert (422, 200) == (beyond.status_code, within.status_code), within.text
    assert [["body", field]] == [one["loc"] for one in beyond.json()["detail"]]


@pytest.mark.parametrize("target", [f"continuity.{name}" for name in LISTS])
def test_a_patch_fills_a_list_and_no_more(relay, target):
    """Appending goes up to the list's maximum, all operations or none."""
    most = LISTS[target.partition(".")[2]][0]
    made = capsule()
    made["continuity"][target.partition(".")[2]] = []
    relay.post(UPSERT, upsert_of(made))
    fill = [{"target": target, "action": "append", "value": f"v{n}"} for n in range(most)]
    more = {"target": target, "action": "append", "value": "one more"}
    done = relay.post("/v1/continuity/patch", subject(updated_at=ago(600), operations=fill))
    over = relay.post("/v1/continuity/patch", subject(updated_at=ago(60), operations=[more]))

    assert (200, 400) == (done.status_code, over.status_code)


@pytest.mark.parametrize("value", ["words", {"tag": "only"}, {"tag": "t", "content": "c", "x": 1}])
def test_a_badly_shaped_entry_is_refused(relay, value):
    """Where the original breaks, the entry is named and nothing is stored."""
    relay.post(UPSERT, upsert_of(capsule("user", "ada")))
    operation = {"target": "stable_preferences", "action": "append", "value": value}
    body = subject("user", "ada", updated_at=ago(60), operations=[operation])
    answer = relay.post("/v1/continuity/patch", body)

    assert 400 == answer.status_code
    assert "stable_preferences" in answer.json()["detail"]


# ── order in time ────────────────────────────────────────────────────────────────────────────


def test_of_equal_moments_one_is_stored(relay):
    """Writers at once with one `updated_at` and several contents: one is stored, the rest 409."""
    relay.post(UPSERT, upsert_of(capsule()))
    moment, gate = ago(60), threading.Barrier(8)

    def write(number: int) -> tuple[int, str]:
        made = capsule()
        made["updated_at"] = made["verified_at"] = moment
        made["continuity"]["stance_summary"] = f"Writer {number} says how to go on from here."
        gate.wait()
        return relay.post(UPSERT, upsert_of(made)).status_code, made["continuity"]["stance_summary"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(write, range(8)))
    stored = relay.post(READ, subject()).json()["capsule"]["continuity"]["stance_summary"]

    assert [200] + [409] * 7 == sorted(status for status, _ in answers)
    assert [stored] == [stance for status, stance in answers if status == 200]


def test_a_capsule_as_of_a_time(relay):
    """Every version stays readable as of its time, also when the capsule is deleted."""
    moments = []
    for number, seconds in enumerate((300, 200, 100)):
        made = capsule(seconds=seconds)
        made["continuity"]["top_priorities"] = [f"version {number}"]
        relay.post(UPSERT, upsert_of(made))
        moments.append(datetime.now(UTC).isoformat())
    relay.post("/v1/continuity/delete", subject(delete_active=True, reason="done with it"))
    seen = [relay.post(READ, subject(as_of=moment)).json() for moment in moments]
    before = relay.post(READ, subject(as_of=ago(3600)))
    wrong = relay.post(READ, subject(as_of="yesterday"))

    priorities = [one["capsule"]["continuity"]["top_priorities"] for one in seen]
    assert [["version 0"], ["version 1"], ["version 2"]] == priorities
    assert (404, 400) == (before.status_code, wrong.status_code)


def test_what_was_stored_outlives_a_restart(run_server):
    """A capsule, its fallback and its archive are there again after the server was killed."""
    server = run_server()
    with server.client() as client:
        client.post(f"/cognirelay{UPSERT}", json=upsert_of(capsule()))
        client.post(f"/cognirelay{UPSERT}", json=upsert_of(capsule("task", "hem")))
        client.post("/cognirelay/v1/continuity/archive", json=subject(reason="put away"))
    server.kill()
    again = run_server(server.data)
    with again.client() as client:
        asked = {"include_archived": True, "include_fallback": True}
        rows = client.post("/cognirelay/v1/continuity/list", json=asked).json()["capsules"]

    assert [
        ("task", "active"),
        ("task", "fallback"),
        ("thread", "fallback"),
        ("thread", "archived"),
    ] == [(row["subject_kind"], row["artifact_state"]) for row in rows]


def test_a_listing_tells_why_it_is_in_this_order(relay):
    """By salience every active row has its rank and its signals, and all together a summary."""
    for number in range(3):
        relay.post(UPSERT, upsert_of(capsule("task", f"t{number}", 300 - number)))
    relay.post("/v1/continuity/archive", subject("task", "t0", reason="done with it"))
    asked = {"sort": "salience", "include_archived": True}
    answer = relay.post("/v1/continuity/list", asked).json()
    plain = relay.post("/v1/continuity/list", {}).json()

    assert [("t2", 1), ("t1", 2), ("t0", None)] == [
        (row["subject_id"], row["salience_rank"]) for row in answer["capsules"]
    ]
    assert [1, 2] == [row["salience"]["rank"] for row in answer["capsules"][:2]]
    assert 2 == answer["salience_metadata"]["capsule_count"]
    assert "salience_metadata" not in plain


# ── one log ──────────────────────────────────────────────────────────────────────────────────


def recalled(client: httpx.Client, scope: str, query: str) -> dict[str, Any]:
    answer = client.post("/v1/recall", json={"scope": scope, "query": query, "view": "local"})
    assert 200 == answer.status_code, answer.text
    found: dict[str, Any] = answer.json()
    return found


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what the indexes will show."""
    end = time.monotonic() + FOUND_S
    while not is_so():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def words(pack: dict[str, Any]) -> str:
    return "\n".join(event["content"]["text"] for event in pack["layers"]["events"])


def test_a_capsule_is_recalled_and_cited(client, scope):
    """Its words are an event in the subject's scope; what it said before is not found."""
    name = scope.rpartition(":")[2]
    home = f"user:{name}"
    made = capsule("user", name)
    made["continuity"]["stance_summary"] = "The orchard keeper grafts quince on hawthorn."
    first = client.post(f"/cognirelay{UPSERT}", json=upsert_of(made)).json()
    until(lambda: "quince" in words(recalled(client, home, "graft quince")))
    cited = [one["id"] for one in recalled(client, home, "graft quince")["citations"]]
    event = client.get(f"/v1/events/{first['latest_commit']}")
    made = capsule("user", name, 60)
    made["continuity"]["stance_summary"] = "The orchard keeper turns to medlar trees."
    client.post(f"/cognirelay{UPSERT}", json=upsert_of(made))
    until(lambda: "medlar" in words(recalled(client, home, "orchard keeper")))

    assert first["latest_commit"] in cited
    assert home == event.json()["scope"]
    assert "quince" not in words(recalled(client, home, "graft quince"))


def test_a_deleted_capsule_is_not_recalled(client, scope):
    """Nor is an archived one: what no longer stands is not found as if it did."""
    name = scope.rpartition(":")[2]
    for how in ("delete", "archive"):
        subject_id = f"{name}-{how}"
        home = f"ws:task-{subject_id}"
        made = capsule("task", subject_id)
        made["continuity"]["stance_summary"] = "Carry the beehives up to the heather."
        client.post(f"/cognirelay{UPSERT}", json=upsert_of(made))
        until(lambda home=home: "beehives" in words(recalled(client, home, "beehives heather")))
        body = subject("task", subject_id, reason="the season is over")
        body |= {"delete_active": True} if how == "delete" else {}
        client.post(f"/cognirelay/v1/continuity/{how}", json=body)
        until(lambda home=home: "season" in words(recalled(client, home, "beehives heather")))

        assert "beehives" not in words(recalled(client, home, "beehives heather"))


def test_what_was_experienced_is_in_the_context(client, scope, envelope):
    """An event of the subject's scope is quoted beside its capsule, and the capsule is not."""
    name = scope.rpartition(":")[2]
    home, text = f"user:{name}", "The ferry to Naxos leaves at seven in the morning"
    client.post("/v1/experience", json=envelope(text, scope=home))
    client.post(f"/cognirelay{UPSERT}", json=upsert_of(capsule("user", name)))
    asked = {"task": "when does the ferry leave?", "subject_kind": "user", "subject_id": name}
    asked |= {"time_window_days": limits.CONTEXT_WINDOW_DAYS[2]}

    def recent() -> list[dict[str, Any]]:
        answer = client.post("/cognirelay/v1/context/retrieve", json=asked).json()
        found: list[dict[str, Any]] = answer["bundle"]["recent_relevant"]
        return found

    until(lambda: bool(recent()))
    assert [text] == [row["snippet"] for row in recent()]
    assert ["conversation"] == [row["type"] for row in recent()]
    assert 200 == client.get(recent()[0]["path"]).status_code
    asked |= {"include_types": ["document"]}
    assert [] == recent()


def test_an_erasure_takes_the_capsule(client, scope):
    """What is erased by scope is gone here too: capsule, fallback, archive and every version."""
    name = scope.rpartition(":")[2]
    for seconds in (300, 200):
        made = capsule("user", name, seconds)
        client.post(f"/cognirelay{UPSERT}", json=upsert_of(made))
    erasure = {"scope": f"user:{name}", "confirm_all": True}
    begun = client.post("/v1/erasures", json=erasure)
    asked = subject("user", name, allow_fallback=True)

    def read() -> dict[str, Any]:
        found: dict[str, Any] = client.post(f"/cognirelay{READ}", json=asked).json()
        return found

    assert 202 == begun.status_code, begun.text
    until(lambda: read()["source_state"] == "missing")
    assert None is read()["capsule"]
    asked |= {"as_of": datetime.now(UTC).isoformat()}
    assert None is read()["capsule"]


# ── who may ──────────────────────────────────────────────────────────────────────────────────


def test_tenants_do_not_meet(served):
    """I6: the same subject in two tenants is two capsules."""
    with served.server.client() as client:
        for number, tenant in enumerate(("own399", "own400")):
            token = served.tenants.tokens(tenant)["token:owner"]
            made = capsule(seconds=100 + number)
            headers = {"authorization": f"Bearer {token}"}
            answer = client.post(UPSERT, json=upsert_of(made), headers=headers)

            assert answer.json()["created"]


def test_a_closed_scope_is_not_read(client, scope):
    """A registered scope is its members': the capsule of its subject as well."""
    name = scope.rpartition(":")[2]
    owner, other = {"x-cortex-actor": "user:keeper"}, {"x-cortex-actor": "user:other"}
    client.post(f"/cognirelay{UPSERT}", json=upsert_of(capsule("user", name)), headers=owner)
    client.post("/v1/scopes", json={"path": f"user:{name}"}, headers=owner)
    members = {"members": [{"actor": "user:keeper", "role": "owner"}]}
    place = {"path": f"user:{name}"}
    client.put("/v1/scopes/members", params=place, json=members, headers=owner)
    theirs = client.post(f"/cognirelay{READ}", json=subject("user", name), headers=other)
    asked = {"task": "go on", "subject_kind": "user", "subject_id": name}
    bearings = client.post("/cognirelay/v1/context/retrieve", json=asked, headers=other)
    mine = client.post(f"/cognirelay{READ}", json=subject("user", name), headers=owner)

    state = bearings.json()["bundle"]["continuity_state"]
    assert (403, 200) == (theirs.status_code, mine.status_code)
    assert (False, ["continuity_active_missing (owner only)"]) == (
        state["present"],
        state["recovery_warnings"],
    )
    assert [] == bearings.json()["bundle"]["recent_relevant"]
