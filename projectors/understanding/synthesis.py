"""What is understood of a thing?  A version of its concept, made from the strongest there is.

Versions are append-only (001 §7.5.1): every one is made from the tally and the facts as they are at
the entry that asks for it, and says from what. A concept that loses supports says how many; beyond
the tenant's threshold it is made anew, or deprecated when too little is left.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from projectors.base import View
from projectors.records import create, past_key, revise, scope_row_key
from projectors.understanding.keys import tally_key
from projectors.understanding.ledger import Ledger, Touch, speaks
from projectors.understanding.rows import THING, Rules, Tally
from projectors.understanding.summary import summarise
from schemas import limits
from schemas.entry import ForgottenRecord
from schemas.ids import derive_id, format_id, parse_id
from schemas.layers import (
    Belief,
    Concept,
    Edge,
    Episode,
    Fact,
    SupportedBy,
    SynthesisInputs,
)

_replace: Final = msgspec.structs.replace

SYNTHESIZER: Final = "extractive"
SYNTHESIZER_VERSION: Final = "1"
_SUPPORTED: Final = 0.55
_LAYERS: Final = ["facts", "episodes", "beliefs"]


def settle(ledger: Ledger, rules: Rules) -> list[str]:
    """Make the versions that are due; the ids of the concepts that got one."""
    made = []
    for key, touch in list(ledger.touched.items()):
        tally = ledger.tally(key)
        if tally is None or tally.into is not None:
            continue
        if touch.forgotten and tally.concept is not None:
            _scrub(ledger, tally.concept, touch.forgotten)
        version = _settled(ledger, key, tally, touch, rules)
        if version is not None:
            made.append(version.id)
    return made


def _settled(
    ledger: Ledger, key: bytes, tally: Tally, touch: Touch, rules: Rules
) -> Concept | None:
    before = None if tally.concept is None else ledger.concept(tally.concept)
    if before is None:
        return synthesise(ledger, key) if tally.is_enough else None
    is_lost = touch.is_lost or bool(touch.forgotten)
    loss = round(tally.lost / max(1, tally.cited), 4)
    is_invalid = is_lost and loss > rules.invalidation_threshold
    is_due = touch.is_forced or tally.is_stale or is_invalid or bool(touch.forgotten)
    if tally.is_enough and is_due:
        return synthesise(ledger, key)
    if touch.is_lost:
        return _lessen(ledger, before, tally, loss=loss, is_invalid=is_invalid)
    return None


# ── making ───────────────────────────────────────────────────────────────────────────────────


def synthesise(ledger: Ledger, key: bytes, derived_from: Sequence[str] = ()) -> Concept | None:
    """The next version of a concept, or its first, from what its tally holds; None: nothing."""
    tally = ledger.tally(key)
    assert tally is not None, "a concept is made from a tally"
    facts = strongest(ledger, tally)
    episodes = _episodes(ledger, tally)
    before = None if tally.concept is None else ledger.concept(tally.concept)
    if before is None and not facts:
        return None
    after = _concept(ledger, tally, facts, episodes, before)
    if derived_from:
        after = _replace(after, derived_from=list(derived_from))
    write(ledger, before, after, int.from_bytes(key[:4], "big"))
    ledger.put(
        key,
        _replace(
            tally,
            concept=parse_id("concept", after.id),
            fresh=0,
            base=tally.inputs,
            cited=len(facts) + len(episodes),
            lost=0,
        ),
    )
    return after


def strongest(ledger: Ledger, tally: Tally) -> list[Fact]:
    """The facts that a tally keeps, the strongest and newest first."""
    ordered = sorted(tally.kept, key=lambda one: (one.score, one.fact), reverse=True)
    facts = [ledger.fact(one.fact) for one in ordered]
    return [fact for fact in facts if fact is not None and speaks(fact, ledger.at)]


def _episodes(ledger: Ledger, tally: Tally) -> list[Episode]:
    rows: list[Episode | None] = [
        ledger.draft.get("episodes", raw) for raw in reversed(tally.episodes)
    ]
    return [one for one in rows if one is not None and one.recorded_to is None]


def _concept(
    ledger: Ledger,
    tally: Tally,
    facts: Sequence[Fact],
    episodes: Sequence[Episode],
    before: Concept | None,
) -> Concept:
    beliefs = _beliefs(ledger, facts)
    sure = [
        1 - belief.confidence if belief.stance == "contradicted" else belief.confidence
        for belief in beliefs
    ]
    sure = sure or [fact.confidence for fact in facts] or [0.0]
    confidence = round(sum(sure) / len(sure), 4)
    name = derive_id("concept", ledger.entry.id, ledger.made) if before is None else before.id
    ledger.made += before is None
    consulted = len(facts) + len(episodes)
    filters: dict[str, Any] = {"entity" if tally.kind == THING else "predicate": tally.what}
    return Concept(
        id=name,
        scope=facts[0].scope if before is None else before.scope,
        name=tally.name,
        canonical_id=None,
        version=1 if before is None else before.version + 1,
        previous_version=None if before is None else before.version,
        derived_from=[] if before is None else before.derived_from,
        summary=summarise(tally, facts, episodes[: limits.CONCEPT_EPISODES_NAMED]),
        summary_embedding=None,
        synthesis_inputs=SynthesisInputs(
            layers=_LAYERS,
            filters=filters,
            as_of=ledger.at,
            synthesizer=SYNTHESIZER,
            synthesizer_version=SYNTHESIZER_VERSION,
        ),
        supported_by=SupportedBy(
            facts=[fact.id for fact in facts],
            episodes=[episode.id for episode in episodes],
            beliefs=[belief.id for belief in beliefs],
        ),
        edges=_edges(ledger, tally),
        valid_from=_since(facts, before, ledger.at),
        valid_to=None,
        recorded_from=ledger.at,
        recorded_to=None,
        last_synthesized_at=ledger.at,
        stance="supported" if confidence >= _SUPPORTED else "uncertain",
        confidence=confidence,
        staleness_score=0.0,
        staleness_reason=None,
        support_loss_fraction=0.0,
        coverage_score=round(min(1.0, consulted / max(1, tally.inputs)), 4),
        supports=_events(facts),
        aliases=list(tally.aliases),
        topics=_topics(tally),
        entity_id=tally.what if tally.kind == THING else None,
        input_count=tally.inputs,
    )


def _beliefs(ledger: Ledger, facts: Sequence[Fact]) -> list[Belief]:
    """The beliefs that the strongest facts speak for."""
    found: dict[bytes, Belief] = {}
    for fact in facts[: limits.CONCEPT_BELIEFS_MAX]:
        row = ledger.draft.get("belief_evidence", _raw_fact(fact))
        if row is None:
            continue
        belief: Belief | None = ledger.draft.get("beliefs", row.belief)
        if belief is not None and (belief.recorded_to is None or belief.recorded_to > ledger.at):
            found.setdefault(row.belief, belief)
    return list(found.values())


def _raw_fact(fact: Fact) -> bytes:
    raw = parse_id("fact", fact.id)
    assert raw is not None, "an id of our own"
    return raw


def _edges(ledger: Ledger, tally: Tally) -> list[Edge]:
    """To the concepts of what it hangs together with, the closest first."""
    edges: dict[tuple[str, str], Edge] = {}
    for near in sorted(tally.near, key=lambda one: (-one.count, one.key, one.relation)):
        _, other = ledger.resolve(near.key)
        if other is not None and other.concept is not None and other.concept != tally.concept:
            to = format_id("concept", other.concept)
            place = (to, near.relation)
            if place not in edges:
                weight = round(near.count / (near.count + 1), 4)
                edges[place] = Edge(
                    to=to, relation=near.relation, weight=weight, vocabulary=near.vocabulary
                )
    return list(edges.values())


def _since(facts: Sequence[Fact], before: Concept | None, at: datetime) -> datetime:
    """From when on there is something to understand."""
    starts = [fact.valid_from for fact in facts]
    if before is not None:
        starts.append(before.valid_from)
    return min(starts, default=at)


def _events(facts: Sequence[Fact]) -> list[str]:
    cited = [event for fact in facts for event in fact.supports[:1]]
    return list(dict.fromkeys(cited))


def _topics(tally: Tally) -> list[str]:
    ordered = sorted(tally.predicates.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, _ in ordered[: limits.CONCEPT_TOPICS_MAX]] or [tally.what]


def write(ledger: Ledger, before: Concept | None, after: Concept, scope_no: int) -> None:
    """A first version, or the next one; events newly cited point to it."""
    if before is None:
        ledger.draft.take(create("concepts", scope_no, after, after.supports))
        return
    cited = set(before.supports)
    events = [event for event in after.supports if event not in cited]
    ledger.draft.take(revise("concepts", before, after, ledger.at, events))


def again(before: Concept, at: datetime, **fields: Any) -> Concept:
    """The same concept, with something else said of it."""
    return _replace(
        before,
        version=before.version + 1,
        previous_version=before.version,
        recorded_from=at,
        **fields,
    )


# ── losing ───────────────────────────────────────────────────────────────────────────────────


def _lessen(
    ledger: Ledger, before: Concept, tally: Tally, *, loss: float, is_invalid: bool
) -> Concept:
    """A concept that lost some of its supports, and is hidden when it lost too many."""
    facts = strongest(ledger, tally)
    fields: dict[str, Any] = {"support_loss_fraction": min(1.0, loss)}
    if is_invalid:
        fields["stance"] = "deprecated"
    after = again(
        before,
        ledger.at,
        summary=summarise(tally, facts, _episodes(ledger, tally)[: limits.CONCEPT_EPISODES_NAMED]),
        **fields,
    )
    write(ledger, before, after, 0)
    return after


def _scrub(ledger: Ledger, raw: bytes, forgotten: Sequence[str]) -> None:
    """What was forgotten is in no version: those made from it keep their place and lose words."""
    latest = ledger.concept(raw)
    if latest is None:
        return
    gone = set(forgotten)
    for version in range(1, latest.version):
        key = past_key("concepts", latest.id, version)
        past: Concept | None = ledger.draft.get("concepts_past", key)
        if past is not None and gone & _cited(past):
            ledger.draft.put("concepts_past", key, _without(past, gone))
    if gone & _cited(latest):
        ledger.draft.put("concepts", raw, _without(latest, gone))


def _cited(concept: Concept) -> set[str]:
    return {*concept.supported_by.facts, *concept.supported_by.episodes}


def _without(concept: Concept, gone: set[str]) -> Concept:
    cited = concept.supported_by
    left = _replace(
        cited,
        facts=[name for name in cited.facts if name not in gone],
        episodes=[name for name in cited.episodes if name not in gone],
    )
    return _replace(concept, summary="", supported_by=left)


# ── forgetting ───────────────────────────────────────────────────────────────────────────────


def forget(ledger: Ledger, view: View, records: Sequence[ForgottenRecord]) -> list[str]:
    """Forget concepts, and episodes as their inputs; the ids of the concepts that are gone."""
    gone: list[str] = []
    for record in records:
        raw, episode = parse_id("concept", record.id), parse_id("ep", record.id)
        concept = None if raw is None else ledger.concept(raw)
        if raw is not None and concept is not None:
            _drop(ledger, view, raw, record.scope_no, concept)
            gone.append(record.id)
        elif episode is not None and ledger.draft.get("concept_episodes", episode) is not None:
            ledger.draft.drop("concept_episodes", episode)
            _unwitness(ledger, view, episode, record)
    return gone


def _drop(ledger: Ledger, view: View, raw: bytes, scope_no: int, concept: Concept) -> None:
    """Every row of a concept, out; what it was made from may make another."""
    draft = ledger.draft
    draft.drop("concepts", raw)
    for version in range(1, concept.version):
        draft.drop("concepts_past", past_key("concepts", concept.id, version))
    draft.drop("concepts_in", scope_row_key("concepts", scope_no, concept.id))
    own = tally_key(scope_no, concept)
    tally = ledger.tally(own)
    if tally is not None and tally.concept == raw:
        ledger.put(own, _replace(tally, concept=None, fresh=0, base=0, cited=0, lost=0))
        for key, _ in view.scan("concept_inputs", own):
            draft.drop("concept_inputs", key)


def _unwitness(ledger: Ledger, view: View, episode: bytes, record: ForgottenRecord) -> None:
    """An episode is counted for nothing any more: which tallies had it is nowhere else."""
    for key, _ in view.scan("concept_tallies", record.scope_no.to_bytes(4, "big")):
        tally = ledger.tally(key)
        if tally is not None and episode in tally.episodes:
            left = tuple(one for one in tally.episodes if one != episode)
            count = max(0, tally.episode_count - 1)
            ledger.put(key, _replace(tally, episodes=left, episode_count=count))
            touch = ledger.touch(key)
            touch.forgotten = (*touch.forgotten, record.id)
