"""What does an entry do to the scales?  Each fact that moved is laid on, shifted or taken off."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import UNSET

from projectors.base import View
from projectors.beliefs import calibration, posterior, scales
from projectors.beliefs.keys import (
    about_key,
    claim_key,
    digest,
    identity_key,
    term_key,
    thing_of,
    value_key,
)
from projectors.beliefs.rows import (
    Identity,
    Period,
    Periods,
    Rival,
    Rules,
    Scale,
    Shown,
    Telling,
    Values,
    Weighed,
)
from projectors.overlay import Draft
from projectors.records import name_key, record_key
from projectors.rows import Mark
from projectors.text.predicates import IDENTITY
from schemas import limits
from schemas.entry import Annotation, Entry
from schemas.ids import derive_id, parse_id
from schemas.layers import Belief, Claim, EntityRef, Fact, LiteralValue, Node
from schemas.times import seconds_of, to_us

_replace: Final = msgspec.structs.replace


class Touch:
    """What became of one belief in this entry, until it is settled."""

    def __init__(self, *, forgotten: bool = False) -> None:
        self.claim: Claim | None = None
        self.scope = ""
        self.is_single = False
        self.is_opened = False
        self.is_outdated = False
        self.lost = False
        self.forgotten = forgotten
        self.successor: bytes | None = None
        self.refused_by: bytes | None = None
        self.is_joined = False
        self.joined_to: bytes | None = None


class Desk:
    """The work on one entry: a draft of the rows, and the beliefs to settle."""

    def __init__(self, entry: Entry, view: View) -> None:
        self.entry = entry
        self.at = entry.recorded_at
        self.at_us = to_us(entry.recorded_at)
        self.view = view
        self.draft = Draft(view)
        self.touched: dict[bytes, Touch] = {}
        self.rules: Rules = view.get("belief_rules", b"") or Rules()
        self._made = 0
        self._event, self._speaker = _told_by(entry)

    def scale(self, belief: bytes) -> Scale | None:
        """The scale of a belief that is still weighed."""
        found: Scale | None = self.draft.get("belief_scales", belief)
        return found

    def put_scale(self, belief: bytes, scale: Scale) -> None:
        """The scale of a belief is now so."""
        self.draft.put("belief_scales", belief, scale)

    def record(self, belief: bytes) -> Belief | None:
        """The belief as it was last revised."""
        found: Belief | None = self.draft.get("beliefs", belief)
        return found

    def touch(self, belief: bytes) -> Touch:
        """The note on a belief that has to be settled."""
        found = self.touched.get(belief)
        if found is None:
            found = self.touched[belief] = Touch()
        return found

    def root(self, node: Node) -> str:
        """What a thing is the same as; a literal is itself."""
        if isinstance(node, LiteralValue):
            return ""
        row = self.draft.get("entities", name_key(node.id))
        return node.id if row is None else str(row.root)

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    def take(self, moved: Sequence[str], heard: Mapping[str, float]) -> None:
        """Weigh the facts that were made, revised, closed or forgotten, and those told again.

        Those that lie on a scale come first: what ended must not draw in what begins.
        """
        if not _is_wanted(self.entry):
            heard = {}
        new: list[tuple[bytes, Fact, float | None]] = []
        for fact_id in dict.fromkeys((*moved, *heard)):
            raw = record_key("facts", fact_id)
            fact: Fact | None = self.draft.get("facts", raw)
            weighed: Weighed | None = self.draft.get("belief_evidence", raw)
            scale = None if weighed is None else self.scale(weighed.belief)
            is_told = fact is not None and _speaks(fact, self.at)
            if weighed is None or scale is None or scale.turn != weighed.turn:
                if fact is not None and is_told:
                    new.append((raw, fact, heard.get(fact_id)))
                elif weighed is not None:
                    self.draft.drop("belief_evidence", raw)
            elif fact is None or not is_told:
                self._take_off(raw, weighed, scale, fact)
            elif weighed.refused != _was_refused(fact):
                # What did not get past what stood stands now, or the other way round.
                self._take_off(raw, weighed, scale, _replace(fact, superseded_by=fact.id))
                new.append((raw, fact, heard.get(fact_id)))
            else:
                self._shift(raw, weighed, scale, fact, heard.get(fact_id))
        for raw, fact, told in new if _is_wanted(self.entry) else ():
            self._lay_on(raw, fact, told)

    def withdraw(self, event_id: str) -> None:
        """Take off the claims that never got past what stood and rest on a cancelled event."""
        event = parse_id("evt", event_id)
        row = None if event is None else self.draft.get("derives", event)
        for name in row.ids if row is not None else ():
            raw = parse_id("fact", name)
            fact: Fact | None = None if raw is None else self.draft.get("facts", raw)
            if raw is None or fact is None or not _was_refused(fact):
                continue
            weighed: Weighed | None = self.draft.get("belief_evidence", raw)
            scale = None if weighed is None else self.scale(weighed.belief)
            if weighed is not None and scale is not None and scale.turn == weighed.turn:
                self._take_off(raw, weighed, scale, _replace(fact, superseded_by=None))

    def _lay_on(self, raw: bytes, fact: Fact, told: float | None) -> None:
        """A fact that had no part in a belief yet."""
        confidence = fact.confidence if told is None else told
        belief = self._belief_for(fact, confidence)
        if belief is None:
            return
        scale = self.scale(belief)
        assert scale is not None, "a belief is found by its scale"
        against = fact.polarity == "negative"
        speaker = fact.asserted_by if told is None else self._speaker
        telling, sources = self._telling(scale, fact, confidence, speaker)
        ends_us = self._known_to(fact, is_told=True)
        weighed = Weighed(
            belief=belief,
            turn=scale.turn,
            against=against,
            lasting=ends_us is None,
            redacted=_is_redacted(fact),
            refused=_was_refused(fact),
            cited=len(fact.supports),
            tellings=() if telling is None else (telling,),
        )
        confirmed = scale.confirmed or self._confirms(belief, scale, telling, against=against)
        known_to_us = scales.later(scale.known_to_us, ends_us)
        scale = _replace(scale, sources=sources, confirmed=confirmed, known_to_us=known_to_us)
        self._put_on(raw, fact, weighed, scale)

    def _put_on(self, raw: bytes, fact: Fact, weighed: Weighed, scale: Scale) -> None:
        """What a fact brings to its belief, on a scale that knows its sources."""
        self.draft.put("belief_evidence", raw, weighed)
        mass, against = weighed.mass, weighed.against
        start, end = scales.widened(scale, fact)
        after = _replace(
            scale,
            valid_from_us=start,
            valid_to_us=end,
            pro=scale.pro + (0 if against else mass),
            con=scale.con + (mass if against else 0),
            facts=scale.facts + 1,
            pros=scale.pros + (not against),
            redacted=scale.redacted + weighed.redacted,
            lasting=scale.lasting + weighed.lasting,
            shown=scales.shown(scale.shown, Shown(raw, mass, against)),
            held=(*scale.held, raw)[-limits.BELIEF_SUPPORTS_MAX :],
        )
        self._keep(weighed.belief, scale, after)
        self._note(weighed.belief, fact)

    def _telling(
        self, scale: Scale, fact: Fact, confidence: float, speaker: str | None
    ) -> tuple[Telling | None, dict[bytes, int]]:
        """What one more telling of a fact brings, and the sources with it; None: nothing new."""
        source = scales.source_of(speaker, scale, against=fact.polarity == "negative")
        repeats = scale.sources.get(source, 0)
        mass = posterior.mass_of(confidence, fact.trust, repeats)
        if _was_refused(fact):
            # It was judged already: a voice against what stands, and no more than that.
            mass //= posterior.REFUSED
        if repeats and not mass:
            return None, scale.sources
        return Telling(self._event, source, mass), {**scale.sources, source: repeats + 1}

    def _confirms(
        self, belief: bytes, scale: Scale, telling: Telling | None, *, against: bool
    ) -> bool:
        """Whether somebody else says the same: then what was believed turned out right."""
        is_other = telling is not None and telling.source not in scale.sources
        said = self.record(belief) if is_other and scale.pros and not against else None
        if said is None:
            return False
        calibration.resolve(self.draft, scale.family, said.confidence, at_us=self.at_us, outcome=1)
        return True

    def _shift(
        self, raw: bytes, weighed: Weighed, scale: Scale, fact: Fact, told: float | None
    ) -> None:
        """A fact that was told again, or lost a telling, or is so at another time than before."""
        kept, after = self._retold(weighed, scale, fact)
        lost = kept is not weighed
        if told is not None and all(one.event != self._event for one in weighed.tellings):
            kept, after = self._told(kept, after, fact, told)
        ends_us = self._known_to(fact, is_told=told is not None)
        kept = _replace(
            kept,
            lasting=weighed.lasting or ends_us is None,
            redacted=_is_redacted(fact),
            cited=len(fact.supports),
        )
        after = self._spanned(after)
        if kept == weighed and after == scale and fact.superseded_by is None:
            return
        self.draft.put("belief_evidence", raw, kept)
        shown = Shown(raw, kept.mass, kept.against)
        after = _replace(
            after,
            redacted=after.redacted + kept.redacted - weighed.redacted,
            lasting=after.lasting + kept.lasting - weighed.lasting,
            known_to_us=scales.later(after.known_to_us, ends_us),
            shown=tuple(shown if one.fact == raw else one for one in after.shown),
            held=tuple(dict.fromkeys((*after.held, raw)))[-limits.BELIEF_SUPPORTS_MAX :],
        )
        self._keep(kept.belief, scale, after)
        self._note(kept.belief, fact)
        self.touch(kept.belief).lost |= lost

    def _told(
        self, weighed: Weighed, scale: Scale, fact: Fact, confidence: float
    ) -> tuple[Weighed, Scale]:
        """One more telling of a fact, on both."""
        telling, sources = self._telling(scale, fact, confidence, self._speaker)
        if telling is None:
            return weighed, scale
        against, belief = weighed.against, weighed.belief
        after = _replace(
            scale,
            pro=scale.pro + (0 if against else telling.mass),
            con=scale.con + (telling.mass if against else 0),
            sources=sources,
            confirmed=scale.confirmed or self._confirms(belief, scale, telling, against=against),
        )
        if len(weighed.tellings) >= limits.BELIEF_TELLINGS_MAX:
            return _replace(weighed, rest=weighed.rest + telling.mass), after
        return _replace(weighed, tellings=(*weighed.tellings, telling)), after

    def _retold(self, weighed: Weighed, scale: Scale, fact: Fact) -> tuple[Weighed, Scale]:
        """Without the tellings that the fact no longer rests on: their events were withdrawn."""
        if len(fact.supports) >= weighed.cited:
            return weighed, scale
        cited = {parse_id("evt", event) for event in fact.supports}
        gone = [one for one in weighed.tellings if one.event not in cited]
        kept = tuple(one for one in weighed.tellings if one.event in cited)
        after = scales.without(scale, gone, against=weighed.against)
        return _replace(weighed, tellings=kept), after

    def _take_off(self, raw: bytes, weighed: Weighed, scale: Scale, fact: Fact | None) -> None:
        """A fact that was closed, cancelled or forgotten has no part in anything (001 §7.4)."""
        self._lift(raw, weighed, scale)
        touch = self.touch(weighed.belief)
        touch.forgotten |= fact is None
        if fact is not None and fact.superseded_by is not None:
            touch.successor = record_key("facts", fact.superseded_by)

    def _lift(self, raw: bytes, weighed: Weighed, scale: Scale) -> None:
        """All that a fact brought to a belief is taken off its scale."""
        self.draft.drop("belief_evidence", raw)
        rest = Telling(b"", b"", weighed.rest)
        after = scales.without(scale, [*weighed.tellings, rest], against=weighed.against)
        after = _replace(
            after,
            facts=scale.facts - 1,
            pros=scale.pros - (not weighed.against),
            redacted=scale.redacted - weighed.redacted,
            lasting=scale.lasting - weighed.lasting,
            shown=tuple(one for one in scale.shown if one.fact != raw),
            held=tuple(one for one in scale.held if one != raw),
        )
        self._keep(weighed.belief, scale, self._spanned(after))
        self.touch(weighed.belief).lost = True

    def move(self, raw: bytes, fact: Fact, weighed: Weighed) -> None:
        """A fact that speaks of another belief than before: what it brought goes along.

        Its tellings weigh as they would have, had they been told of that belief.
        """
        before = self.scale(weighed.belief)
        if before is None or before.turn != weighed.turn:
            return
        belief = self._belief_for(fact, fact.confidence, is_made=True)
        if belief is None or belief == weighed.belief:
            return
        self._lift(raw, weighed, before)
        self.touch(weighed.belief).joined_to = belief
        self.touch(belief).is_joined = True
        scale = self.scale(belief)
        assert scale is not None, "a belief is found by its scale"
        tellings, sources = self._weighed_anew(weighed, scale, fact)
        moved = _replace(weighed, belief=belief, turn=scale.turn, tellings=tellings)
        self._put_on(raw, fact, moved, _replace(scale, sources=sources))

    def _weighed_anew(
        self, weighed: Weighed, scale: Scale, fact: Fact
    ) -> tuple[tuple[Telling, ...], dict[bytes, int]]:
        """The tellings of a fact on another scale, and the sources with them."""
        sources, tellings = dict(scale.sources), []
        for one in weighed.tellings:
            is_known = one.source in sources or len(sources) < limits.BELIEF_SOURCES_MAX
            source = one.source if is_known else one.source[:1]
            repeats = sources.get(source, 0)
            sources[source] = repeats + 1
            mass = posterior.mass_of(fact.confidence, fact.trust, repeats)
            mass //= posterior.REFUSED if weighed.refused else 1
            tellings.append(_replace(one, source=source, mass=mass))
        return tuple(tellings), sources

    def _note(self, belief: bytes, fact: Fact) -> None:
        touch = self.touch(belief)
        touch.is_single |= fact.cardinality == "single" and not _was_refused(fact)
        if fact.superseded_by is not None:
            other = record_key("facts", fact.superseded_by)
            if _was_refused(fact):
                touch.refused_by = other
            else:
                touch.successor = other

    # ── for which time ───────────────────────────────────────────────────────────────────────

    def _keep(self, belief: bytes, before: Scale, after: Scale) -> None:
        """The scale, and with it the time for which the claim is believed."""
        self.put_scale(belief, after)
        span = (after.valid_from_us, after.valid_to_us)
        if span != (before.valid_from_us, before.valid_to_us):
            self.set_period(after.claim, belief, Period(belief, *span))
            self.touch(belief).is_opened |= after.valid_to_us is None

    def set_period(self, claim: bytes, belief: bytes, period: Period | None) -> None:
        """For which time a belief holds its claim true; None: for none."""
        row: Periods = self.draft.get("belief_claims", claim) or Periods()
        others = tuple(one for one in row.periods if one.belief != belief)
        kept = others if period is None else (*others, period)
        self.draft.put("belief_claims", claim, Periods(kept[-limits.BELIEF_PERIODS_MAX :]))

    def _spanned(self, scale: Scale) -> Scale:
        """Its validity by the facts it shows: all there are, unless there are very many."""
        against = scale.pros == 0
        rows = [self.draft.get("facts", one.fact) for one in scale.shown if one.against == against]
        spans = [scales.span(fact) for fact in rows if fact is not None]
        if not spans:
            return scale
        start, end = min(start for start, _ in spans), scales.latest([end for _, end in spans])
        return _replace(scale, valid_from_us=start, valid_to_us=end)

    def _known_to(self, fact: Fact, *, is_told: bool) -> int | None:
        """When this evidence lapses: the fact's own TTL, or the one asked for beliefs."""
        ends: list[int] = []
        if fact.recorded_to is not None and not _was_refused(fact):
            ends.append(to_us(fact.recorded_to))
        envelope = self.entry.envelope
        asked = envelope.directives if envelope is not None and is_told else None
        if asked is not None and asked.ttl_for_belief_layer is not None:
            length_us = round(seconds_of(asked.ttl_for_belief_layer) * 1_000_000)
            ends.append(min(self.at_us + length_us, _FOREVER_US))
        return min(ends) if ends else None

    # ── which belief ─────────────────────────────────────────────────────────────────────────

    def _belief_for(self, fact: Fact, confidence: float, *, is_made: bool = False) -> bytes | None:
        """The belief in what a fact says, for the time of which it says it; None: too weak."""
        scope_no = self.scope_no(fact)
        claim = self._claim(scope_no, fact)
        roots = (self.root(claim.subject), self.root(claim.object))
        key = claim_key(scope_no, claim, roots, refused=_was_refused(fact))
        row: Periods = self.draft.get("belief_claims", key) or Periods()
        belief = scales.matching(row.periods, fact)
        if belief is None:
            is_made = is_made or self._is_worth(fact, confidence)
            return self._begin(key, claim, roots, fact) if is_made else None
        scale = self.scale(belief)
        assert scale is not None, "a period without its scale"
        if scales.has_lapsed(scale, self.at_us):
            self._keep(belief, scale, scales.afresh(scale, fact))
        return belief

    def _claim(self, scope_no: int, fact: Fact) -> Claim:
        """What a fact says, of what its ends turned out to be; that they are one, of themselves."""
        claim = Claim(subject=fact.subject, predicate=fact.predicate, object=fact.object)
        if fact.predicate in IDENTITY or self.draft.get("belief_identity", b"") is None:
            return claim
        return _replace(
            claim,
            subject=self._meant(scope_no, claim.subject),
            object=self._meant(scope_no, claim.object),
        )

    def _meant(self, scope_no: int, node: Node) -> Node:
        if isinstance(node, LiteralValue):
            return node
        own = self.root(node)
        row: Identity | None = self.draft.get("belief_identity", identity_key(scope_no, own))
        if row is None or row.now == own:
            return node
        entity = self.draft.get("entities", name_key(row.now))
        return EntityRef(id=row.now, name=None if entity is None else entity.name)

    def _is_worth(self, fact: Fact, confidence: float) -> bool:
        """A claim below the floor is not made; a denial is, when it says more than it doubts."""
        if fact.polarity == "negative":
            return confidence >= 0.5
        mass = posterior.mass_of(confidence, fact.trust)
        return posterior.confidence_of(mass, 0) >= self.rules.confidence_floor

    def _begin(self, key: bytes, claim: Claim, roots: tuple[str, str], fact: Fact) -> bytes:
        """A belief in a claim that was not believed for this time."""
        name = derive_id("belief", self.entry.id, self._made)
        self._made += 1
        belief = record_key("beliefs", name)
        start, end = scales.span(fact)
        family = digest(fact.vocabulary or fact.predicate)
        refused = _was_refused(fact)
        scale = Scale(
            claim=key,
            family=family,
            valid_from_us=start,
            valid_to_us=end,
            refused=refused,
            resolved=refused,
        )
        self.put_scale(belief, scale)
        touch = self.touch(belief)
        touch.claim, touch.scope, touch.is_opened = claim, fact.scope, True
        self.set_period(key, belief, Period(belief, start, end))
        for node, root in zip((claim.subject, claim.object), roots, strict=True):
            thing = thing_of(node, root)
            if thing is not None:
                self.draft.put("beliefs_about", about_key(scale.scope_no, thing, belief), Mark())
        if fact.vocabulary is not None:
            self.draft.put("belief_terms", term_key(fact.vocabulary, belief), Mark())
        if fact.cardinality == "single" and not refused:
            place = value_key(scale.scope_no, claim.predicate, roots[0])
            known: Values = self.draft.get("belief_values", place) or Values()
            beliefs = (*known.beliefs, belief)[-limits.BELIEF_RIVALS_MAX :]
            self.draft.put("belief_values", place, Values(beliefs))
        return belief

    def scope_no(self, fact: Fact) -> int:
        """The number of the fact's scope: the entry's own or its target, or where the fact lies."""
        entry = self.entry
        if fact.scope in (entry.scope, entry.home_scope):
            return entry.scope_no if fact.scope == entry.scope else entry.home_scope_no
        basis = self.draft.get("facts_basis", record_key("facts", fact.id))
        assert basis is not None, "a fact of another scope lies on a line there"
        return int.from_bytes(basis.line[:4], "big")

    # ── rivals ───────────────────────────────────────────────────────────────────────────────

    def link(self) -> None:
        """Tie the beliefs that cannot both be true, before any of them is settled."""
        for belief, touch in list(self.touched.items()):
            for fact, resolution in (
                (touch.successor, "newer_wins"),
                (touch.refused_by, "refused"),
            ):
                other = None if fact is None else self.draft.get("belief_evidence", fact)
                if other is not None and other.belief != belief:
                    self._tie(belief, other.belief, resolution)
            if touch.is_single and touch.is_opened:
                self._oppose(belief, touch)
        for belief, touch in list(self.touched.items()):
            scale = self.scale(belief)
            for rival in scale.rivals if scale is not None else ():
                is_felt = rival.resolution == "unresolved" or touch.lost
                if is_felt and rival.resolution != "newer_wins":
                    self.touch(rival.belief)

    def _oppose(self, belief: bytes, touch: Touch) -> None:
        """Of values that exclude each other, those that the facts let stand are rivals."""
        scale, record = self.scale(belief), self.record(belief)
        claim = touch.claim if record is None else record.claim
        if scale is None or scale.valid_to_us is not None or not scale.pros or claim is None:
            return
        place = value_key(scale.scope_no, claim.predicate, self.root(claim.subject))
        known: Values | None = self.draft.get("belief_values", place)
        for other in known.beliefs if known is not None else ():
            rival = self.scale(other)
            if other == belief or rival is None or rival.claim == scale.claim:
                continue
            if rival.valid_to_us is None and rival.pros:
                self._tie(belief, other, "unresolved")

    def _tie(self, one: bytes, other: bytes, resolution: str) -> None:
        first, second = self.scale(one), self.scale(other)
        if first is None or second is None:
            return
        # How likely both would be, if nothing tied them.
        tension = round(100 * self._said(one, first) * self._said(other, second))
        self.put_scale(one, scales.tied(first, Rival(other, tension, resolution)))
        self.put_scale(other, scales.tied(second, Rival(one, tension, resolution)))
        self.touch(one)
        self.touch(other)

    def _said(self, belief: bytes, scale: Scale) -> float:
        """The confidence as it was last said, or as it would be."""
        record = self.record(belief)
        if record is None:
            return posterior.confidence_of(scale.pro, scale.con)
        return record.confidence


