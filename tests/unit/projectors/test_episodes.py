"""Which events belong together, when is that over, and what was it?"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from projectors.base import Stage
from projectors.derives import DERIVES
from projectors.episodes import EPISODES, SEALS, compose, due_before, due_episode, known
from projectors.fold import fold_stages
from projectors.overlay import Overlay
from schemas import limits
from schemas.entry import Cancel, Directive, Entry, Experience, Tick
from schemas.envelope import Actor, BlobContent, Context, Directives, Envelope, PlainText
from schemas.ids import parse_id
from schemas.layers import Episode
from schemas.times import to_us

STAGES = (Stage("extracted", (EPISODES, DERIVES)), Stage("compressed", (SEALS,)))
START = datetime(2026, 5, 13, 12, 0, tzinfo=UTC)
DEAL = "Acme wants two hundred seats in the contract for the platform"
TRIP = "The hotel in Lisbon near the beach has a pool and a garden"


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


class Story:
    """A scope's events told one after the other, and what has become of them."""

    def __init__(self, entry: Callable[..., Entry], overlay: Overlay) -> None:
        self._entry = entry
        self.overlay = overlay
        self.reports: list[Any] = []
        self.offset = 0
        self.now = START

    def fold(self, body: Any, recorded: float | None = None, **changes: Any) -> Entry:
        """Take one entry; without a time it is recorded a second after the one before."""
        self.offset += 1
        self.now = self.now if recorded is None else minutes(recorded)
        self.now += timedelta(seconds=1)
        made = self._entry(self.offset, body, recorded_at=self.now, **changes)
        (outcome,) = fold_stages([made], STAGES, self.overlay, frozenset())
        self.reports.append(outcome.reports)
        return made

    def tell(
        self,
        at: float,
        text: str = DEAL,
        *,
        session: str | None = None,
        after: Entry | None = None,
        actor: str = "user:alice",
        recorded: float | None = None,
        intent: str | None = None,
        about: Actor | None = None,
        extract: list[str] | None = None,
        **changes: Any,
    ) -> Entry:
        """An event observed so many minutes after the start."""
        more = {} if extract is None else {"directives": Directives(extract=extract)}
        envelope = Envelope(
            scope="org:acme/user:alice",
            observed_actor=Actor(id=actor, session=session),
            subject=about,
            modality="conversation",
            content=PlainText(text=text) if text else BlobContent(blob_id="blob_1"),
            context=Context(
                observed_at=minutes(at),
                preceded_by=[] if after is None else [after.event_id],
                intent=intent,
            ),
            idempotency_key=f"k{self.offset}",
            **more,
        )
        return self.fold(Experience(envelope=envelope), recorded, **changes)

    def cancel(self, event: Entry) -> Entry:
        command = Cancel(event_id=event.event_id, offset=event.offset, stages=[])
        return self.fold(Directive(command=command, scope=event.scope))

    def tick(self, at: float, due: list[str] | None = None) -> Entry:
        """Time has passed; all open episodes are named, unless others are."""
        names = due if due is not None else [e.id for e in self.episodes() if not e.sealed]
        return self.fold(Directive(command=Tick(due=names)), at, scope="", scope_no=0)

    def rows(self, table: str) -> list[tuple[bytes, Any]]:
        return list(self.overlay.of(1).scan(table))

    def episodes(self) -> list[Episode]:
        """Every episode as it would be read now, in the order they opened."""
        records = (record for _, record in self.rows("episodes"))
        return [self.read(record) for record in records if record.recorded_to is None]

    def read(self, record: Episode, at: datetime | None = None) -> Episode:
        """A record as a reader gives it: an open one put together from its members."""
        if record.sealed:
            return record
        raw = parse_id("ep", record.id)
        members = [row for _, row in self.overlay.of(1).scan("episode_events", raw)]
        return compose(record, known(members, at or datetime.max.replace(tzinfo=UTC)))

    def known_at(self, at: datetime) -> list[Episode]:
        """What was known of the scope's episodes at a moment."""
        versions = [r for t in ("episodes", "episodes_past") for _, r in self.rows(t)]
        there = (
            record
            for record in versions
            if record.recorded_from <= at
            and (record.recorded_to is None or at < record.recorded_to)
        )
        read = (msgspec.structs.replace(self.read(r, at), recorded_to=None) for r in there)
        return sorted(read, key=lambda record: record.id)

    def groups(self) -> list[list[int]]:
        """The offsets of each episode's events."""
        offsets = {self._entry(n, None).event_id: n for n in range(1, self.offset + 1)}
        return [sorted(offsets[event] for event in e.events) for e in self.episodes()]


