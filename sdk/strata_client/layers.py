"""The five layers, and what their records speak of (001 §8.7)."""

from typing import Unpack

from strata_client import asks
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, listing, method
from strata_client.models import (
    Belief,
    BeliefHistory,
    BeliefPage,
    Concept,
    ConceptPage,
    ConflictPage,
    Coverage,
    Entity,
    EntityPage,
    Episode,
    EpisodePage,
    Event,
    EventPage,
    Fact,
    FactPage,
    FactTimeline,
    RelatedPage,
    SynthesisState,
    SynthesizeReceipt,
    Why,
)


class Events(Group[M_co]):
    """What happened, as it was told."""

    @listing("GET /v1/events", EventPage)
    def list(self, **query: Unpack[asks.EventsQuery]) -> Ask:
        """Events of a scope."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/events/{event_id}", Event)
    def get(self, event_id: str) -> Ask:
        """One event."""
        return Ask((event_id,))


class Episodes(Group[M_co]):
    """Stretches of related events."""

    @listing("GET /v1/episodes", EpisodePage)
    def list(self, **query: Unpack[asks.EpisodesQuery]) -> Ask:
        """Episodes of a scope."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/episodes/{episode_id}", Episode)
    def get(self, episode_id: str, **query: Unpack[asks.AsOfQuery]) -> Ask:
        """One episode, as it is or as it was known."""
        return Ask((episode_id,), query)


class Facts(Group[M_co]):
    """What is so, since when, and who said so."""

    @listing("GET /v1/facts", FactPage)
    def list(self, **query: Unpack[asks.FactsQuery]) -> Ask:
        """Facts of a scope, as they are or as they were known."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/facts/{fact_id}", Fact)
    def get(self, fact_id: str, **query: Unpack[asks.AsOfQuery]) -> Ask:
        """One fact, as it is or as it was known."""
        return Ask((fact_id,), query)

    @method("GET /v1/facts/timeline", FactTimeline)
    def timeline(self, subject: str, predicate: str, **query: Unpack[asks.TimelineQuery]) -> Ask:
        """All that was so of a subject and a predicate, in the order of time."""
        said = self._scoped(query)
        return Ask(query={"subject": subject, "predicate": predicate, **said})

    @listing("GET /v1/facts/conflicts", ConflictPage)
    def conflicts(self, **query: Unpack[asks.ConflictsQuery]) -> Ask:
        """Facts that cannot both be so, and what came of it."""
        return Ask(query=self._scoped(query))


class Entities(Group[M_co]):
    """What facts speak of."""

    @listing("GET /v1/entities", EntityPage)
    def list(self, **query: Unpack[asks.EntitiesQuery]) -> Ask:
        """Entities of a scope."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/entities/{entity_id}", Entity)
    def get(self, entity_id: str, **query: Unpack[asks.EntityQuery]) -> Ask:
        """One entity, under the names a scope has for it."""
        return Ask((entity_id,), self._scoped(query))


class Beliefs(Group[M_co]):
    """What is held true, how surely, and why."""

    @listing("GET /v1/beliefs", BeliefPage)
    def list(self, **query: Unpack[asks.BeliefsQuery]) -> Ask:
        """Beliefs of a scope."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/beliefs/{belief_id}", Belief)
    def get(self, belief_id: str, **query: Unpack[asks.AsOfQuery]) -> Ask:
        """One belief, as it is or as it was held."""
        return Ask((belief_id,), query)

    @method("GET /v1/beliefs/why", Why)
    def why(self, belief_id: str, **query: Unpack[asks.WhyQuery]) -> Ask:
        """Why it is believed, down to the events."""
        return Ask(query={"belief_id": belief_id, **query})

    @listing("GET /v1/beliefs/history", BeliefHistory)
    def history(self, belief_id: str, **query: Unpack[asks.HistoryQuery]) -> Ask:
        """All that was ever believed under one id, newest first."""
        return Ask(query={"belief_id": belief_id, **query})


class Understanding(Group[M_co]):
    """What facts come to, thing by thing."""

    @listing("GET /v1/understanding", ConceptPage)
    def list(self, **query: Unpack[asks.ConceptsQuery]) -> Ask:
        """Concepts of a scope."""
        return Ask(query=self._scoped(query))

    @method("GET /v1/understanding/{concept_id}", Concept)
    def get(self, concept_id: str, **query: Unpack[asks.ConceptQuery]) -> Ask:
        """One concept, in the version of now, of a moment or of a number."""
        return Ask((concept_id,), query)

    @listing("GET /v1/understanding/{concept_id}/related", RelatedPage)
    def related(self, concept_id: str, **query: Unpack[asks.RelatedQuery]) -> Ask:
        """Concepts that it leads to, nearest first."""
        return Ask((concept_id,), query)

    @method("GET /v1/understanding/coverage", Coverage)
    def coverage(self, **query: Unpack[asks.CoverageQuery]) -> Ask:
        """How much of a scope its concepts have taken in."""
        return Ask(query=self._scoped(query))

    @method("POST /v1/understanding/synthesize", SynthesizeReceipt, is_safe=True)
    def synthesize(self, **body: Unpack[asks.SynthesizeRequest]) -> Ask:
        """Begin to make the concepts of a scope anew."""
        return Ask(body=present(self._keyed(body)))

    @method("GET /v1/understanding/synthesize/{job_id}", SynthesisState)
    def synthesis(self, job_id: str) -> Ask:
        """How far that is."""
        return Ask((job_id,))
