"""Do the indexes follow the log, whatever happens to them on the way?"""

import asyncio
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest

from engine.capture import capture
from engine.clock import Clock
from engine.engine import Projection
from engine.rows import CaptureRequest
from engine.settings import Settings
from engine.state.index import LAYERS
from engine.state.names import SCOPE
from engine.watch import CancelRequest, cancel
from projectors.base import Change, Drop, Projector, Stage, View
from projectors.control import CONTROL
from projectors.derives import DERIVES
from projectors.records import create, record_key, revise, tables_of
from schemas import limits
from schemas.entry import Entry
from schemas.envelope import Directives
from schemas.ids import derive_id
from schemas.layers import EntityRef, Fact, LiteralValue

HOME = "org:acme/user:alice"


def facts(version: int = 1) -> Projector:
    """What reads `name = value` is a fact of that name: revised when it comes again, or dropped."""

    def project(entry: Entry, view: View) -> Iterator[Change]:
        text = getattr(entry.envelope.content, "text", "") if entry.envelope else ""
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            return
        made = derive_id("fact", name.encode().ljust(16, b"\0"), version)
        before = view.get("facts", record_key("facts", made))
        if not value:
            yield Drop(table="facts", key=record_key("facts", made))
            return
        fact = Fact(
            id=made,
            scope=entry.scope,
            subject=EntityRef(id="ent_1", name=name),
            predicate="is" if version == 1 else "became",
            object=LiteralValue(datatype="string", value=value),
            supports=[entry.event_id],
            valid_from=entry.recorded_at,
            valid_to=None,
            recorded_from=entry.recorded_at,
            recorded_to=None,
            confidence=1.0,
            extractor="rules",
        )
        if before is None:
            yield from create("facts", entry.scope_no, fact, [entry.event_id])
        else:
            after = msgspec.structs.replace(fact, version=before.version + 1)
            if before.object == fact.object:
                supports = [*before.supports, entry.event_id]
                kept = {"valid_from": before.valid_from, "supports": supports}
                after = msgspec.structs.replace(after, **kept)
            yield from revise("facts", before, after, entry.recorded_at, [entry.event_id])

    return Projector(name="facts", version=version, tables=tables_of("facts"), project=project)


def projection(version: int = 1) -> Projection:
    stages = [Stage(name, ()) for name in ("indexed", "consolidated", "compressed")]
    return Projection(
        inline=(CONTROL,), stages=(Stage("extracted", (facts(version), DERIVES)), *stages)
    )


def words(engine, query: str, layers=LAYERS) -> list[tuple[str, bytes]]:
    scope_no = engine.names.known(SCOPE, 1, HOME)
    hits = engine.text.search(1, [scope_no], query, layers=layers, limit=1000)
    return [(layer, raw) for _, layer, raw, _ in hits]


def meaning(engine, query: str, layers=LAYERS) -> list[tuple[str, bytes]]:
    scope_no = engine.names.known(SCOPE, 1, HOME)
    vector = engine.embedder.embed_query(query)
    opened = engine.vectors.open(1, [scope_no])
    return [
        (near.layer, opened.block(scope_no, near.layer).raws[row])
        for near in opened.search(vector, layers=layers, limit=1000)
        for row, score in near.pairs()
        if score > 0.3
    ]


def sentences(engine) -> dict[bytes, str]:
    """Every fact as the views have it."""
    return {
        raw: f"{fact.subject.name} {fact.predicate} {fact.object.value}"
        for raw, fact in engine.staged.scan(1, "facts")
    }


def same_as_views(engine, texts: dict[int, str], gone: frozenset[int] = frozenset()) -> None:
    """Every event and every fact is found once by its words and once by its meaning."""
    rows = {row.header.offset: row.header.id for row in engine.log.read(1, 1000)}
    events = {rows[offset]: text for offset, text in texts.items() if offset not in gone}
    scope_no = engine.names.known(SCOPE, 1, HOME)
    told = sentences(engine)
    for layer, wanted in (("events", events), ("facts", told)):
        every = " ".join(sorted({word for text in wanted.values() for word in text.split()}))
        hits = Counter(words(engine, every, [layer])) if wanted else Counter()
        block = engine.vectors.block(1, scope_no, layer)
        raws = [] if block is None else block.raws
        assert {(layer, raw): 1 for raw in wanted} == hits
        assert sorted(wanted) == sorted(raws)
        for raw, text in wanted.items():
            at = block.rows[raw]
            assert (block.vectors[at] @ engine.embedder.embed([text])[0]) > 0.999


