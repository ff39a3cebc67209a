"""Is a stream whole though its connection is cut?  A real proxy between client and server cuts."""

import asyncio

import pytest

from strata_client import AsyncClient, Retries, StreamLost
from strata_client.models import Consolidated
from strata_client.sse import Frame, Parser

STAGES = ["captured", "extracted", "indexed", "consolidated"]


def text_of(number):
    return f"Acme has {number} seats"


def test_announcements_across_cuts_come_once_and_in_order(proxy, connect):
    """Whatever happens while the line is down is heard when it is up again."""
    writer = connect()
    written, heard = [], []
    with connect(proxy.url).lifecycle.stream(events=STAGES) as stream:
        for number in range(5):
            proxy.cut()
            written.append(writer.experience(text_of(number), wait="indexed").event_id)
            heard += [next(stream) for _ in STAGES]

    assert [(evt, stage) for evt in written for stage in STAGES] == [
        (each.event_id, each.event) for each in heard
    ]
    assert proxy.connections > 5


def test_a_line_cut_before_the_first_announcement_loses_nothing(proxy, connect):
    """The server says where the stream begins, so there is a place to go on from."""
    with connect(proxy.url).lifecycle.stream(events=STAGES) as stream:
        proxy.cut()
        written = connect().experience("while nobody listens", wait="indexed")
        heard = [next(stream) for _ in STAGES]

    assert [(written.event_id, stage) for stage in STAGES] == [
        (each.event_id, each.event) for each in heard
    ]


def test_the_same_awaited(proxy, connect, scope):
    """An AsyncClient goes on as a Client does."""
    writer = connect()

    async def heard():
        patient = Retries(count=6, first_s=0.01)
        async with (
            AsyncClient(proxy.url, scope=scope, retries=patient) as memory,
            memory.lifecycle.stream(events=STAGES) as stream,
        ):
            events = []
            for number in range(3):
                await asyncio.to_thread(proxy.cut)
                await asyncio.to_thread(writer.experience, text_of(number))
                events += [(await anext(stream)).event for _ in STAGES]
            return events

    assert STAGES * 3 == asyncio.run(heard())


@pytest.mark.parametrize("size", [400, 900, 2_000, 5_000, 9_000])
def test_a_recall_cut_anywhere_is_the_same_pack(proxy, connect, size):
    """Pieces that came are not sent again, those that did not are; the pack is one."""
    memory = connect()
    memory.experience_bulk([text_of(number) for number in range(20)], wait="indexed")
    whole = list(memory.recall_stream("how many seats?", idempotency_key=f"whole-{size}"))

    proxy.cut_after = [size, size, size]
    pieces = list(connect(proxy.url).recall_stream("how many seats?"))
    assert [piece.event for piece in whole] == [piece.event for piece in pieces]
    assert ("plan", "done") == (pieces[0].event, pieces[-1].event)
    blocks = [piece.text for piece in pieces if piece.event == "context_block"]
    assert [memory.recall("how many seats?").context_block] == blocks
    assert proxy.connections > 1


def test_an_answer_cut_in_the_middle_is_an_error(proxy, connect):
    """Its words have no numbers: to go on would mean to say some twice."""
    memory = connect()
    memory.experience(text_of(200), wait="indexed")
    whole = [piece.text for piece in memory.answer_stream("How many seats has Acme?")]

    proxy.cut_after = [900]
    heard = []
    with pytest.raises(StreamLost):
        heard.extend(
            piece.text for piece in connect(proxy.url).answer_stream("How many seats has Acme?")
        )
    assert "200" in "".join(whole)
    assert 1 == proxy.connections


def test_a_stream_that_stays_cut_is_lost(proxy, connect):
    """Patience ends, and what was heard before was heard."""
    hasty = Retries(count=2, first_s=0.01, bound_s=0.02)
    with connect(proxy.url, retries=hasty).lifecycle.stream(events=STAGES) as stream:
        proxy.close()
        with pytest.raises(StreamLost):
            next(stream)


def test_a_jobs_stream_ends_with_the_job(connect):
    """It begins with the job, however late one listens, and stops by itself."""
    memory = connect()
    memory.experience(text_of(200), wait="indexed")
    started = memory.exports.start()
    state = memory.exports.wait(started.export_id)
    *_, last = memory.lifecycle.stream(export_id=started.export_id)

    assert ("completed", "export_complete") == (state.status, last.event)
    assert text_of(200) in memory.blobs.download(state.url).decode()


def test_leaving_a_stream_frees_its_place(connect):
    """A block that ends has unsubscribed: the connection is closed, not left to the collector."""
    memory = connect()
    with memory.lifecycle.stream(events=STAGES) as stream:
        memory.experience(text_of(1))
        seen = next(iter(stream))

    assert "captured" == seen.event
    with pytest.raises(StopIteration):
        next(stream)


def test_announcements_have_types(connect):
    """What is known is a struct of its kind, with the counts it tells."""
    memory = connect()
    with memory.lifecycle.stream(events=["consolidated"]) as stream:
        memory.experience(text_of(7), wait="indexed")
        told = next(stream)

    assert isinstance(told, Consolidated)
    assert 1 == told.beliefs_updated


# ── the parser ───────────────────────────────────────────────────────────────────────────────

TEXT = (
    b": hello\n\nid: 7\n\nid: 8\nevent: a\ndata: {\ndata: }\n\ndata:x\r\n\r\nevent: b\rdata: y\r\r"
)
FRAMES = [Frame("a", b"{\n}", "8"), Frame("message", b"x"), Frame("b", b"y")]


@pytest.mark.parametrize("size", range(1, 12))
def test_a_parser_fed_in_pieces_gives_the_same(size):
    """Whatever the network makes of it: lines in LF, CR LF or CR, cut at any byte."""
    parser = Parser()
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    frames = [frame for piece in [*pieces, b"\n"] for frame in parser.feed(piece)]

    assert FRAMES == frames
    assert "8" == parser.last_id