_FOREVER_US: Final = to_us(datetime.max.replace(tzinfo=UTC))


def _told_by(entry: Entry) -> tuple[bytes, str | None]:
    """The event whose telling this is, and who speaks in it."""
    if isinstance(entry.body, Annotation):
        return parse_id("evt", entry.body.about) or entry.id, None
    envelope = entry.envelope
    if envelope is None or envelope.observed_actor is None:
        return entry.id, entry.caller
    return entry.id, envelope.observed_actor.id


def _is_wanted(entry: Entry) -> bool:
    """Whether the client wants beliefs made of this event (001 §3.5.3)."""
    asked = entry.envelope.directives if entry.envelope is not None else None
    return asked is None or asked.extract is UNSET or "beliefs" in asked.extract


def _speaks(fact: Fact, at: datetime) -> bool:
    """Whether a fact was ever true and is known now, or is a claim that what stands refused."""
    is_known = fact.recorded_to is None or fact.recorded_to > at or _was_refused(fact)
    return is_known and (fact.valid_to is None or fact.valid_to > fact.valid_from)


def _was_refused(fact: Fact) -> bool:
    """Whether it never got past what stood: known from the start as superseded, but told."""
    is_closed = fact.recorded_to is not None and fact.recorded_to <= fact.recorded_from
    return is_closed and fact.superseded_by is not None and bool(fact.supports)


def _is_redacted(fact: Fact) -> bool:
    return fact.partial_reason == "supporting_evidence_redacted"
