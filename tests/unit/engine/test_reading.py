"""Is what another process reads the same as what would be read here?"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.labels import entry_of, labels
from engine.reading import findings, read_findings
from engine.rows import Ask
from projectors.text import extract
from schemas.entry import Annotation, Entry, Experience
from schemas.envelope import Content

ask_of = msgspec.msgpack.Decoder(Ask).decode


def there_and_back(entries, read=extract):
    """What is found of entries that travelled, and what they are when they have arrived."""
    ask = Ask(False, entries, [], is_indexed=True, is_afresh=True, is_again=True)
    message = msgspec.msgpack.encode(ask)
    return read_findings(findings(message, read)), ask_of(message).entries


def with_content(content):
    """An entry that holds this."""
    entry = entry_of("")
    envelope = msgspec.structs.replace(
        entry.body.envelope, content=msgspec.convert(content, Content)
    )
    return msgspec.structs.replace(entry, body=Experience(envelope=envelope))


def test_every_sentence_we_know():
    """What arrives is what is read in place, to the last field."""
    entries = [entry_of(label.text, role=label.role) for label in labels()]
    found, arrived = there_and_back(entries)

    assert sum(len(one.candidates) for one in found) > len(entries) // 2
    assert found == [extract(entry) for entry in arrived]


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "triple", "triple": {"subject": "Ana", "predicate": "age", "object": 41}},
        {"kind": "json", "data": {"seats": 200, "open": True, "tags": ["a", 1.5, None]}},
        {"kind": "text", "text": "Acme has $1.5m. " * 400},
        {"kind": "text", "text": "I have 99999999999999999999999999999 apples."},
    ],
)
def test_what_is_no_sentence(content):
    """Exact content, long documents, numbers beyond a word: the same, or left to who folds."""
    (found,), (arrived,) = there_and_back([with_content(content)])

    assert found in (None, extract(arrived))


def test_a_model_s_reading():
    """An annotation is read from its own output."""
    said = {"facts": [{"subject": "Ana", "predicate": "lives_in", "object": "Rome"}]}
    body = Annotation(about="evt_x", model="m", version="1", output=said)
    (found,), (arrived,) = there_and_back([msgspec.structs.replace(entry_of(""), body=body)])

    assert found == extract(arrived)
    assert "m" == found.extractor


@given(st.lists(st.text(min_size=1, max_size=200), max_size=5))
def test_whatever_is_said(texts):
    """Any words arrive as they are read in place."""
    found, arrived = there_and_back([entry_of(text) for text in texts])

    assert found == [extract(entry) for entry in arrived]


def test_what_cannot_be_read():
    """It is left to who folds, which fails on it and has it parked; its neighbours are read."""

    def refusing(entry: Entry):
        if "poison" in entry.body.envelope.content.text:
            raise ValueError("poison")
        return extract(entry)

    found, _ = there_and_back([entry_of("I live in Rome."), entry_of("poison")], refusing)

    assert [True, False] == [one is not None for one in found]
