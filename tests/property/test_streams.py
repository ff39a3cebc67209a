"""Does every listener hear everything once and in order, wherever it left off?"""

import asyncio
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capture import capture
from engine.rows import CaptureRequest
from engine.watch import WatchRequest, list_lifecycle, subscribe
from schemas.envelope import JsonContent
from schemas.lifecycle import STAGE_ORDER

STAGES = list(STAGE_ORDER[:4])

moments = st.lists(
    st.one_of(
        st.tuples(st.just("post"), st.integers(1, 3)),
        st.tuples(st.just("post many"), st.integers(1, 5)),
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("resume"), st.integers(0, 40)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=20,
)


class Client:
    """Follows a stream of server-sent bytes, and comes back with an id it has seen."""

    def __init__(self, rig, site):
        self.rig = rig
        self.site = site
        self.seen = []
        self.start = None
        self.stream = None

    async def connect(self):
        """Open the stream, after the last id it has; the first time that is one of no event."""
        since = self.seen[-1] if self.seen else self.start
        self.stream = subscribe(self.site.engine, self.rig.ALICE, WatchRequest(since=since))
        first = await anext(self.stream)
        assert (b"id: ", b"\n\n") == (first[:4], first[-2:])
        assert since in (None, first[4:-2].decode())
        self.start = self.start or first[4:-2].decode()

    async def leave(self):
        """Close it, read or not."""
        await self.stream.aclose()

    def public(self):
        """The ids of everything that was announced so far."""
        return [event.lifecycle_id for event in self.rig.announcements(self.site.engine)]

    async def read(self):
        """Everything there is to hear; a stream that lost something would leave us waiting."""
        while len(self.seen) < len(self.public()):
            chunk = await asyncio.wait_for(anext(self.stream), 20)
            lines = chunk.split(b"\n")
            self.seen += [line[4:].decode() for line in lines if line.startswith(b"id: ")]


async def live(rig, moments):
    """Let it all happen; the client, and what there was to hear."""
    async with rig.Site(rig.projection()) as site:
        await site.open()
        client = Client(rig, site)
        await client.connect()
        count = 0
        for what, how in moments:
            if what == "post":
                for _ in range(how):
                    await rig.post(site.engine, f"t{count}", scope=f"org:acme/user:u{count % 3}")
                    count += 1
            elif what == "post many":
                await rig.post_many(site.engine, [f"t{count + at}" for at in range(how)])
                count += how
            elif what == "step":
                site.engine.daemon._batch_entries = how
                await site.step()
            elif what == "read":
                await client.read()
            elif what == "resume":
                await client.leave()
                # It may have seen more than it remembers, but not less.
                del client.seen[how:]
                await client.connect()
            else:
                await client.read()
                await client.leave()
                await site.kill(power_cut=how)
                await site.open()
                await client.connect()
        await site.settle()
        await client.read()
        await client.leave()
        told = rig.announcements(site.engine)
        pages = [] if not told else paged(rig, site.engine)
        return client.seen, told, pages


def paged(rig, engine):
    """The ids that a client sees who polls, a few at a time."""
    ids, cursor = [], None
    while True:
        request = WatchRequest(limit=3, cursor=cursor)
        page = list_lifecycle(engine, rig.ALICE, request)
        ids += [row.lifecycle_id for row in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return ids


@given(moments=moments)
@settings(deadline=None, max_examples=40)
def test_a_stream_resumes_anywhere(rig, moments):
    """Each announcement exactly once and in order, over drops, restarts and power cuts."""
    seen, told, pages = asyncio.run(live(rig, moments))
    ids = [event.lifecycle_id for event in told]

    assert ids == seen
    assert ids == pages
    assert sorted(set(ids)) == ids


@given(moments=moments)
@settings(deadline=None, max_examples=40)
def test_stages_come_in_order(rig, moments):
    """captured, extracted, indexed, consolidated, numbered 1 to 4, for any interleaving."""
    _, told, _ = asyncio.run(live(rig, moments))
    said = {}
    for event in told:
        name = rig.names_of([event])[0]
        said.setdefault(event.event_id, []).append((name, event.sequence))

    assert [list(zip(STAGES, (1, 2, 3, 4), strict=True))] * len(said) == list(said.values())


envelopes = st.builds(
    lambda text, labels, data: {"text": text, "labels": labels, "data": data},
    text=st.text(min_size=1, max_size=20),
    labels=st.lists(st.text(min_size=1, max_size=5), max_size=3),
    data=st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.text(max_size=5)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    ),
)


moments_in_time = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.timezones())


@given(posted=st.lists(st.tuples(envelopes, moments_in_time), max_size=4))
@settings(deadline=None, max_examples=40)
def test_replay_is_shown_what_capture_was_shown(rig, posted):
    """Inline projectors see the entry before it is written, replay after: the same, in any zone."""

    async def go():
        async with rig.Site(rig.projection()) as site:
            engine = await site.open()
            for at, (made, observed_at) in enumerate(posted):
                base = rig.envelope("x", f"key {at}")
                context = rig.msgspec.structs.replace(
                    base.context, observed_at=observed_at, labels=made["labels"]
                )
                content = JsonContent(data=made["data"], text=made["text"])
                one = rig.msgspec.structs.replace(base, content=content, context=context)
                await capture(engine, rig.ALICE, CaptureRequest(envelope=one))
            await site.settle()
            return rig.kept(engine), rig.replayed(engine, site.projection)

    kept, replayed = asyncio.run(go())
    assert kept == replayed