async def told(site, rig, *texts: str) -> dict[int, str]:
    """Say these things, and let the views follow."""
    said = {}
    for text in texts:
        receipt = await rig.post(site.engine, text, key=f"k{len(text)}{text[:50]}")
        said[receipt.wal_offset] = text
    await site.settle()
    return said


async def test_what_is_said_is_found(rig, tmp_path):
    """Once indexed, an event is found by words and by meaning, and the announcer is told."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        heard = []
        site.engine.indexer.on_indexed = heard.append
        said = await told(site, rig, "Anna moved to Berlin", "the espresso machine broke")
        before = words(site.engine, "berlin")
        await site.index_all()

        assert [] == before
        assert 1 == len(words(site.engine, "berlin"))
        assert 1 == len(meaning(site.engine, "espresso machine"))
        assert [2] == heard
        same_as_views(site.engine, said)


async def test_records_are_found_as_they_are_known_last(rig, tmp_path):
    """A revised record has one document, the latest; one that was dropped has none."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "city = Berlin", "pet = dog")
        await site.index_all()
        same_as_views(engine, said)
        known_from = engine.vectors.block(1, 1, "facts").recorded_us.tolist()
        said |= await told(site, rig, "city = Paris", "pet =", "city = Rome")
        await site.index_all()
        block = engine.vectors.block(1, 1, "facts")

        same_as_views(engine, said)
        assert [] == words(engine, "berlin paris", ["facts"])
        assert 1 == len(words(engine, "rome", ["facts"]))
        assert known_from[:1] == block.recorded_us.tolist()


@pytest.mark.parametrize("since_s, found", [(0.2, 1), (0.05, 0)])
async def test_found_before_it_has_caught_up(rig, tmp_path, since_s, found):
    """Who is a little behind commits now and then, a while after the last time."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        more = [f"note {number}" for number in range(limits.INDEX_ENTRIES_MAX + 8)]
        said = await told(site, rig, "Anna moved to Berlin", *more)
        engine.indexer._committed_s = site.clock.elapsed_s() - since_s
        engine.indexer.step()
        early = words(engine, "berlin")
        await site.index_all()

        assert found == len(early)
        assert 1 == len(words(engine, "berlin"))
        same_as_views(engine, said)


async def test_while_others_post_fewer_entries_are_taken_at_once(rig, tmp_path):
    """Their rows are one write, which holds the interpreter; the rest follows as ever."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, *(f"note {number}" for number in range(40)))
        engine.committer.way.mind_posts(is_busy=True)
        engine.indexer.step()
        beside = engine.vectors.watermark()
        engine.committer.way.mind_posts(is_busy=False)
        engine.indexer.step()

        assert beside == limits.WAITED_FOR_ENTRIES_MAX
        assert engine.vectors.watermark() == 40
        await site.index_all()
        same_as_views(engine, said)


async def test_who_is_far_behind_catches_up_first(rig, tmp_path):
    """Then larger commits are sooner done, however long ago the last one was."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        await told(site, rig, *(f"{number}" for number in range(10)))
        generation = engine.indexer._reader()
        generation.text_cursor = 10 - limits.INDEX_NEAR_ENTRIES - 1
        engine.indexer._committed_s = -3600.0

        assert not engine.indexer._is_due(generation)
        generation.text_cursor += 1
        assert engine.indexer._is_due(generation)


async def test_a_backlog_is_committed_seldom(rig, tmp_path):
    """While the views are far behind the log nobody waits for what they bring just now."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        await told(site, rig, *(f"{number}" for number in range(10)))
        generation = engine.indexer._reader()
        generation.text_cursor = engine.indexer._target()
        engine.log._durable += limits.INDEX_NEAR_ENTRIES + 1
        engine.indexer._committed_s = site.clock.elapsed_s() - limits.INDEX_FAR_COMMIT_S / 2

        assert not engine.indexer._is_due(generation)
        engine.indexer._committed_s -= limits.INDEX_FAR_COMMIT_S
        assert engine.indexer._is_due(generation)