@pytest.fixture
def story(entry, overlay) -> Story:
    return Story(entry, overlay)


# ── what holds events together, and what parts them ──────────────────────────────────────────


def test_events_close_in_time_are_one_episode(story):
    """Without a session half an hour of silence, in observed time, ends an episode."""
    for at in (0, 10, 39, 69, 100, 101):
        story.tell(at)

    assert [[1, 2, 3], [4], [5, 6]] == story.groups()
    assert [True, True, False] == [e.sealed for e in story.episodes()]


def test_a_session_holds_longer(story):
    """Events of one session stay together over a meal, and not over a night."""
    for at in (0, 100, 339, 339 + 240):
        story.tell(at, session="s1")

    assert [[1, 2, 3], [4]] == story.groups()
    assert ["s1", "s1"] == [e.session for e in story.episodes()]


def test_sessions_do_not_mix(story):
    """Interleaved events go each to their own."""
    for at, session in enumerate(("a", "b", None, "a", "b", None)):
        story.tell(at, session=session)

    assert [[1, 4], [2, 5], [3, 6]] == story.groups()


def test_a_subject_s_session_counts_too(story):
    """Where the actor has none."""
    story.tell(0, session="a")
    story.tell(1, about=Actor(id="user:bob", session="a"))
    story.tell(2, session="b", about=Actor(id="user:bob", session="a"))

    assert [[1, 2], [3]] == story.groups()
    assert ["user:alice", "user:bob"] == story.episodes()[0].actors_involved


def test_scopes_and_tenants_do_not_mix(story):
    """An episode lives in one scope of one tenant."""
    story.tell(0)
    story.tell(1, scope_no=5)
    story.tell(2, tenant_no=2)
    story.tell(3)

    assert [[1, 4], [2]] == story.groups()


def test_a_change_of_topic_parts(story):
    """A few events in a row about something else, and a further one of the same begins anew."""
    for at in range(4):
        story.tell(at, DEAL)
    for at in range(4, 9):
        story.tell(at, TRIP)

    first, second = story.groups()
    assert [1, 2, 3, 4] == first[:4]
    assert [8, 9] == second[-2:]
    assert [None, None] == [e.causal_predecessor for e in story.episodes()]


@pytest.mark.parametrize("interlude", [[TRIP], [TRIP, TRIP], ["ok", "yes", "thanks", "bye"]])
def test_a_digression_does_not_part(story, interlude):
    """One or two remarks about something else, or words about nothing, end no episode."""
    for at, text in enumerate([DEAL, DEAL, DEAL, *interlude, DEAL, DEAL]):
        story.tell(at, text)

    assert 1 == len(story.groups())


def test_a_session_is_slower_to_change_its_topic(story):
    """What parts events that only stand near each other does not yet part a session."""
    for at, text in enumerate([DEAL] * 4 + [TRIP] * 5):
        story.tell(at, text, session="s1")

    assert 1 == len(story.groups())


def test_preceded_by_joins_over_any_pause(story):
    """An event goes where the one it follows went, whatever the time, topic or session."""
    first = story.tell(0)
    story.tell(5000, TRIP, after=first)
    story.tell(9000, session="other", after=first)

    assert [[1, 2, 3]] == story.groups()


def test_preceded_by_does_not_cross_scopes(story):
    """An event of another scope, an unknown one, and no id at all name no episode here."""
    elsewhere = story.tell(0, scope_no=5)
    story.tell(1, after=elsewhere)

    assert [[1], [2]] == story.groups()
    assert None is story.episodes()[1].causal_predecessor


def test_a_client_may_want_no_episodes(story):
    """`directives.extract` without episodes leaves the event out of them (001 §3.5.3)."""
    story.tell(0)
    story.tell(1, extract=["facts"])
    story.tell(2, extract=["episodes"])

    assert [[1, 3]] == story.groups()


def test_an_erased_event_is_no_member(story, entry):
    """A body that is gone says nothing."""
    story.fold(None)

    assert [] == story.groups()


# ── late events ──────────────────────────────────────────────────────────────────────────────


def test_a_late_event_follows_the_sealed_episode_it_belongs_to(story):
    """Observed during what is sealed, it opens a successor, and the two name each other."""
    story.tell(0)
    story.tell(20)
    story.tell(200, TRIP)
    story.tell(10)
    first, second, late = story.episodes()

    assert [[1, 2], [3], [4]] == story.groups()
    assert (first.id, late.id) == (late.causal_predecessor, first.causal_successor)
    assert (3, True) == (first.version, first.sealed)
    assert (None, None) == (second.causal_predecessor, second.causal_successor)


