"""Do remember, recall, answer, why and timeline do from a shell what the server does?"""

import json

import pytest

SEATS = "Acme moved to 200 seats"


@pytest.fixture
def remembered(strata):
    """An experience that was remembered."""
    strata("remember", SEATS)
    return strata


def test_remember_says_what_followed(strata):
    """One line an experience: how far it is, its id, and what was derived."""
    said = strata("remember", "Acme", "moved", "to", "200", "seats").stdout

    assert said.startswith("consolidated  evt_")
    assert "1 fact, 1 belief" in said


def test_remember_reads_lines(strata, client, scope):
    """Every line of standard input is an experience, empty ones are none."""
    strata("remember", "--lines", "-", told="Rosa plays chess\n\n  Rosa lives in Madrid\n")

    found = client.get("/v1/events", params={"scope": scope, "order": "oldest"}).json()["items"]
    texts = [event["content"]["text"] for event in found]

    assert ["Rosa plays chess", "Rosa lives in Madrid"] == texts


def test_remember_takes_time_and_labels(strata, client, scope):
    """What is told beside the words reaches the log."""
    receipt = json.loads(
        strata(
            "remember", SEATS, "--observed-at", "2026-05-13T15:42:00Z", "--label", "sales", "--json"
        ).stdout
    )
    [event] = client.get("/v1/events", params={"scope": scope}).json()["items"]

    assert receipt["event_id"] == event["id"]
    assert "2026-05-13T15:42:00Z" == event["context"]["observed_at"]
    assert ["sales"] == event["context"]["labels"]


def test_nothing_is_not_remembered(strata):
    """Empty input is an error of whoever typed it, and changes nothing."""
    said = strata("remember", "-", code=1, told="  \n").stderr

    assert "nothing to remember" in said


def test_recall_shows_layers_with_their_citations(remembered):
    """Layer by layer, each line with the marker that the context block has for it."""
    said = remembered("recall", "how many seats does Acme have?").stdout

    assert ["beliefs", "facts", "episodes", "events"] == [
        word for word in ("beliefs", "facts", "episodes", "events") if f"│ {word} " in said
    ]
    assert "[1]" in said
    assert SEATS in said
    assert "tokens" in said


def test_recall_in_json_is_the_pack(remembered, client, scope):
    """A script gets what the server answers."""
    asked = {"scope": scope, "query": "seats"}
    pack = client.post("/v1/recall", json=asked).json()
    said = json.loads(remembered("recall", "seats", "--json").stdout)

    assert pack["context_block"] == said["context_block"]
    assert [fact["id"] for fact in pack["layers"]["facts"]] == [
        fact["id"] for fact in said["layers"]["facts"]
    ]


@pytest.mark.parametrize("view", ["narrative", "structured"])
def test_recall_of_a_pack_that_is_text(remembered, view):
    """A pack without layers is shown as its text, without the fence that is for a model."""
    said = remembered("recall", "seats", "--view", view).stdout

    assert "200" in said
    assert "<<memory" not in said


def test_exact_content_is_shown(strata, client, envelope):
    """An event without words is shown as what it holds."""
    body = envelope(content={"kind": "json", "data": {"order": 17}})
    assert 200 == client.post("/v1/experience?wait=indexed", json=body).status_code

    assert '{"order":17}' in strata("recall", "order").stdout


def test_recall_gives_the_context_alone(remembered):
    """What goes before a model, and nothing else."""
    said = remembered("recall", "seats", "--context").stdout

    assert said.startswith("<<memory ")
    assert said.rstrip().endswith(">>")


def test_recall_of_the_past(remembered):
    """`--as-of` before anything was known finds nothing, and says so."""
    said = remembered("recall", "seats", "--as-of", "2020-01-01T00:00:00Z").stdout

    assert "Nothing is known about this here." in said


def test_answer_quotes_and_cites(remembered):
    """An answer, and what its markers stand for."""
    said = remembered("answer", "How many seats does Acme have?").stdout

    assert "200" in said.splitlines()[0]
    assert "evt_" in said


def test_why_goes_down_to_the_words(remembered):
    """Belief, fact, event: a tree, found by what it is about or by its id."""
    by_words = remembered("why", "how many seats does Acme have?").stdout
    reasons = json.loads(remembered("why", "how many seats?", "--json").stdout)
    by_id = remembered("why", reasons["belief"]["id"]).stdout

    assert by_words == by_id
    assert "supported by" in by_words
    assert f"extracted from {SEATS}" in by_words


def test_why_of_nothing(strata):
    """What nobody believes is not there: the exit code says so to a script."""
    said = strata("why", "anything", code=5).stderr

    assert "nothing is believed" in said


def test_timeline_in_the_order_of_time(strata):
    """What was so until what followed, and since when it was known."""
    strata("remember", "Acme has 200 seats", "--observed-at", "2026-05-13T09:00:00Z")
    strata("remember", "Acme has 250 seats", "--observed-at", "2026-06-02T09:00:00Z")
    said = strata("timeline", "Acme").stdout
    rows = json.loads(strata("timeline", "Acme", "seat_count", "--json").stdout)["timeline"]

    assert said.index("2026-05-13 09:00  2026-06-02 09:00  200") < said.index("now  ")
    assert [200, 250] == [row["value"] for row in rows]


def test_timeline_of_a_stranger(strata):
    """A subject that nothing is known of is named."""
    assert "nothing is known of Nobody" in strata("timeline", "Nobody", code=5).stderr


def test_a_data_directory_is_as_good_as_a_server(strata, tmp_path):
    """The same commands, without one."""
    place = ("--data", tmp_path / "data")
    strata("remember", "Bob moved to Lisbon", *place)

    assert "Bob moved to Lisbon" in strata("recall", "where does Bob live?", *place).stdout