async def test_a_record_that_reads_as_it_did_is_not_indexed_again(rig, tmp_path):
    """A revision that changes nothing of a document changes nothing in the indexes."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "city = Berlin", "pet = dog")
        await site.index_all()
        generation = engine.indexer._reader()
        said |= await told(site, rig, "city = Berlin ", "pet = cat")
        engine.indexer._advance(generation)

        # Two events; the fact that reads otherwise is removed and added, the other is left alone.
        assert generation.text.pending == 2 + 2
        await site.index_all()
        same_as_views(engine, said)
        said |= await told(site, rig, "city =", "city = Berlin  ")
        await site.index_all()
        same_as_views(engine, said)


async def test_a_cancelled_event_is_not_found(rig, tmp_path):
    """A cancellation takes an event out of both indexes, also one that was just said."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        said = await told(site, rig, "old secret", "open news")
        await site.index_all()
        rows = {row.header.offset: row.header.id for row in engine.log.read(1, 9)}
        first = (await rig.post(engine, "old secret", key="k10old secret")).event_id
        await cancel(engine, rig.ALICE, first, CancelRequest())
        late = await rig.post(engine, "new secret")
        await cancel(engine, rig.ALICE, late.event_id, CancelRequest())
        await site.settle()
        await site.index_all()

        assert [] == words(engine, "secret")
        assert [("events", rows[2])] == words(engine, "secret news")
        same_as_views(engine, {2: said[2]})


async def test_an_event_may_ask_for_no_vector(rig, tmp_path):
    """`embed: none` is found by its words only."""
    async with rig.Site(projection(), index=tmp_path) as site:
        engine = await site.open()
        made = msgspec.structs.replace(
            rig.envelope("a private thought"), directives=Directives(embed="none")
        )
        await capture(engine, rig.ALICE, CaptureRequest(envelope=made))
        await site.settle()
        await site.index_all()

        assert 1 == len(words(engine, "private"))
        assert [] == meaning(engine, "a private thought")


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("steps", range(6))
async def test_killed_after_any_step(rig, tmp_path, steps, power_cut):
    """Whatever the store and the files had kept, every document is there once in the end."""
    async with rig.Site(projection(), index=tmp_path, batch_entries=2) as site:
        said = {}
        for round_no in range(3):
            engine = await site.open()
            said |= await told(site, rig, f"city = c{round_no}", f"event number {round_no}")
            for _ in range(steps):
                await asyncio.to_thread(engine.indexer.step)
            await site.kill(power_cut=power_cut)
        engine = await site.open()
        await site.settle()
        await site.index_all()

        same_as_views(engine, said)
        assert engine.log.head() == engine.text.watermark() == engine.vectors.watermark()


async def test_a_lost_folder_is_built_anew(rig, tmp_path):
    """Index files can be thrown away: the next start builds them, and reads them meanwhile."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        said = await told(site, rig, "city = Berlin", "Anna moved")
        await site.index_all()
        await site.stop()
        shutil.rmtree(tmp_path / "text-1")
        engine = await site.open()
        was_building = engine.indexer.health().building is not None
        await site.index_all()

        assert was_building
        assert engine.indexer.health().building is None
        same_as_views(engine, said)
        assert 1 == len(list(tmp_path.iterdir()))
        assert 2 == sum(name.startswith(("blocks@", "places@")) for name in site.kv.families())


@pytest.mark.parametrize("damage", ["events/meta.json", "generation", "segment"])
async def test_a_damaged_folder_is_built_anew(rig, tmp_path, damage):
    """A folder that cannot be opened, or is another's, is dropped and built anew."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        said = await told(site, rig, "city = Berlin", "Anna moved")
        await site.index_all()
        await site.stop()
        folder = tmp_path / "text-1"
        if damage == "segment":
            for path in folder.glob("*/*.term"):
                path.write_bytes(b"")
        else:
            (folder / damage).write_text("damaged", encoding="ascii")
        engine = await site.open()
        await site.index_all()

        same_as_views(engine, said)


async def test_another_model_embeds_beside_the_old(rig, tmp_path):
    """Another embedder builds the next generation while the old one is read with its own."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        said = await told(site, rig, "city = Berlin", "Anna moved", "an espresso")
        await site.index_all()
        await site.stop()
        site.settings = Settings(embedder="wordllama")
        engine = await site.open()
        before = (engine.embedder.name, engine.vectors.dimensions, len(words(engine, "anna")))
        said |= await told(site, rig, "later news")
        await asyncio.to_thread(engine.indexer.step)
        meanwhile = (engine.embedder.name, len(words(engine, "later")))
        await site.index_all()

        assert ("hashing-256", 256, 1) == before
        assert ("hashing-256", 1) == meanwhile
        assert engine.embedder.name.startswith("wordllama")
        assert 1 == len(meaning(engine, "a cup of coffee", ["events"]))
        same_as_views(engine, said)
        assert len(said) + 1 == len(list(engine.kv.scan("embeddings")))


async def test_a_rebuild_embeds_nothing_again(rig, tmp_path):
    """Vectors are kept by content: a rebuild writes none, with the model as it was."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        await told(site, rig, "city = Berlin", "Anna moved")
        await site.index_all()
        kept = list(site.kv.scan("embeddings"))
        await site.stop()
        shutil.rmtree(tmp_path / "text-1")
        mark = b"\1" * 4
        batch = site.kv.batch()
        for key, value in kept:
            batch.put("embeddings", key, value[:-4] + mark)
        site.kv.write(batch)
        await site.open()
        await site.index_all()

        assert 3 == len(kept)
        assert {mark} == {value[-4:] for _, value in site.kv.scan("embeddings")}


