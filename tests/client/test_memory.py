"""Does the minute work?  Experience, recall, and what lies between, against a real server."""

import asyncio

import pytest

from strata_client import AsyncClient, NotFound
from strata_client.codes import IdempotencyConflict, InvalidScope

SEATS = "Acme moved to 200 seats"


def test_what_is_experienced_is_recalled(memory):
    """Two lines: words in, a cited block for a prompt out."""
    memory.experience(SEATS, wait="indexed")
    pack = memory.recall("how many seats has Acme?")

    assert SEATS in pack.context_block
    assert 200 == pack.layers.facts[0].object.value
    assert {"event", "fact"} <= {citation.layer for citation in pack.citations}


def test_the_same_words_awaited(server, scope):
    """An AsyncClient knows the same methods, awaited."""

    async def minute():
        async with AsyncClient(server.url, scope=scope, allow_unstable=True) as memory:
            written = await memory.experience(SEATS, wait="indexed")
            pack = await memory.recall("how many seats has Acme?")
            events = [event async for event in memory.events.list()]
            return written, pack, events

    written, pack, events = asyncio.run(minute())
    assert SEATS in pack.context_block
    assert [written.event_id] == [event.id for event in events]


def test_a_listing_fetches_its_pages(memory):
    """Every item once, however small the pages; a page has its cursor."""
    memory.experience_bulk([f"turn {number}" for number in range(7)], wait="indexed")
    listed = memory.events.list(limit=2, order="oldest")

    assert [f"turn {n}" for n in range(7)] == [event.content.text for event in listed]
    assert [2, 2, 2, 1] == [len(page.items) for page in listed.pages()]
    assert listed.page().next_cursor is not None


def test_an_error_is_a_class_with_its_code(memory):
    """A program matches on the class or the code, a person reads the message."""
    with pytest.raises(InvalidScope) as caught:
        memory.experience("x", scope="nonsense")

    error = caught.value
    assert ("INVALID_SCOPE_GRAMMAR", 422, "scope") == (
        error.code,
        error.status,
        error.details["field"],
    )
    assert error.request_id is not None
    assert error.request_id in str(error)


def test_what_is_not_there_is_not_found(memory):
    """A code without a class of its own has that of its group."""
    with pytest.raises(NotFound, match="evt_nowhere"):
        memory.events.get("evt_nowhere")


def test_a_key_of_ones_own_is_kept(memory):
    """The same key is the same event; with other words it is a conflict."""
    first = memory.experience("once", idempotency_key="mine")
    again = memory.experience("once", idempotency_key="mine")

    assert (first.event_id, True) == (again.event_id, again.replayed_from_idempotency)
    with pytest.raises(IdempotencyConflict):
        memory.experience("twice", idempotency_key="mine")


def test_a_stream_hears_what_happens_after_it_began(memory):
    """As a context manager it is connected when the block begins."""
    with memory.lifecycle.stream() as heard:
        written = memory.experience(SEATS)
        stages = [next(heard) for _ in range(4)]

    assert ["captured", "extracted", "indexed", "consolidated"] == [e.event for e in stages]
    assert {written.event_id} == {e.event_id for e in stages}
