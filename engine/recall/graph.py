"""How does the pack look as a graph?  JSON-LD of the structured view (001 §9.1)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from engine.recall.render import words_of
from engine.recall.shapes import Shown
from engine.statements import name_of
from schemas.layers import Belief, Concept, ConceptRef, EntityRef, Episode, Event, Fact, Record

_DATE_TIME: Final = {"@type": "http://www.w3.org/2001/XMLSchema#dateTime"}

CONTEXT: Final[Mapping[str, Any]] = {
    "@vocab": "urn:strata:vocab:",
    "id": "@id",
    "type": "@type",
    "name": "https://schema.org/name",
    "description": "https://schema.org/description",
    "subject": {"@id": "http://www.w3.org/1999/02/22-rdf-syntax-ns#subject"},
    "object": {"@id": "http://www.w3.org/1999/02/22-rdf-syntax-ns#object"},
    "wasDerivedFrom": {"@id": "http://www.w3.org/ns/prov#wasDerivedFrom", "@type": "@id"},
    "validFrom": {"@id": "urn:strata:vocab:validFrom", **_DATE_TIME},
    "validTo": {"@id": "urn:strata:vocab:validTo", **_DATE_TIME},
    "recordedFrom": {"@id": "urn:strata:vocab:recordedFrom", **_DATE_TIME},
    "observedAt": {"@id": "http://www.w3.org/ns/prov#generatedAtTime", **_DATE_TIME},
    "related": {"@id": "urn:strata:vocab:related", "@type": "@id"},
}
"""Every term as an IRI; what is not named here is a word of `@vocab`."""


def subgraph(told: Sequence[Shown], citations: Mapping[str, list[str]]) -> dict[str, Any]:
    """The pack's records and what they speak of, as nodes that point to each other."""
    nodes: dict[str, dict[str, Any]] = {}
    for one in told:
        nodes[iri(one.thing.id)] = _node(one, citations)
        for end in _ends(one.thing):
            nodes.setdefault(iri(end.id), _named(end))
    # Every event that something is derived from is at least a node of its own.
    for cited in citations.values():
        for name in cited:
            nodes.setdefault(iri(name), {"id": iri(name), "type": _TYPES[name.partition("_")[0]]})
    return {"@context": dict(CONTEXT), "@graph": [nodes[name] for name in sorted(nodes)]}


_TYPES: Final = {
    "evt": "Event",
    "ep": "Episode",
    "fact": "Fact",
    "belief": "Belief",
    "concept": "Concept",
    "ent": "Entity",
}


def iri(record_id: str) -> str:
    """An id as an IRI; ids that clients gave themselves are escaped."""
    return "urn:strata:" + quote(record_id, safe="-_.:~")


def _named(end: EntityRef | ConceptRef) -> dict[str, Any]:
    kind = "Concept" if isinstance(end, ConceptRef) else "Entity"
    return {"id": iri(end.id), "type": kind, "name": name_of(end)}


def _ends(thing: Any) -> Iterable[EntityRef | ConceptRef]:
    claim = thing.claim if isinstance(thing, Belief) else thing
    for name in ("subject", "object") if isinstance(thing, Belief | Fact) else ():
        end = getattr(claim, name)
        if isinstance(end, EntityRef | ConceptRef):
            yield end


def _triple(subject: Any, predicate: str, thing: Any) -> dict[str, Any]:
    """The three parts of a claim: things by their IRI, values as they are."""
    return {"subject": _end(subject), "predicate": predicate, "object": _end(thing)}


def _end(end: Any) -> Any:
    if isinstance(end, EntityRef | ConceptRef):
        return {"id": iri(end.id)}
    plain = isinstance(end.value, str | int | float | bool)
    return {"@value": end.value if plain else name_of(end)}


def _node(one: Shown, citations: Mapping[str, list[str]]) -> dict[str, Any]:
    thing = one.thing
    node: dict[str, Any] = {
        "id": iri(thing.id),
        "type": _TYPES[thing.id.partition("_")[0]],
        "scope": thing.scope,
        "score": round(one.score, 4),
    }
    cited = citations.get(thing.id, [])
    if cited:
        node["wasDerivedFrom"] = [iri(name) for name in cited]
    if isinstance(thing, Event):
        node["observedAt"] = thing.context.observed_at
        node |= {"actor": thing.actor, "description": words_of(thing)}
        return node
    node |= _said(thing)
    node |= {"validFrom": thing.valid_from, "recordedFrom": thing.recorded_from}
    if thing.valid_to is not None:
        node["validTo"] = thing.valid_to
    return node


def _said(thing: Record) -> dict[str, Any]:
    """What a derived record says, by its layer."""
    match thing:
        case Fact():
            triple = _triple(thing.subject, thing.predicate, thing.object)
            return {**triple, "confidence": thing.confidence, "polarity": thing.polarity}
        case Belief():
            triple = _triple(thing.claim.subject, thing.claim.predicate, thing.claim.object)
            return {**triple, "confidence": thing.confidence, "stance": thing.stance}
        case Episode():
            return {"name": thing.name, "description": thing.summary}
        case Concept():
            related = [{"id": iri(edge.to)} for edge in thing.edges]
            return {"name": thing.name, "description": thing.summary, "related": related}