def test_a_late_event_does_not_break_up_what_goes_on(story):
    """Live events stay together around one that is told late, and so do late ones."""
    for at in (0, 200, 10, 201, 12, 202):
        story.tell(at)

    assert [[1], [2, 4, 6], [3, 5]] == story.groups()


def test_an_old_event_outside_any_episode_stands_beside(story):
    """Long before all that is known: an episode of its own, and nobody's successor."""
    for at in (10_000, 0, 10_001, 1):
        story.tell(at)

    assert [[1, 3], [2, 4]] == story.groups()
    assert [None, None] == [e.causal_predecessor for e in story.episodes()]


def test_a_story_told_backwards(story):
    """Newest first, as exports come: the same episodes, each in its own order."""
    for at in (300, 299, 200, 199, 100, 99):
        story.tell(at)

    assert [[1, 2], [3, 4], [5, 6]] == story.groups()
    assert all(e.started_at < e.ended_at for e in story.episodes())


def test_a_sealed_session_goes_on_in_a_successor(story):
    """Whenever the event was observed: its session's episode takes no more."""
    story.tell(0, session="s1")
    story.tick(1000)
    story.tell(5, session="s1", recorded=1001)
    story.tell(1, recorded=1002)
    first, second, other = story.episodes()

    assert (first.id, second.id) == (second.causal_predecessor, first.causal_successor)
    assert None is other.causal_predecessor


def test_preceded_by_a_sealed_event_opens_a_successor(story):
    """Its episode cannot take it any more, so the new one follows it."""
    first = story.tell(0)
    story.tell(100, TRIP)
    story.tell(101, after=first)
    sealed, going_on, after = story.episodes()

    assert (sealed.id, after.id) == (after.causal_predecessor, sealed.causal_successor)
    assert not going_on.sealed


def test_a_pause_in_one_matter_leaves_a_link(story):
    """After the gap, an event about the same goes on with what was sealed."""
    story.tell(0, DEAL)
    story.tell(100, DEAL)
    story.tell(200, TRIP)
    first, second, third = story.episodes()

    assert (second.id, first.id) == (first.causal_successor, second.causal_predecessor)
    assert (None, None) == (second.causal_successor, third.causal_predecessor)


def test_the_first_successor_is_kept(story):
    """Two late events of one sealed episode: both name it, it names the first."""
    story.tell(0)
    story.tell(5)
    story.tell(500, TRIP)
    story.tell(1)
    story.tick(600)
    story.tell(2)
    first, _, second, third = story.episodes()

    assert [first.id] * 2 == [second.causal_predecessor, third.causal_predecessor]
    assert second.id == first.causal_successor


# ── bounds ───────────────────────────────────────────────────────────────────────────────────


def test_a_full_episode_goes_on_in_a_successor(story):
    """At so many events it is sealed, and the next event begins the one after it."""
    for at in range(limits.EPISODE_EVENTS_MAX + 2):
        story.tell(at / 60)
    first, second = story.episodes()

    assert limits.EPISODE_EVENTS_MAX == len(first.events)
    assert (2, second.id) == (len(second.events), first.causal_successor)
    assert first.sealed


def test_open_episodes_of_a_scope_are_bounded(story):
    """Sessions without end: the one longest unheard of is sealed, and its slot is free."""
    for number in range(limits.EPISODES_OPEN_MAX + 8):
        story.tell(number, session=f"s{number}")
    open_ = [e for e in story.episodes() if not e.sealed]

    assert limits.EPISODES_OPEN_MAX == len(open_) == len(story.rows("episode_open"))
    assert len(open_) == len(story.rows("episode_due"))


def test_idle_sessions_are_sealed_by_their_neighbours(story):
    """A later entry of the scope shows that the gap has passed, by the time of the log."""
    story.tell(0, session="a", recorded=0)
    story.tell(1, session="b", recorded=500)

    assert [True, False] == [e.sealed for e in story.episodes()]


# ── sealing ──────────────────────────────────────────────────────────────────────────────────