async def test_other_views_are_indexed_anew(rig, tmp_path):
    """When the views are built by another version of a projector, so are the indexes."""
    async with rig.Site(projection(), index=tmp_path) as site:
        await site.open()
        said = await told(site, rig, "city = Berlin", "pet = dog")
        await site.index_all()
        await site.stop()
        engine = await site.open(projection(version=2))
        await site.settle()
        await site.index_all()

        assert 2 == len(words(engine, "became", ["facts"]))
        same_as_views(engine, said)


async def test_an_index_ahead_of_the_log_is_not_believed(rig, tmp_path):
    """Files of a longer log than there is are dropped: their entries are not ours."""
    async with rig.Site(projection(), index=tmp_path) as site, rig.Site(projection()) as other:
        await site.open()
        await told(site, rig, *(f"word{n}" for n in range(9)))
        await site.index_all()
        state = site.kv.get("meta", b"index")
        await site.stop()
        await other.open()
        said = await told(other, rig, "city = Berlin")
        await other.stop()
        batch = other.kv.batch()
        batch.put("meta", b"index", state)
        other.kv.write(batch)
        other.index = tmp_path
        engine = await other.open()
        await other.index_all()

        same_as_views(engine, said)


async def test_in_memory_without_a_folder(rig):
    """Without a data directory the text is kept in memory, and built anew after a crash."""
    async with rig.Site(projection()) as site:
        await site.open()
        said = await told(site, rig, "city = Berlin", "Anna moved")
        await site.index_all()
        same_as_views(site.engine, said)
        await site.kill(power_cut=True)
        engine = await site.open()
        await site.settle()
        await site.index_all()

        same_as_views(engine, said)


@pytest.mark.parametrize("wait", ["indexed", "consolidated"])
async def test_a_writer_reads_its_own_writes(rig, wait):
    """`wait=indexed` answers when the event can be found, and not before."""
    async with rig.Site(projection(), clock=Clock()) as site:
        engine = await site.open(run_daemon=True)
        for number in range(5):
            made = rig.envelope(f"unheard word{number} city{number} = x")
            receipt = await capture(engine, rig.ALICE, CaptureRequest(envelope=made, wait=wait))

            assert "indexed" in receipt.stages_completed
            assert 1 == len(words(engine, f"word{number}", ["events"]))
            assert 1 == len(meaning(engine, made.content.text, ["events"])[:1])
        events = rig.announcements(engine)
        said = rig.names_of(events, receipt.event_id)
        assert ["captured", "extracted", "indexed", "consolidated"] == said


class Endpoint:
    """A model behind HTTP that can be away."""

    def __init__(self) -> None:
        self.is_away = True
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                rows = [{"index": n, "embedding": [1.0, len(t)]} for n, t in enumerate(asked)]
                answer = json.dumps({"data": rows}).encode()
                self.send_response(503 if endpoint.is_away else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def endpoint():
    made = Endpoint()
    yield made
    made.close()


async def test_a_model_that_is_away_holds_up_its_vectors_only(rig, tmp_path, endpoint):
    """Words are found while an endpoint does not answer; vectors follow when it does."""
    async with rig.Site(projection(), index=tmp_path, clock=Clock()) as site:
        site.settings = Settings(embedder="http", embed_url=endpoint.url, embed_model="m")
        engine = await site.open()
        await told(site, rig, "Anna moved to Berlin", "city = Rome")
        await site.index_all()
        found = words(engine, "berlin rome")
        health = engine.indexer.health()
        endpoint.is_away = False
        while engine.indexer.health().watermark < engine.log.head():
            await site.index_all()
            await asyncio.sleep(0.02)

        assert 3 == len(found)
        assert 0 == health.watermark
        assert "503" in health.trouble
        assert 2 == engine.vectors.dimensions
        assert 2 == len(engine.vectors.block(1, 1, "events").raws)
        assert 1 == len(engine.vectors.block(1, 1, "facts").raws)
        assert engine.indexer.health().trouble is None
