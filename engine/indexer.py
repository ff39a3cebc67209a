"""Who carries the log to the indexes?

A thread follows the staged views and keeps the text and the vector index of one generation up with
them, each with a checkpoint of its own; it can be killed anywhere. A generation made by another
model, from other views or in another form is built anew from the log while the old one is read.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from engine.follow import Follower, Sources, Work
from engine.state.aside import push_nobody
from engine.state.generations import Generation, Generations, Made
from engine.state.index import Embedder, EmbedderUnavailable, TextIndex, VectorIndex
from engine.state.kv import StoreError
from engine.state.text_index import TextIndexFailed
from schemas import limits
from schemas.health import IndexHealth

_IDLE_S: Final = 0.5
_RETRY_S: Final = 0.2
_TEXT_ATTEMPTS: Final = 3


class Served(NamedTuple):
    """What readers ask, all of one generation."""

    text: TextIndex
    vectors: VectorIndex
    embedder: Embedder


class Said(NamedTuple):
    """What somebody said of a run of entries (`Described`, as it travels)."""

    first: int
    last: int
    message: bytes


class Handed:
    """What was said of runs of entries that the indexes have not come to; from any thread.

    It is a help and no more: what is not here is worked out from the log and the views.
    """

    def __init__(self) -> None:
        self._said: deque[Said] = deque()
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, first: int, last: int, message: bytes) -> None:
        """Entries from the one to the other mean this."""
        with self._lock:
            if self._bytes + len(message) <= limits.DESCRIBED_BYTES_MAX:
                self._said.append(Said(first, last, message))
                self._bytes += len(message)

    def after(self, offset: int) -> Said | None:
        """What was said of the entries that follow an offset; what lies before it goes."""
        with self._lock:
            while self._said and self._said[0].first <= offset:
                self._bytes -= len(self._said.popleft().message)
            found = self._said[0] if self._said else None
            return found if found is not None and found.first == offset + 1 else None

    def clear(self) -> None:
        """Words may have been erased: nothing is kept of them."""
        with self._lock:
            self._said.clear()
            self._bytes = 0


class Trouble:
    """Something that does not work just now and is tried again, a little later each time."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.attempts = 0
        self.until_s = 0.0

    def met(self, error: Exception, now_s: float) -> None:
        """It did not work again."""
        self.reason = str(error)
        self.attempts += 1
        self.until_s = now_s + min(_RETRY_S * 2**self.attempts, limits.INDEX_RETRY_S_MAX)


