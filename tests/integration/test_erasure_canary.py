"""Is what was erased in no file, no row, no index, no export and no answer?  (I8)

A phrase is put wherever a caller can put words; after the erasure it is looked for everywhere, also
after a restart, a rebuild and the restore of a later backup, and in backups from before. Each step
that makes it so is left out once: then it is found.
"""

import asyncio
import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from engine.blobs import upload_blob
from engine.capture import capture
from engine.engine import open_engine, open_stores
from engine.erase import PHASES, cancel_erasure, get_erasure, start_erasure
from engine.exports import get_export, start_export
from engine.intake import UploadRequest
from engine.jobs import find_job
from engine.layers.beliefs import BeliefsRequest, list_beliefs
from engine.layers.facts import FactsRequest, list_facts
from engine.layers.understanding import ConceptsRequest, list_concepts
from engine.proof import look_through, prove
from engine.read import EventsRequest, get_event, list_events
from engine.rows import CaptureRequest
from engine.settings import Settings
from engine.state.keyring import Keyring
from engine.state.kv import StoreError
from engine.state.rocks import RocksKV
from engine.upkeep import RestoreRequest, backup, inspected, restore, verify
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Annotation
from schemas.envelope import Envelope
from schemas.erasures import ErasureRequest, ErasureSelector
from schemas.errors import PolicyDenied, ResourceDeleted
from schemas.transfer import ExportRequest

CANARY = "zqxcanaryzqx"
ALICE = Caller(actor="user:alice", tenant="acme")
SCOPE, OTHER = "org:acme/user:one", "org:acme/user:two"
OBSERVED = datetime(2026, 5, 1, tzinfo=UTC)


def settings_for(folder):
    return Settings(data=folder, embedder="hashing", disk_low_water_mb=1, ballast_mb=1)


def on_a_loop(test):
    """Run a test on an event loop of its own."""

    @functools.wraps(test)
    def run(*given, **named):
        asyncio.run(test(*given, **named))

    return run


async def until(is_so, pause_s=0.02):
    """Wait until something is so."""
    async with asyncio.timeout(240):
        while not is_so():  # noqa: ASYNC110 - nothing here tells when
            await asyncio.sleep(pause_s)


async def parts(content):
    yield content


def said(scope, key, content, **more):
    body = {
        "scope": scope,
        "modality": "conversation",
        "content": content,
        "context": {"observed_at": OBSERVED, **more.pop("context", {})},
        "idempotency_key": key,
        **more,
    }
    return CaptureRequest(envelope=msgspec.convert(body, Envelope))


async def tell(engine):
    """The phrase in text, label, JSON, actor, blob and key; and a scope that stays."""
    upload = UploadRequest(parts(b"bytes of " + CANARY.encode()), "text/plain", f"{CANARY}.txt")
    blob = await upload_blob(engine, ALICE, upload)
    made = [
        said(SCOPE, CANARY, {"kind": "text", "text": f"My dog is called {CANARY}."}),
        said(SCOPE, "b", {"kind": "text", "text": "hello"}, context={"labels": [CANARY]}),
        said(SCOPE, "c", {"kind": "json", "data": {"name": CANARY, "place": "Paris"}}),
        said(
            SCOPE,
            "d",
            {"kind": "text", "text": "I live in Rome."},
            observed_actor={"id": f"user:{CANARY}"},
        ),
        said(
            SCOPE,
            "e",
            {"kind": "blob_ref", "blob_id": blob.blob_id},
        ),
        said(OTHER, "f", {"kind": "text", "text": "I live in Oslo."}),
    ]
    receipts = [await capture(engine, ALICE, one) for one in made]
    await engine.lifecycle.wait("consolidated", receipts[-1].wal_offset, 30)
    return [receipt.event_id for receipt in receipts]


async def export(engine):
    """A file that holds it all."""
    asked = msgspec.convert(
        {"scope": SCOPE, "format": "jsonl", "layers": ["events"]}, ExportRequest
    )
    begun = await start_export(engine, ALICE, asked)
    await until(lambda: get_export(engine, ALICE, begun.export_id).status != "running")