def test_an_idle_scope_is_sealed_by_a_tick(story):
    """When nothing follows, an entry that only says that time has passed seals it."""
    story.tell(0)
    story.tell(1)
    tick = story.tick(35)
    (episode,) = story.episodes()

    assert (True, False, None) == (episode.sealed, episode.partial, episode.partial_reason)
    assert tick.recorded_at == episode.recorded_from
    assert ([], []) == (story.rows("episode_open"), story.rows("episode_due"))


@pytest.mark.parametrize("at", [0, 29])
def test_a_tick_seals_only_what_is_due(story, at):
    """The log's own time decides, and not who wrote the tick."""
    story.tell(0)
    story.tick(at)

    assert not story.episodes()[0].sealed


def test_an_event_in_between_defers(story):
    """A tick that was on its way when the episode went on does nothing."""
    story.tell(0)
    due = [e.id for e in story.episodes()]
    story.tell(1, recorded=25)
    story.tick(35, due)

    assert not story.episodes()[0].sealed


@pytest.mark.parametrize("due", [["ep_nonsense"], ["fact_x"], ["sealed"]])
def test_a_tick_names_what_is_not_open(story, due):
    """Unknown, of another layer, sealed already: nothing happens."""
    story.tell(0)
    story.tick(100)
    (before,) = story.episodes()
    story.tick(200, [before.id] if due == ["sealed"] else due)

    assert [before] == story.episodes()
    assert [] == story.reports[-1][1].changes


def test_the_due_row_says_when(story):
    """Whoever looks finds an open episode from its gap on, or up to a minute later."""
    story.tell(0, recorded=0)
    last = story.tell(1, recorded=5)
    ((key, _),) = story.rows("episode_due")
    (episode,) = story.episodes()
    gap = timedelta(seconds=limits.EPISODE_GAP_S)
    times = [last.recorded_at + gap + timedelta(seconds=s) for s in (-1, limits.EPISODE_DUE_S)]

    assert [False, True] == [key < due_before(to_us(at)) for at in times]
    assert parse_id("ep", episode.id) == due_episode(key)


def test_the_stages_tell_what_they_did(story):
    """Opening is extraction; sealing is compression, and the record is in its report."""
    story.tell(0)
    story.tell(1)
    story.tell(100)

    assert [1, 0, 1] == [reports[0].count("episodes") for reports in story.reports]
    assert [0, 0, 1] == [reports[1].count("episodes") for reports in story.reports]


def test_later_stages_learn_what_moved(story):
    """The row names the episode of the event, and what the entry sealed beside it."""
    first = story.tell(0)
    assert (1, 1) == _moved(story)
    story.tell(100)

    assert (2, 2) == _moved(story)
    assert first.offset == 1


def _moved(story: Story) -> tuple[int, int]:
    ((_, row),) = story.rows("episodes_moved")
    return row.offset, len(row.ids)


def test_events_point_to_their_episode(story):
    """Every member's `derives` has it (001 §7.1)."""
    events = [story.tell(at) for at in (0, 1, 2)]
    (episode,) = story.episodes()
    derives = [story.overlay.get(1, "derives", event.id).ids for event in events]

    assert [[episode.id]] * 3 == derives
    assert [event.event_id for event in events] == episode.supports


# ── cancelled events ─────────────────────────────────────────────────────────────────────────


def test_a_cancelled_event_leaves_an_open_episode(story):
    """Its words, its actor and its time go with it; what was known before stays known."""
    story.tell(0, "We talk about the budget of the project")
    gone = story.tell(20, "The password is swordfish", actor="user:eve")
    before = story.known_at(gone.recorded_at)
    story.cancel(gone)
    (episode,) = story.episodes()

    assert [[1]] == story.groups()
    assert minutes(0) == episode.ended_at
    assert "swordfish" not in str(episode)
    assert ["user:alice"] == episode.actors_involved
    assert before == story.known_at(gone.recorded_at)
    assert "swordfish" in str(before)


def test_an_episode_without_events_is_known_no_more(story):
    """The only event cancelled: closed, and nothing is left open."""
    story.cancel(story.tell(0))
    ((_, record),) = story.rows("episodes")

    assert None is not record.recorded_to
    assert ([], []) == (story.rows("episode_open"), story.rows("episode_due"))
    story.tell(1)
    assert [[3]] == story.groups()


def test_a_sealed_episode_marks_a_cancelled_event(story):
    """`events` never changes; the event is marked, and the rest no longer speaks of it."""
    story.tell(0, "We talk about the budget of the project")
    gone = story.tell(1, "The password is swordfish")
    story.tell(100)
    (before, _) = story.episodes()
    story.cancel(gone)
    (after, _) = story.episodes()

    assert before.events == after.events
    assert ([], [gone.event_id]) == (before.excluded, after.excluded)
    assert gone.event_id not in after.supports
    assert before.version + 1 == after.version
    assert ("swordfish" in before.summary, "swordfish" in after.summary) == (True, False)


