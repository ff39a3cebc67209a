"""Does every example of the seed validate against our schemas?  One test a section of 001.

The files in tests/golden/seed are the examples as the seed prints them, which leaves things out.
`expanded` fills them in by these rules, and changes nothing else:

* a comment is dropped;
* an id cut short (`evt_01HX...`, `evt_...`) gets an ending, a hash cut short loses its dots;
* a time cut short (`2026-05-08T...`) begins its day, and one left out is some day;
* `"a" | "b"` is its first choice;
* `...` at the end of a list is dropped, and `[...]` is an empty list;
* an object whose inside is left out takes that of §3.5.3's envelope, or of its own section, or is
  empty.
"""

import json
import re
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from schemas.catalogue import CATALOGUE, DIALECT, documents
from schemas.generate import FOLDER
from schemas.lifecycle import EVENT_NAMES

SEED = Path(__file__).parents[2] / "golden" / "seed"
FILES = sorted(FOLDER.glob("*.json"))

ELIDED = {
    "actor": "observed_actor",
    "content": "content",
    "context": "context",
    "directives": "directives",
}


def expanded(name):
    """An example of the seed as JSON."""
    text = (SEED / f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text)
    text = re.sub(r"([a-z]+_)(01H\w*)?\.\.\.", r"\g<1>01HXEXAMPLE", text)
    text = re.sub(r"(sha256:\w+)\.\.\.", r"\1", text)
    text = re.sub(r'("\w+") \| "\w+"', r"\1", text)
    text = re.sub(r"(\d{4}-\d\d-\d\d)T\.\.\.", r"\1T00:00:00Z", text)
    text = re.sub(r'("valid_from": )"\.\.\."', r'\1"2026-04-01T00:00:00Z"', text)
    text = re.sub(r',\s*"?\.\.\."?(?=\s*\])', "", text)
    text = text.replace("[...]", "[]")
    text = re.sub(r'"(\w+)": \{\s*(?:\.\.\.)?\s*\}', _inside, text)
    return json.loads(text)


def _inside(found):
    if found[1] == "belief":
        return f'"belief": {json.dumps(expanded("7.4-belief"))}'
    whole = expanded("3.5.3-envelope")[ELIDED[found[1]]] if found[1] in ELIDED else {}
    return f'"{found[1]}": {json.dumps(whole)}'