async def erased(engine):
    """Erase the scope; the id of the erasure when it is over."""
    asked = ErasureRequest(scope=SCOPE, audit_note="DSR 7")
    begun = (await start_erasure(engine, ALICE, asked)).receipt
    await until(lambda: find_job(engine, ALICE, begun.erasure_id).is_over)
    return begun.erasure_id


async def lived(folder):
    """A data directory in which the phrase was told, exported and erased; (erasure, events)."""
    async with open_engine(settings_for(folder)) as engine:
        engine.indexer.retired_s = 0.05
        events = await tell(engine)
        await export(engine)
        erasure = await erased(engine)
        state = get_erasure(engine, ALICE, erasure)
        assert "completed" == state.status, state
        assert {"deleted_events": 5, "redacted_events": 0}.items() <= state.summary.items()
        assert state.audit_id is not None
        for event_id in events[:5]:
            with pytest.raises(ResourceDeleted):
                get_event(engine, ALICE, event_id)
        left = list_events(engine, ALICE, EventsRequest(scope=OTHER)).value.items
        assert [events[5]] == [event.id for event in left]
        again = await capture(engine, ALICE, said(SCOPE, "b", {"kind": "text", "text": "anew"}))
        assert again.event_id not in events
    return erasure, events


def found_in(folder):
    """Where the phrase is."""
    with inspected(settings_for(folder)) as engine:
        *places, _ = look_through(engine, folder, [CANARY.encode()])
        return places


@on_a_loop
async def test_an_erased_phrase_is_nowhere(tmp_path):
    """In no file, row, payload or index; not after a restart and a rebuild either; and proven."""
    folder = tmp_path / "data"
    erasure, events = await lived(folder)
    at_once = found_in(folder)
    async with open_engine(settings_for(folder)) as engine:
        engine.daemon.request_rebuild()
        await until(lambda: not engine.daemon.is_rebuilding)
        left = list_events(engine, ALICE, EventsRequest(scope=OTHER)).value.items
    proof = prove(settings_for(folder), erasure, [CANARY])

    assert [] == at_once
    assert [] == found_in(folder)
    assert [events[5]] == [event.id for event in left]
    assert proof is not None
    assert proof.holds, proof
    assert (5, "completed") == (proof.events, proof.status)
    assert min(proof.files, proof.rows, proof.payloads) > 0
    assert prove(settings_for(folder), "erasure_none", []) is None
    report = verify(settings_for(folder), lambda *_: None, replay=True, scratch=tmp_path)
    assert report.is_good
    assert report.log.erased >= 5


# Backups


def silent(*_):
    """Progress nobody watches."""


async def told(folder):
    """A data directory where the phrase was told; its events."""
    async with open_engine(settings_for(folder)) as engine:
        return await tell(engine)


async def erased_in(folder):
    """Erase the scope in a data directory that is there; the erasure."""
    async with open_engine(settings_for(folder)) as engine:
        engine.indexer.retired_s = 0.05
        erasure = await erased(engine)
        assert "completed" == get_erasure(engine, ALICE, erasure).status
        return erasure


def brought_back(source, target, **how):
    """A backup restored to a new place; its settings."""
    settings = settings_for(target)
    restore(RestoreRequest(source=source, **how), settings, silent)
    return settings


def rows_with(path):
    """Rows of a database that have the phrase in the clear."""
    kv = RocksKV.open(path, [], read_only=True)
    try:
        return [
            (family, key)
            for family in kv.families()
            for key, value in kv.scan(family)
            if CANARY.encode() in key + value
        ]
    finally:
        kv.close()


@on_a_loop
async def test_it_is_in_no_backup_from_after(tmp_path):
    """A later backup, brought back, has everything else and nothing of it, before and after use."""
    erasure, events = await lived(tmp_path / "data")
    backup(settings_for(tmp_path / "data"), tmp_path / "later", silent)
    there = brought_back(tmp_path / "later", tmp_path / "there")
    at_once = found_in(there.data)
    async with open_engine(there) as engine:
        engine.daemon.request_rebuild()
        await until(lambda: not engine.daemon.is_rebuilding)
        left = list_events(engine, ALICE, EventsRequest(scope=OTHER)).value.items

    assert [] == at_once
    assert [] == found_in(there.data)
    assert [events[5]] == [event.id for event in left]
    assert prove(there, erasure, [CANARY]).holds
    assert verify(there, silent, replay=True, scratch=tmp_path).is_good