def test_cancelling_twice_changes_nothing(story):
    """Nor does cancelling what is in no episode."""
    event = story.tell(0)
    story.tell(1)
    aside = story.tell(2, extract=["facts"])
    story.cancel(event)
    before = story.rows("episodes"), story.rows("episode_events"), story.rows("episode_open")
    story.cancel(event)
    story.cancel(aside)

    assert before == (
        story.rows("episodes"),
        story.rows("episode_events"),
        story.rows("episode_open"),
    )


# ── what was it? ─────────────────────────────────────────────────────────────────────────────


def test_the_chain_has_roles(story):
    """What set it off, what was decided, what came of it (001 §7.2)."""
    for at, text in enumerate(
        (
            "Acme asks for an offer",
            "Priya sends the numbers over",
            "We decided to give a discount",
            "Acme signed the contract",
            "Thanks everyone",
        )
    ):
        story.tell(at, text)
    (episode,) = story.episodes()

    assert ["trigger", "step", "decision", "outcome", "step"] == [
        link.role for link in episode.causal_chain
    ]
    assert episode.events == [link.event for link in episode.causal_chain]


def test_the_summary_is_made_of_central_sentences(story):
    """Extractive, in the order of events, bounded, and not the small talk."""
    story.tell(0, "Hello there! How are you?")
    for at in range(1, 6):
        story.tell(at, f"The contract with Acme has {at}00 seats, and more about seats.")
    story.tell(6, "See you later")
    (episode,) = story.episodes()

    assert "contract with Acme" in episode.summary
    assert "Hello" not in episode.summary
    assert len(episode.summary) <= 3 * limits.EPISODE_GIST_CHARS_MAX + 2


def test_the_name_is_what_it_is_about(story):
    """The client's intent when it has one, else the words that come up most."""
    story.tell(0, "The contract is good", actor="user:contract")
    story.tell(1, "The invoices are late")
    story.tell(2, "Those invoices again")
    story.tell(100, TRIP, intent="book_trip")
    first, second = story.episodes()

    assert first.name.startswith("Invoices")
    assert "Book trip" == second.name


def test_an_event_without_words_has_a_name_too(story):
    """A blob alone: its modality is all there is to say."""
    story.tell(0, "")
    (episode,) = story.episodes()

    assert ("Conversation", "conversation", 0.0) == (
        episode.name,
        episode.summary,
        episode.centrality_score,
    )


def test_long_texts_are_cut(story):
    """A document's gist is one sentence of it, however long the sentence."""
    story.tell(0, "Filler words here. " * 50 + "Acme signs. " + "x" * 5000)
    (episode,) = story.episodes()

    assert len(episode.summary) <= limits.EPISODE_GIST_CHARS_MAX
    assert len(episode.name) <= limits.EPISODE_NAME_CHARS_MAX


def test_centrality_is_a_fraction(story):
    """Events about one thing hold together better than events about many, and more is surer."""
    story.tell(0, DEAL)
    alone = story.episodes()[0].centrality_score
    for at in range(1, 6):
        story.tell(at, DEAL)
    together = story.episodes()[0].centrality_score
    for at in range(6, 9):
        story.tell(at, f"{at} other thing{at} wholly{at} different{at}")
    mixed = story.episodes()[0].centrality_score

    assert 0.0 < alone < together <= 1.0
    assert mixed < together


# ── as of a moment ───────────────────────────────────────────────────────────────────────────


def test_an_open_episode_is_partial(story):
    """It says so, and why, until it is sealed."""
    story.tell(0)
    (episode,) = story.episodes()

    assert (True, "episode_open", False) == (
        episode.partial,
        episode.partial_reason,
        episode.sealed,
    )


def test_what_was_known_stays_known(story):
    """Later entries never change an answer as of before them: events, seals, links, cancels."""
    told = [story.tell(0), story.tell(10)]
    acts = [
        *(partial(story.tell, at) for at in (200, 5, 201, 400, 1)),
        partial(story.tick, 60),
        *(partial(story.cancel, event) for event in told),
    ]
    times, answers = [], []
    for act in acts:
        times.append(act().recorded_at)
        answers.append(story.known_at(times[-1]))

    assert answers == [story.known_at(at) for at in times]