def check(stem, example):
    """The published schema takes it, and so does the type it was made from."""
    schema = json.loads((FOLDER / f"{stem}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(
        example
    )
    msgspec.convert(example, CATALOGUE[stem])


def refuses(stem, example):
    """Whether the published schema and the type both refuse it."""
    schema = json.loads((FOLDER / f"{stem}.schema.json").read_text(encoding="utf-8"))
    by_schema = not Draft202012Validator(schema).is_valid(example)
    try:
        msgspec.convert(example, CATALOGUE[stem])
    except msgspec.ValidationError:
        return by_schema
    return False


# ── the files ────────────────────────────────────────────────────────────────────────────────


def test_the_schemas_have_not_drifted():
    """schemas/json is what the structs say: run scripts/schemas after changing one."""
    assert documents() == {path.name: path.read_bytes() for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_schema_is_a_schema(path):
    """Draft 2020-12, with an id of its own."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)

    assert DIALECT == schema["$schema"]
    assert path.name == schema["$id"]


# ── the sections ─────────────────────────────────────────────────────────────────────────────


def test_section_3_5_3_envelope():
    """The experience envelope, every field of it."""
    check("experience_envelope", expanded("3.5.3-envelope"))


@pytest.mark.parametrize("content", ["message", "text", "json", "blob_ref", "triple"])
def test_section_3_5_3_content_kinds(content):
    """The five kinds; text is required for message and text, role for message."""
    inside = {
        "message": {"role": "user", "text": "a"},
        "text": {"text": "a"},
        "json": {"data": {"a": 1}},
        "blob_ref": {"blob_id": "blob_01HX"},
        "triple": {"triple": {"subject": "a", "predicate": "b", "object": "c"}},
    }
    envelope = expanded("3.5.3-envelope") | {"content": {"kind": content, **inside[content]}}
    check("experience_envelope", envelope)
    without = envelope | {"content": {"kind": content}}

    assert refuses("experience_envelope", without)


@pytest.mark.parametrize(
    "field", ["scope", "modality", "content", "context", "idempotency_key", "surprise"]
)
def test_section_3_5_3_required_fields(field):
    """What the table marks required is required, and nothing unknown is taken."""
    envelope = expanded("3.5.3-envelope")
    changed = {name: value for name, value in envelope.items() if name != field}

    assert refuses("experience_envelope", changed if field in envelope else {**envelope, field: 1})


@pytest.mark.parametrize("field", ["observed_actor", "subject", "directives"])
def test_section_3_5_3_optional_fields(field):
    """What the table marks optional may be left out."""
    envelope = expanded("3.5.3-envelope")
    del envelope[field]
    check("experience_envelope", envelope)


def test_section_6_6_error():
    """The error envelope."""
    check("error_envelope", expanded("6.6-error"))


def test_section_7_1_event():
    """The event record, with the field that §18.2(8) takes back."""
    check("event", expanded("7.1-event"))


@pytest.mark.parametrize(
    "name, stem",
    [
        ("7.2-episode", "episode"),
        ("7.3-fact", "fact"),
        ("7.3.1-vocabulary", "vocabulary_request"),
        ("7.4-belief", "belief"),
        ("7.5.2-concept", "concept"),
        ("8.7.4-timeline", "fact_timeline"),
        ("8.7.6-why", "belief_why"),
        ("8.7.10-coverage", "understanding_coverage"),
        ("8.7.11-request", "synthesize_request"),
        ("8.17.1-phrase", "temporal_phrase"),
        ("8.17.2-page", "temporal_phrase_page"),
    ],
)
def test_sections_of_the_layers(name, stem):
    """The records of §7, and what §8.7, §8.14 and §8.17 say of them."""
    check(stem, expanded(name))


def test_section_12_2_temporal():
    """The temporal block."""
    check("temporal_block", expanded("12.2-temporal")["temporal"])


@pytest.mark.parametrize(
    "stem, name", [("belief", "7.4-belief"), ("episode", "7.2-episode"), ("fact", "7.3-fact")]
)
def test_section_18_2_8_partial_reasons(stem, name):
    """Every derived layer has the three fields, and reasons of its own."""
    reasons = {
        "belief": "calibration_stale",
        "episode": "episode_open",
        "fact": "conflict_unresolved",
    }
    partial = {"_partial": True, "_progress": 0.5}
    check(stem, expanded(name) | partial | {"_partial_reason": reasons[stem]})

    assert refuses(stem, expanded(name) | partial | {"_partial_reason": "no_implementation_yet"})


def test_section_18_2_2_redacted_back_pointer():
    """What was derived and erased stays visible as `redacted:<id>`."""
    event = expanded("7.1-event")
    check("event", event | {"derives": ["redacted:fact_01HX", "concept_01HX"]})

    assert refuses("event", event | {"derives": ["audit_01HX"]})


def test_section_8_1_accepted():
    """The 202 of a write."""
    check("experience_receipt", expanded("8.1-accepted"))


def test_section_8_1_waited():
    """The 200 of a write that waited."""
    check("experience_receipt", expanded("8.1-waited"))


def test_section_8_2_request():
    """A bulk call in its shared-header form."""
    check("experience_bulk", expanded("8.2-request"))


def test_section_8_2_response():
    """The answer to a bulk call."""
    check("bulk_receipt", expanded("8.2-response"))


def test_section_8_3_request():
    """A recall, every field of it."""
    check("recall_request", expanded("8.3-request"))


@pytest.mark.parametrize(
    "field, value",
    [
        ("view", "sideways"),
        ("include", ["dreams"]),
        ("citation_mode", "loud"),
        ("diagnostics", "some"),
        ("budgets", {"max_tokens": -1}),
        ("budgets", {"per_layer_limits": {"dreams": 1}}),
        ("temporal", {"sometime": True}),
        ("surprise", 1),
    ],
)
def test_section_8_3_closed_sets(field, value):
    """What the table closes is closed."""
    assert refuses("recall_request", expanded("8.3-request") | {field: value})


def test_section_8_4_request():
    """A question to be answered, every field of it."""
    check("answer_request", expanded("8.4-request"))


def test_section_8_4_response():
    """An answer with its citations."""
    check("answer_response", expanded("8.4-response"))


def test_section_9_pack():
    """The stratified pack."""
    check("stratified_pack", expanded("9-pack"))


def test_section_9_2_limits():
    """The other names of the budget (§9.2)."""
    request = expanded("8.3-request")
    del request["budgets"]
    check("recall_request", request | {"limits": {"per_layer": {"facts": 3}, "total_tokens": 900}})


def test_section_18_2_4_scopes_traversed():
    """Scopes read with their items, scopes denied with a count and the tier that says no."""
    denied = {
        "scope": "org:acme/user:bob",
        "denied": True,
        "item_count": 3,
        "denied_reason": "NOT_A_MEMBER by scope: scope.read.local",
    }
    read = {"scope": "org:acme", "items": 2}
    check("stratified_pack", expanded("9-pack") | {"scopes_traversed": [read, denied]})


def test_section_8_7_1_page():
    """A page of events."""
    page = expanded("8.7.1-page")
    check("event_page", page)
    check("event_page", page | {"items": [expanded("7.1-event")]})


def test_section_8_9_2_row():
    """One lifecycle event, polled."""
    check("lifecycle_row", expanded("8.9.2-row"))


def test_section_8_9_3_state():
    """The aggregated state of a memory event."""
    check("memory_event_state", expanded("8.9.3-state"))


def test_section_8_9_5_request():
    """A cancellation."""
    check("cancel_request", expanded("8.9.5-request"))


def test_section_8_9_5_response():
    """What a cancellation answers."""
    check("cancel_receipt", expanded("8.9.5-response"))


def test_section_14_audit_row():
    """An audit row, with and without `body_bytes` (§18.2.15)."""
    row = expanded("14-audit-row")
    check("audit_row", row)
    del row["request"]["body_bytes"]
    check("audit_row", row)


# ── §13, whose table has lost its columns ────────────────────────────────────────────────────

VALUES = {
    "event_id": "evt_01HX",
    "actor": "user:alice",
    "modality": "conversation",
    "wal_offset": 134892,
    "derived": {"facts": 3, "entities": 2, "beliefs": 1, "episodes": 1},
    "layers_indexed": ["events"],
    "beliefs_updated": 1,
    "conflicts_resolved": 1,
    "superseded_facts": 1,
    "episode_id": "ep_01HX",
    "understanding_ids": ["concept_01HX"],
    "layer": "facts",
    "count": 2,
    "by_actor": "user:alice",
    "cascade": "derived_only",
    "tier": "scope",
    "scope_or_actor": "org:acme",
    "capability_diff": {"removed": ["scope.write"]},
    "reason": "membership ended",
    "import_id": "imp_01HX",
    "export_id": "exp_01HX",
    "erasure_id": "erasure_01HX",
    "fraction_complete": 0.5,
    "processed": 5,
    "total": 10,
    "summary": {"events": 10},
    "line": 7,
    "error": "not JSON",
    "url": "https://example.com/export",
    "size_bytes": 4096,
    "phase": "enumerate",
    "behind_by": 31,
}


def catalogue():
    """Name -> payload of each row of §13."""
    for line in (SEED / "13-catalogue.txt").read_text(encoding="utf-8").splitlines():
        name = max((name for name in EVENT_NAMES if line.startswith(name)), key=len, default=line)
        inside = re.search(r"\{(.*)\}", line)[1]
        fields = re.findall(r"\w+", re.sub(r": \{.*?\}", "", inside))
        yield name, {field: VALUES[field] for field in fields}


@pytest.mark.parametrize("name, payload", list(catalogue()), ids=[name for name, _ in catalogue()])
def test_section_13_payload(name, payload):
    """On the stream with what every event has, and as the payload of a polled row."""
    shared = {"event_id": "evt_01HX", "timestamp": "2026-05-13T15:42:09.418Z", "scope": "org:acme"}
    check("lifecycle_event", {"event": name, "lifecycle_id": "lce_01HX", **shared, **payload})
    row = expanded("8.9.2-row") | {"stage": name, "payload": payload}
    check("lifecycle_row", row)

    assert refuses("lifecycle_event", {"event": f"{name}!", "lifecycle_id": "lce_01HX", **shared})


def test_section_13_is_complete():
    """The union has every event of the catalogue, and two of ours."""
    assert {"cancelled", "parked"} == set(EVENT_NAMES) - {name for name, _ in catalogue()}