@on_a_loop
async def test_it_cannot_be_read_from_a_backup_from_before(tmp_path):
    """Nothing of it is in the clear there, and no key that is left opens it (ADR 0033)."""
    folder, older = tmp_path / "data", tmp_path / "older"
    events = await told(folder)
    backup(settings_for(folder), older, silent)
    await erased_in(folder)
    backup(settings_for(folder), tmp_path / "later", silent)

    assert [] == rows_with(older / "store")
    for keys in (tmp_path / "keys", folder / "keys"):
        with pytest.raises(StoreError, match="wrapping key of tenant 1 was changed by an erasure"):
            brought_back(older, tmp_path / "refused", keys=keys)
    assert not (tmp_path / "refused").exists()

    there = brought_back(older, tmp_path / "there", vault=tmp_path / "later")
    async with open_engine(there) as engine:
        left = list_events(engine, ALICE, EventsRequest(scope=OTHER)).value.items
        gone = list_events(engine, ALICE, EventsRequest(scope=SCOPE)).value.items
        anew = await capture(engine, ALICE, said(SCOPE, "g", {"kind": "text", "text": "anew"}))
        await engine.lifecycle.wait("consolidated", anew.wal_offset, 30)

    assert [events[5]] == [event.id for event in left]
    assert [] == gone
    assert [] == found_in(there.data)
    assert verify(there, silent, replay=True, scratch=tmp_path).is_good


class Hoarder(Keyring):
    """A ring that keeps every key it ever had."""

    def destroy_before(self, tenant_no, generation):
        """Not now."""


@on_a_loop
async def test_without_the_change_of_keys_a_backup_from_before_gives_it_back(tmp_path):
    """The key that wraps the tenant's keys is what holds older backups shut."""
    settings, older = settings_for(tmp_path / "data"), tmp_path / "older"
    await told(settings.data)
    backup(settings, older, silent)
    stores = open_stores(settings)
    kept = dataclasses.replace(stores, keyring=Hoarder(settings.data / "keys" / "tenants"))
    async with open_engine(settings, stores=kept) as engine:
        engine.indexer.retired_s = 0.05
        await erased(engine)
    there = brought_back(older, tmp_path / "there", keys=settings.data / "keys")

    assert [] == found_in(settings.data)
    assert [] != found_in(there.data)


# What is left out


class Lazy:
    """A store that never rewrites its files."""

    def __init__(self, kv):
        self._kv = kv

    def __getattr__(self, name):
        return getattr(self._kv, name)

    def compact(self, *_):
        """Not now."""


@on_a_loop
async def test_without_compaction_it_is_still_in_a_file(tmp_path):
    """Rows that were deleted are in no view, and in the files all the same."""
    settings = settings_for(tmp_path / "data")
    stores = open_stores(settings)
    lazy = dataclasses.replace(stores, kv=Lazy(stores.kv))
    async with open_engine(settings, stores=lazy) as engine:
        engine.indexer.retired_s = 0.05
        await tell(engine)
        stores.kv.compact("meta")  # which flushes every family into files
        erasure = await erased(engine)

    assert [] != found_in(settings.data)
    assert not prove(settings, erasure, [CANARY]).holds


@on_a_loop
async def test_without_the_indexes_it_is_not_over(tmp_path):
    """An erasure does not end while an index still has what was erased."""
    settings = settings_for(tmp_path / "data")
    async with open_engine(settings) as engine:
        await tell(engine)
        await asyncio.to_thread(engine.indexer.stop)
        begun = (await start_erasure(engine, ALICE, ErasureRequest(scope=SCOPE))).receipt
        await until(lambda: find_job(engine, ALICE, begun.erasure_id).phase == "cleanup")
        await until(lambda: not engine.daemon.is_rebuilding)
        await asyncio.sleep(0.2)
        job = find_job(engine, ALICE, begun.erasure_id)

    assert ("running", "cleanup") == (job.status, job.phase)
    assert [place for place in found_in(settings.data) if place.startswith("text index")]


