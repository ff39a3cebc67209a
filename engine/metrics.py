"""What do the counters say?  Read from the organs when asked, so that counting costs nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from engine import policy
from schemas.caller import Caller

if TYPE_CHECKING:
    from engine.engine import Engine

RequestCounts = dict[tuple[str, str, int], list[float]]
"""(method, path template, status) -> [requests, seconds]."""


class _Collector:
    """The engine seen by Prometheus."""

    def __init__(self, engine: "Engine", requests: RequestCounts) -> None:
        self._engine = engine
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        """Every metric, now."""
        yield from self._log()
        yield from self._projection()
        yield from self._indexes()
        yield from self._http()

    def _log(self) -> Iterator[Metric]:
        engine = self._engine
        yield _gauge("strata_log_head_offset", "Last durable offset.", engine.log.head())
        yield _counter(
            "strata_log_entries", "Entries appended.", engine.committer.committed_entries
        )
        ticks = engine.keeper.ticks.written
        yield _counter("strata_log_ticks", "Entries that tell the log of time passed.", ticks)
        yield _counter("strata_log_commits", "Group commits.", engine.log.commit_count)
        queued = engine.committer.queued_entries
        yield _gauge("strata_commit_queue_entries", "Entries waiting for a commit.", queued)
        lost = engine.trail.lost
        yield _counter("strata_audit_rows_lost", "Rows of reads no commit could take.", lost)
        failed = float(engine.log.failure is not None)
        yield _gauge("strata_log_failed", "1 when the log refuses writes.", failed)
        for name, value in engine.kv.stats().items():
            yield _gauge(f"strata_store_{name}", f"Store: {name}.", value)
        if engine.keeper.disk is not None:
            free = engine.keeper.disk.free_bytes()
            yield _gauge("strata_disk_free_bytes", "Free space.", free)

    def _projection(self) -> Iterator[Metric]:
        engine = self._engine
        lag = GaugeMetricFamily(
            "strata_projector_lag_entries", "Entries not yet folded.", labels=["projector"]
        )
        head = engine.log.head()
        for unit in (engine.inline, engine.staged):
            for projector in unit.projectors:
                lag.add_metric([projector.name], max(0, head - unit.cursor))
        yield lag
        done = engine.daemon.processed_entries
        yield from self._work()
        yield _counter("strata_projected_entries", "Entries folded by the daemon.", done)
        streams = engine.lifecycle.subscriber_count
        yield _gauge("strata_lifecycle_subscribers", "Open lifecycle streams.", streams)
        pulse = engine.keeper.loop_lag_ms / 1000
        yield _gauge("strata_loop_lag_seconds", "Delay of the event loop.", pulse)
        if engine.shared_rates is not None:
            meaning = "1 while Redis keeps the rate limits, 0 while each server keeps its share."
            yield _gauge("strata_rates_shared", meaning, float(engine.shared_rates.is_shared))

    def _work(self) -> Iterator[Metric]:
        engine, board = self._engine, self._engine.board
        yield _counter("strata_job_failures", "Jobs that a bug ended.", engine.jobs.failures)
        yield _gauge("strata_jobs_running", "Jobs at hand in this process.", engine.jobs.running)
        oldest = engine.jobs.oldest_s(engine.clock.now_us())
        yield _gauge("strata_jobs_oldest_seconds", "Age of the oldest job at hand.", oldest)
        depth = GaugeMetricFamily(
            "strata_tasks_waiting", "Tasks that no worker has yet.", labels=["queue"]
        )
        for queue, count in sorted(({"work": 0} | board.waiting).items()):
            depth.add_metric([queue], count)
        yield depth
        yield _gauge("strata_tasks_taken", "Tasks that workers have.", board.taken)
        yield _gauge("strata_tasks_oldest_seconds", "Age of the oldest task.", board.oldest_s)
        done = CounterMetricFamily(
            "strata_tasks_done", "Tasks done, by workers or here.", labels=["kind", "where"]
        )
        for (kind, where), count in sorted(board.done.items()):
            done.add_metric([kind, where], count)
        yield done
        yield _counter("strata_tasks_retries", "Tasks tried once more.", board.retries)
        yield _counter("strata_tasks_dead", "Tasks given up.", board.dead)
        yield _counter("strata_tasks_refused", "Answers and offers that came late.", board.refused)
        seen = GaugeMetricFamily(
            "strata_worker_seen_seconds", "Since a worker was last heard.", labels=["worker"]
        )
        workers = board.health().workers
        for worker in workers:
            seen.add_metric([worker.name], worker.seen_s)
        yield seen
        yield _gauge("strata_workers", "Workers that beat.", len(workers))
        ran = CounterMetricFamily("strata_chore_runs", "Recurring work done.", labels=["chore"])
        for chore in engine.keeper.schedule.chores:
            ran.add_metric([chore.name], chore.ran)
        yield ran

    def _indexes(self) -> Iterator[Metric]:
        index = self._engine.indexer.health()
        yield _gauge("strata_index_lag_entries", "Entries not yet indexed.", index.lag_entries)
        yield _gauge("strata_index_documents", "Documents indexed.", index.documents)
        yield _gauge("strata_index_generation", "Generation that is read.", index.generation)
        yield _gauge("strata_index_segments", "Segments of the text index.", index.segments)
        yield _gauge("strata_index_blocks_bytes", "Vectors in memory.", index.blocks_bytes)
        building = float(index.building is not None)
        yield _gauge("strata_index_building", "1 while a generation is built.", building)

    def _http(self) -> Iterator[Metric]:
        labels = ["method", "path", "status"]
        count = CounterMetricFamily("strata_http_requests", "Requests answered.", labels=labels)
        spent = CounterMetricFamily("strata_http_seconds", "Time spent answering.", labels=labels)
        for (method, path, status), (requests, seconds) in sorted(self._requests.items()):
            count.add_metric([method, path, str(status)], requests)
            spent.add_metric([method, path, str(status)], seconds)
        yield count
        yield spent


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(name, meaning, value=value)


def exposition(engine: "Engine", caller: Caller, requests: RequestCounts) -> bytes:
    """The metrics in Prometheus' text format."""
    policy.require(engine, caller, "admin.health")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(engine, requests))
    return generate_latest(registry)