class Indexer:
    """The runner of the indexes."""

    def __init__(
        self, sources: Sources, generations: Generations, load: Callable[[], Embedder], kind: str
    ) -> None:
        self._log = sources.log
        self._staged = sources.staged
        self._clock = sources.clock
        self._follower = Follower(sources)
        self._generations = generations
        self._load = load
        self._kind = kind
        self._embedder: Embedder | None = None
        self.on_indexed: Callable[[int], None] = _nobody
        self.failure: str | None = None
        self._text, self._vectors = Trouble(), Trouble()
        self._served: Generation | None = None
        self._building: Generation | None = None
        self._retired: deque[tuple[float, Generation]] = deque()
        self.retired_s = limits.INDEX_RETIRED_S
        self._records: Iterator[Work] | None = None
        self._page: Work | None = None
        self._records_until = 0
        self._committed_s = self._due_s = self._commit_s = 0.0
        self._told = 0
        self.described = Handed()
        """What those who folded have said of entries, which need not be worked out again."""
        sources.log.on_erased.append(self.described.clear)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._running: threading.Thread | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def prepare(self, load_other: Callable[[str], Embedder | None]) -> None:
        """Open what there is and decide what to build; `load_other` brings the model of before."""
        embedder = self._embedder = self._load()
        made = self._generations.state.made
        if made is not None:
            is_same = made.embedder == embedder.name
            if is_same and embedder.dimensions == 0:
                embedder.dimensions = made.dimensions  # an endpoint that has not answered yet
            past = embedder if is_same else load_other(made.kind)
            if past is not None and past.name == made.embedder:
                self._served = self._usable(self._generations.open_served(past))
        found = self._usable(self._generations.open_building(embedder))
        if found is not None and found.made != self._wanted(embedder):
            found.text.close()
            found = None
        self._building = found
        if self._is_outdated(embedder):
            self._begin(embedder)
        self._generations.drop_leftovers()
        while self._building is not None and self._target() == 0:
            self._build()

    def start(self) -> None:
        """Run in a thread of its own until `stop`."""
        self._tell()
        self._running = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._running.start()

    def wake(self) -> None:
        """The views have moved."""
        self._wake.set()

    def stop(self) -> None:
        """Finish what is at hand and let go of the files; what was not committed is done again."""
        self._stopping.set()
        self._wake.set()
        if self._running is not None:
            self._running.join()
        _close(self._served)
        _close(self._building)
        for _, generation in self._retired:
            _close(generation)

    def _run(self) -> None:
        push_nobody()
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                moved = self._turn()
            except StoreError as error:
                # The store is broken, not the index: stop here, visibly, and let reads go on.
                self.failure = f"indexing stopped: {error}"
                return
            except Exception as error:  # the guard of the indexer: health goes red
                self.failure = f"indexing stopped: {error!r}"
                raise
            if not moved:
                self._wake.wait(self._pause_s())

    def _turn(self) -> bool:
        """One step of what is due: commits are a pause apart, building fills the pauses."""
        now = self._clock.elapsed_s()
        if now < self._text.until_s:
            return False
        if now >= self._due_s:
            return self.step()
        return self._guarded(self._build, self._building)

    def _pause_s(self) -> float:
        now = self._clock.elapsed_s()
        if now < self._text.until_s:
            return self._text.until_s - now
        due = self._due_s - now
        return due if due > 0 and self._reader().watermark() < self._target() else _IDLE_S

    def step(self) -> bool:
        """Index some entries, commit, build or swap; False when there is nothing to do."""
        return self._guarded(self._serve, self._served) or self._guarded(
            self._build, self._building
        )

    def _guarded(self, work: Callable[[], bool], generation: Generation | None) -> bool:
        """Do a piece of work; files that fail are tried again, a little later each time."""
        try:
            return work()
        except TextIndexFailed as error:
            self._text.met(error, self._clock.elapsed_s())
            if generation is not None:
                self._mend(generation)
            return False

    # ── readers ──────────────────────────────────────────────────────────────────────────────

    def served(self) -> Served:
        """What readers ask now."""
        generation = self._reader()
        return Served(generation.text, generation.vectors, generation.embedder)

    def health(self) -> IndexHealth:
        """How the indexes are."""
        generation, building = self._reader(), self._building
        watermark = generation.watermark()
        return IndexHealth(
            generation=generation.number,
            embedder=generation.embedder.name,
            documents=generation.vectors.progress.documents,
            watermark=watermark,
            lag_entries=max(0, self._log.head() - watermark),
            building=None if building is None else building.watermark(),
            segments=generation.text.segments(),
            blocks_bytes=generation.vectors.memory_bytes(),
            unreadable=self._follower.unreadable,
            trouble=self.failure or self._text.reason or self._vectors.reason,
        )

    def is_clear(self, views: int) -> bool:
        """Whether all that is kept was made from the views of a generation, or of a later one."""
        served = self._served
        is_new = served is not None and served.made.views >= views
        return is_new and self._building is None and not self._retired

    @property
    def is_degraded(self) -> bool:
        """Whether something is tried again, or readers wait for a generation to be built."""
        troubled = self._text.reason is not None or self._vectors.reason is not None
        return troubled or self._building is not None

    def _reader(self) -> Generation:
        """The generation that is read; when none is finished, the one that is being built."""
        generation = self._served or self._building
        assert generation is not None, "prepare comes before the first reader"
        return generation

    # ── following ────────────────────────────────────────────────────────────────────────────

    def _target(self) -> int:
        """How far the views are: what they have not folded is not indexed either."""
        return self._staged.state.checkpoint

    def _serve(self) -> bool:
        """Bring the generation that is read a step nearer to the views."""
        if self._log.failure is not None:
            raise StoreError(f"the log has failed: {self._log.failure}")
        assert self._embedder is not None, "prepare comes first"
        self._retire()
        if self._is_outdated(self._embedder):
            self._begin(self._embedder)
        generation = self._served
        if generation is None or generation.is_broken:
            return False
        moved = self._advance(generation)
        if generation.has_news() and self._is_due(generation):
            self._commit(generation)
            moved = True
        self._tell()
        return moved

    def _is_due(self, generation: Generation) -> bool:
        """Whether to commit: when it has caught up, has much, or somebody may wait for it."""
        behind = self._target() - generation.text_cursor
        if generation.text.pending >= limits.INDEX_PENDING_MAX:
            return True
        passed_s = self._clock.elapsed_s() - self._committed_s
        if self._log.head() - generation.text_cursor > limits.INDEX_NEAR_ENTRIES:
            return behind <= 0 and passed_s >= limits.INDEX_FAR_COMMIT_S
        apart = max(limits.INDEX_COMMIT_S, limits.INDEX_COMMIT_TIMES * self._commit_s)
        return behind <= 0 or passed_s >= apart

    def _advance(self, generation: Generation) -> bool:
        """Index the next entries, by words and by meaning; either may be ahead of the other."""
        is_held = self._is_held(generation)
        ahead, behind = generation.text_cursor, generation.vectors.watermark()
        start = ahead if is_held else min(ahead, behind)
        if start >= self._target():
            return False
        work, last = self._next_work(generation, start, is_abreast=ahead == behind)
        if ahead == behind:
            work.compare(generation)
        if ahead < last:
            self._follower.give_text(generation, work, last)
        is_embedded = not is_held and behind < last and self._embed(generation, work, last)
        if ahead == behind and is_embedded:
            work.was_given(generation.given)
        else:
            generation.forget_given()
        return True

    def _next_work(
        self, generation: Generation, start: int, *, is_abreast: bool
    ) -> tuple[Work, int]:
        """What comes after an offset, and up to where: as it was described, or worked out here."""
        said = self.described.after(start)
        if said is not None and is_abreast and start >= generation.feed_after:
            return self._follower.described(said.message, said.last), said.last
        rows = self._follower.read(start + 1, self._target())
        return self._follower.work(rows, generation.feed_after), rows[-1].header.offset

    def _is_held(self, generation: Generation) -> bool:
        """Whether the vectors wait: for the model, or for a generation with its dimensions."""
        is_blind = generation.made.dimensions == 0 and generation.embedder.dimensions > 0
        return is_blind or self._clock.elapsed_s() < self._vectors.until_s

    def _embed(self, generation: Generation, work: Work, last: int) -> bool:
        """Index by meaning. A model that does not answer holds up nothing but this."""
        try:
            if generation.made.dimensions == 0:
                generation.embedder.embed(["-"])  # has it dimensions by now?
            else:
                self._follower.give_vectors(generation, work, last)
        except EmbedderUnavailable as error:
            self._vectors.met(error, self._clock.elapsed_s())
            return False
        self._vectors = Trouble()
        return True

    def _commit(self, generation: Generation) -> None:
        started = self._clock.elapsed_s()
        generation.commit()
        self._text = Trouble()
        ended = self._clock.elapsed_s()
        self._commit_s = ended - started
        # It rests as long as it worked: a slow disk gets larger commits and not more of them.
        rest = min(max(self._commit_s, limits.INDEX_REST_S_MIN), limits.INDEX_REST_S_MAX)
        self._committed_s, self._due_s = ended, ended + rest

    def _tell(self) -> None:
        """Those who wait hear how far the generation that is read has come."""
        watermark = self._reader().watermark()
        if watermark > self._told:
            self._told = watermark
            self.on_indexed(watermark)

    # ── building ─────────────────────────────────────────────────────────────────────────────

    def _wanted(self, embedder: Embedder) -> Made:
        return Made(
            embedder=embedder.name,
            kind=self._kind,
            dimensions=embedder.dimensions,
            views=self._staged.state.generation,
        )

    def _is_outdated(self, embedder: Embedder) -> bool:
        """Whether the newest generation was made by or from something else than there is now."""
        newest = self._building or self._served
        return newest is None or newest.is_broken or newest.made != self._wanted(embedder)

    def _usable(self, generation: Generation | None) -> Generation | None:
        """The generation, if it can be followed from where it is."""
        if generation is None:
            return None
        furthest = max(generation.text.furthest(), generation.vectors.watermark())
        fed = max(generation.watermark(), generation.feed_after)
        is_ahead = furthest > self._log.head()
        is_lost = fed < self._target() - limits.FEED_ENTRIES_KEPT
        if not is_ahead and not is_lost:
            return generation
        generation.text.close()
        return None

    def _begin(self, embedder: Embedder) -> None:
        """Start the next generation, empty, beside the one that is read."""
        before, self._building = self._building, None
        _close(before)
        self.described.clear()
        self._building = self._generations.begin(self._wanted(embedder), embedder)
        self._records_until = self._target()
        self._records, self._page = self._follower.records(), None

    def _build(self) -> bool:
        """Bring the generation that is being built a step further; swap when it has caught up."""
        generation = self._building
        if generation is None or generation.is_broken:
            return False
        if self._records is not None:
            return self._take_records(generation, self._records)
        moved = self._advance(generation)
        is_full = generation.text.pending >= limits.INDEX_PENDING_MAX
        is_due = self._clock.elapsed_s() >= self._committed_s + limits.INDEX_BUILD_COMMIT_S
        if generation.has_news() and (not moved or (is_full and is_due)):
            self._commit(generation)
            moved = True
        if not moved and generation.watermark() >= self._target():
            self._swap(generation)
            moved = True
        self._tell()
        return moved

    def _take_records(self, generation: Generation, records: Iterator[Work]) -> bool:
        """A page of the records there are; after the last one the log is followed."""
        if self._is_held(generation):
            return False
        self._page = self._page or next(records, None)
        if self._page is None:
            self._generations.has_records(generation, self._records_until)
            self._records = None
            return True
        # Not under any entry: they are there before the first one.
        if not self._embed(generation, self._page, 0):
            return False
        generation.text.add(self._page.after(0)[0])
        self._page = None
        return True

    def _swap(self, generation: Generation) -> None:
        """Read what was built; the old generation goes."""
        before, self._served, self._building = self._served, generation, None
        self._generations.swap()
        if before is not None:
            # Requests under way may still read it: it goes a little later.
            self._retired.append((self._clock.elapsed_s() + self.retired_s, before))
            if before.made.embedder != generation.made.embedder:
                self._follower.forget_other_models(generation.embedder)
        else:
            self._generations.drop_leftovers()

    def _retire(self) -> None:
        """Let go of generations that nobody reads any more, and remove their files."""
        while self._retired and self._retired[0][0] <= self._clock.elapsed_s():
            _close(self._retired.popleft()[1])
            self._generations.drop_leftovers()

    def _mend(self, generation: Generation) -> None:
        """Open the files again; when that does not help, another generation is built."""
        try:
            if self._text.attempts >= _TEXT_ATTEMPTS:
                raise TextIndexFailed("the text index fails again and again")
            self._generations.reopen(generation)
        except TextIndexFailed:
            generation.is_broken = True


def _close(generation: Generation | None) -> None:
    """Let go of a generation that is not followed any more; readers may still hold it."""
    if generation is not None:
        generation.vectors.close()
        with contextlib.suppress(TextIndexFailed):
            generation.text.close()


def _nobody(offset: int) -> None:
    """Nobody waits to hear how far the indexes are."""
    del offset