@on_a_loop
async def dies(folder, phase):
    """A process of its own: it begins an erasure, says which, and kills itself in a phase."""
    async with open_engine(settings_for(Path(folder))) as engine:
        engine.indexer.retired_s = 0.05
        await tell(engine)
        begun = (await start_erasure(engine, ALICE, ErasureRequest(scope=SCOPE))).receipt
        print(begun.erasure_id, flush=True)
        await until(lambda: find_job(engine, ALICE, begun.erasure_id).phase == phase, pause_s=0)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("phase", PHASES)
@on_a_loop
async def test_killed_at_a_boundary_of_phases(tmp_path, phase):
    """By kill -9; run on after a restart, it ends in the same state, with one audit row."""
    folder = tmp_path / "data"
    place = f"tests.integration.{Path(__file__).stem}"
    code = f"from {place} import dies; dies({str(folder)!r}, {phase!r})"
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    erasure_id = killed.stdout.strip()
    async with open_engine(settings_for(folder)) as engine:
        engine.indexer.retired_s = 0.05
        await until(lambda: find_job(engine, ALICE, erasure_id).is_over)
        state = get_erasure(engine, ALICE, erasure_id)
        rows = gdpr_rows(engine)

    assert "completed" == state.status, state
    assert 5 == state.summary["deleted_events"]
    assert 1 == len(rows)
    assert [] == found_in(folder)


class Summary:
    """A proposal of what a model wrote of a concept."""

    entry_count = 1
    byte_count = 1024

    def __init__(self, event_id, concept_id):
        output = {"concept_id": concept_id, "summary": f"Has a dog called {CANARY}."}
        self._body = Annotation(about=event_id, model="m", version="1", output=output, scope=SCOPE)

    def decide(self, desk):
        """Nothing can stand in the way."""
        return desk.add(ALICE, self._body)


@on_a_loop
async def test_what_a_model_wrote_of_a_concept_goes_with_any_event_behind_it(tmp_path):
    """The concept stays, with a summary of what is left; the model's words are nowhere."""
    facts = [("lives_in", "Paris"), ("works_at", "Acme"), ("likes", "tea"), ("owns", "a bike")]
    async with open_engine(settings_for(tmp_path / "data")) as engine:
        engine.indexer.retired_s = 0.05
        events = []
        for predicate, value in facts:
            triple = {"subject": "user:ada", "predicate": predicate, "object": value}
            content = {"kind": "triple", "triple": triple}
            events.append(await capture(engine, ALICE, said(SCOPE, predicate, content)))
        await engine.lifecycle.wait("compressed", events[-1].wal_offset, 30)
        await until(lambda: concepts(engine))
        (concept,) = concepts(engine)
        entry = await engine.committer.submit(Summary(events[-1].event_id, concept.id))
        await until(lambda: CANARY in concepts(engine)[0].summary)
        asked = ErasureRequest(
            scope=SCOPE, selector=ErasureSelector(memory_ids=[events[0].event_id])
        )
        begun = (await start_erasure(engine, ALICE, asked)).receipt
        await until(lambda: find_job(engine, ALICE, begun.erasure_id).is_over)
        state = get_erasure(engine, ALICE, begun.erasure_id)
        (after,) = concepts(engine)

    assert ("completed", 1) == (state.status, state.summary["deleted_events"])
    assert CANARY not in after.summary
    assert [] == found_in(tmp_path / "data")
    report = verify(settings_for(tmp_path / "data"), silent, replay=True, scratch=tmp_path)
    assert report.is_good
    assert 2 == report.log.erased
    assert entry.offset > 0


def concepts(engine):
    """The concepts of the scope."""
    return list_concepts(engine, ALICE, ConceptsRequest(scope=SCOPE)).value.items


class Gated:
    """A store whose first rewriting of payloads waits until it is let go on."""

    def __init__(self, kv):
        self._kv = kv
        self.reached, self.open = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._kv, name)

    def compact(self, family, *given):
        """Rewrite; payloads wait."""
        if family == "payload":
            self.reached.set()
            assert self.open.wait(60)
        self._kv.compact(family, *given)


@pytest.mark.parametrize("is_killed", [False, True])
@on_a_loop
async def test_cancelled_after_a_part(tmp_path, is_killed):
    """What was named is out of every file, and told in one audit row; the rest stays."""
    settings = settings_for(tmp_path / "data")
    stores = open_stores(settings)
    gate = Gated(stores.kv)
    many = limits.FORGET_STEP + 2
    async with open_engine(settings, stores=dataclasses.replace(stores, kv=gate)) as engine:
        engine.indexer.retired_s = 0.05
        first = said(SCOPE, "first", {"kind": "text", "text": f"My dog is {CANARY}."})
        asked = [first] + [
            said(SCOPE, f"k{at}", {"kind": "text", "text": f"note {at}"}) for at in range(many - 1)
        ]
        receipts = await asyncio.gather(*(capture(engine, ALICE, one) for one in asked))
        await engine.lifecycle.wait("consolidated", many, 60)
        begun = (await start_erasure(engine, ALICE, ErasureRequest(scope=SCOPE))).receipt
        await until(gate.reached.is_set)
        stopped = await cancel_erasure(engine, ALICE, begun.erasure_id)
        if is_killed:
            await engine.jobs.stop()
        gate.open.set()
        if not is_killed:
            await until(lambda: find_job(engine, ALICE, begun.erasure_id).is_over)
    async with open_engine(settings) as engine:
        engine.indexer.retired_s = 0.05
        await until(lambda: find_job(engine, ALICE, begun.erasure_id).is_over)
        state = get_erasure(engine, ALICE, begun.erasure_id)
        rows = gdpr_rows(engine)
        left = list_events(engine, ALICE, EventsRequest(scope=SCOPE)).value.items
    proof = prove(settings, begun.erasure_id, [CANARY])

    assert stopped.cancellation_accepted
    assert ("cancelled", limits.FORGET_STEP) == (state.status, state.progress["deleted_events"])
    last = sorted(receipts, key=lambda receipt: receipt.wal_offset)[-2:]
    assert {receipt.event_id for receipt in last} == {event.id for event in left}
    assert 1 == len(rows)
    assert state.audit_id is not None
    assert proof.holds, proof
    assert verify(settings, silent, replay=True, scratch=tmp_path).is_good


def gdpr_rows(engine):
    """The audit rows of erasures."""
    rows = engine.trail.walk(engine.tenant_no(ALICE) or 0, 0, 1 << 40)
    return [row for row in rows if row.note is not None and row.note.gdpr]


@on_a_loop
async def test_what_another_scope_made_of_it_outlives_it(tmp_path):
    """A fact consolidated elsewhere stays without its evidence, and is believed less."""
    triple = {"subject": "user:ada", "predicate": "lives_in", "object": "Paris"}
    async with open_engine(settings_for(tmp_path / "data")) as engine:
        engine.indexer.retired_s = 0.05
        told = said(
            SCOPE,
            "a",
            {"kind": "triple", "triple": triple},
            directives={"consolidate_into": OTHER},
        )
        receipt = await capture(engine, ALICE, told)
        await engine.lifecycle.wait("consolidated", receipt.wal_offset, 30)
        (before,) = list_beliefs(engine, ALICE, BeliefsRequest(scope=OTHER)).value.items
        narrow = msgspec.structs.replace(ALICE, capabilities=("forget.gdpr",))
        with pytest.raises(PolicyDenied) as denied:
            await start_erasure(engine, narrow, ErasureRequest(scope=SCOPE))
        erasure = await erased(engine)
        state = get_erasure(engine, ALICE, erasure)
        facts = list_facts(engine, ALICE, FactsRequest(scope=OTHER)).value.items
        beliefs = list_beliefs(engine, ALICE, BeliefsRequest(scope=OTHER)).value.items

    assert "completed" == state.status, state
    assert "forget.gdpr.cross_workspace" in denied.value.details.values()
    assert {"redacted_events": 1, "demoted_facts": 1}.items() <= state.summary.items()
    assert 1 == state.summary["demoted_beliefs"] == state.progress["demoted_beliefs"]
    assert ["supporting_evidence_redacted"] == [fact.partial_reason for fact in facts]
    assert all(belief.confidence < before.confidence for belief in beliefs)
    report = verify(settings_for(tmp_path / "data"), lambda *_: None, replay=True, scratch=tmp_path)
    assert report.is_good
