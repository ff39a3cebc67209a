"""What does a claim do to what is known?  It adds, supports, ends, denies, corrects or supersedes.

A line holds what was said about one thing in the order of time. A claim is laid down where it
belongs, whenever it arrives, so that late news about an earlier time leaves what follows as it was.
"""

from typing import Final

import msgspec

from projectors.facts.claims import FIRST_US, expiry_us
from projectors.facts.lines import Line
from projectors.facts.rows import (
    BESIDE,
    CORRECTED,
    ENDED,
    OPPOSED,
    TOLD,
    Basis,
    Contrary,
    Rival,
    Segment,
    Telling,
)
from projectors.facts.rulings import Ruling, policy_of, rule
from projectors.facts.shapes import Claim, Source
from projectors.facts.sheet import Draft, Sheet, own_end, weigh
from schemas import limits
from schemas.ids import derive_id, parse_id
from schemas.layers import Conflict, ConflictReason, Fact, Resolution
from schemas.times import from_us, to_us

replace: Final = msgspec.structs.replace


class Teller:
    """One entry's claims, told to a sheet in their order."""

    def __init__(self, sheet: Sheet, source: Source, seed: bytes) -> None:
        self._sheet = sheet
        self._source = source
        self._seed = seed
        self._made = 0
        self._policy: str | None = None
        self._expires_us = expiry_us(source, sheet.at)

    @property
    def policy(self) -> str:
        """How the scope wants conflicts resolved; asked only when there is one."""
        if self._policy is None:
            self._policy = policy_of(self._sheet.view, self._source.scope)
        return self._policy

    def tell(self, claim: Claim) -> None:
        """Take one claim into what is known."""
        if claim.ends:
            self._end(claim)
        else:
            self._say(claim)

    # ── saying ───────────────────────────────────────────────────────────────────────────────

    def _say(self, claim: Claim) -> None:
        line = self._sheet.line(claim.main)
        wrong = self._wrong(line, claim)
        if wrong is not None:
            claim = _instead(claim, wrong)
        against = self._against(claim)
        ruling = self._ruling(against, claim)
        if against is not None and ruling not in {"take", "policy_keeps_both"}:
            self._reject(claim, against, ruling)
            return
        if against is not None and (ruling != "take" or self._source.no_supersede):
            # Both are to stand: the claim must not end its contrary by lying where it belongs.
            said = self._put_beside(line, claim)
            if not self._source.no_supersede:
                self._dispute(said, self._sheet.draft(against.fact), claim)
            return
        made = self._placed(line, claim) if wrong is None else self._correct(line, claim, wrong)
        if made is None or against is None:
            return
        contrary = self._sheet.draft(against.fact)
        if made.before is None and made.after.supersedes is None:
            made.after = replace(made.after, supersedes=contrary.after.id)
        if against.start_us >= made.basis.start_us:
            self._sheet.close(contrary, made.after.id)
        elif contrary.basis.contrary is None:
            # What stands beside its line is not ended by what lies on another: it is told to end.
            ended = replace(claim, from_us=against.start_us, to_us=claim.from_us, confidence=0.0)
            self._support(against, ended, ENDED)

    def _placed(self, line: Line, claim: Claim) -> Draft | None:
        """Lay a claim down on its line; None when what stands there does not give way."""
        standing = self._sheet.covering(line, claim.from_us)
        if standing is not None and self._sheet.is_live(standing):
            if standing.value == claim.value:
                return self._support(standing, claim)
            other = self._beside(line, claim)
            if other is not None:
                return self._support(other, claim)
            if self._source.no_supersede:
                return self._put_beside(line, claim)
            ruling = self._ruling(standing, claim)
            if ruling == "policy_keeps_both":
                rival = self._put_beside(line, claim)
                self._dispute(rival, self._sheet.draft(standing.fact), claim)
                return rival
            if ruling != "take":
                self._reject(claim, standing, ruling)
                return None
        return self._lay(line, claim, standing)

    def _lay(self, line: Line, claim: Claim, standing: Segment | None) -> Draft:
        """A claim takes its place; of what stood there, the time before and after it stands on."""
        sheet = self._sheet
        following = line.after(claim.from_us)
        gives_way = None
        if standing is not None and sheet.is_live(standing):
            gives_way = sheet.draft(standing.fact)
        goes_on = (
            following is not None
            and sheet.is_live(following)
            and following.value == claim.value
            and (claim.to_us is None or claim.to_us > following.start_us)
            and not self._is_opposed(claim, following.start_us)
        )
        if goes_on and following is not None:
            made = sheet.draft(following.fact)
            self._add_telling(made, self._telling(claim, TOLD, made))
        else:
            made = self._make(claim, gives_way)
        if gives_way is not None and standing is not None:
            ends_us = sheet.end_of(line, standing)
            if claim.to_us is not None and (ends_us is None or claim.to_us < ends_us):
                sheet.lay(self._rest(gives_way, claim.to_us, claim.root))
            if standing.start_us == claim.from_us:
                sheet.close(gives_way, made.after.id)
        if goes_on:
            sheet.move(made, claim.from_us)
        elif line.is_blank:
            sheet.lay_first(made)
        else:
            sheet.lay(made)
        sheet.hear(made, claim.confidence)
        return made

    def _make(self, claim: Claim, supersedes: Draft | None = None) -> Draft:
        """A fact known for the first time; where it lies is for others to say."""
        source = self._source
        telling = self._telling(claim, TOLD, None)
        fact = Fact(
            id=self._next_id(),
            scope=source.scope,
            subject=claim.subject,
            predicate=claim.predicate,
            object=claim.object,
            supports=[source.event_id],
            valid_from=from_us(claim.from_us),
            valid_to=None if claim.to_us is None else from_us(claim.to_us),
            recorded_from=self._sheet.at,
            recorded_to=None if self._expires_us is None else from_us(self._expires_us),
            confidence=claim.confidence,
            extractor=source.extractor,
            supersedes=None if supersedes is None else supersedes.after.id,
            polarity=claim.polarity,
            asserted_by=source.speaker,
            vocabulary=claim.vocabulary,
            vocabulary_confidence=claim.vocabulary_confidence,
            cardinality=claim.cardinality,
            kind=claim.kind,
            trust="high" if claim.trust else "low",
        )
        self._oppose(claim)
        basis = Basis(claim.main, claim.from_us, claim.value, [telling], claim.contrary)
        return self._sheet.add(fact, basis, claim.root)

    def _rest(self, draft: Draft, start_us: int, root: str) -> Draft:
        """What a fact says about the time after an exception to it: a fact of its own."""
        tellings = [replace(telling, from_us=start_us) for telling in draft.basis.tellings]
        fact = replace(
            draft.after,
            id=self._next_id(),
            valid_from=from_us(start_us),
            recorded_from=self._sheet.at,
            version=1,
            supersedes=None,
            superseded_by=None,
        )
        basis = replace(draft.basis, start_us=start_us, tellings=tellings, rivals=[])
        return self._sheet.add(fact, basis, root)

    def _next_id(self) -> str:
        self._made += 1
        return derive_id("fact", self._seed, self._made - 1)

    # ── beside ───────────────────────────────────────────────────────────────────────────────

    def _beside(self, line: Line, claim: Claim) -> Segment | None:
        """The same claim, where it stands beside its line."""
        if not line.has(BESIDE):
            return None
        found = self._sheet.covering(self._sheet.line(claim.beside), claim.from_us)
        return found if self._sheet.is_live(found) else None

    def _put_beside(self, line: Line, claim: Claim) -> Draft:
        line.mark(BESIDE)
        aside = self._sheet.line(claim.beside)
        standing = self._sheet.covering(aside, claim.from_us)
        if standing is not None and self._sheet.is_live(standing):
            return self._support(standing, claim)
        return self._lay(aside, replace(claim, main=claim.beside, contrary=None), standing)

    # ── supporting ───────────────────────────────────────────────────────────────────────────

    def _support(self, segment: Segment, claim: Claim, role: int = TOLD) -> Draft:
        """The same again: one more event to cite, unless it is cited or there are enough."""
        draft = self._sheet.draft(segment.fact)
        self._sheet.hear(draft, claim.confidence)
        if self._add_telling(draft, self._telling(claim, role, draft)):
            self._sheet.lay(draft)
        return draft

    def _add_telling(self, draft: Draft, telling: Telling) -> bool:
        """Let a fact rest on one more telling; False when that would say nothing new."""
        known = draft.basis.tellings
        moves_end = telling.to_us is not None and telling.to_us != own_end(known)
        moves_start = telling.role == CORRECTED or telling.from_us < draft.basis.start_us
        is_news = moves_end or moves_start
        if not is_news and any(one.event == telling.event for one in known):
            return False
        if len(known) >= limits.FACT_SUPPORTS_MAX:
            if not is_news:
                return False
            # The first telling stays, and what moved its times; a repetition makes room.
            spare = next(
                (one for one in reversed(known[1:]) if one.role == TOLD and one.to_us is None),
                known[-1],
            )
            known = [one for one in known if one is not spare]
        draft.basis = replace(draft.basis, tellings=[*known, telling])
        weigh(draft)
        return True

    def _telling(self, claim: Claim, role: int, draft: Draft | None) -> Telling:
        return Telling(
            event=self._source.event_id,
            role=role,
            confidence=claim.confidence,
            trust=claim.trust,
            is_first_speaker=draft is None or self._source.speaker == draft.after.asserted_by,
            from_us=claim.from_us,
            to_us=claim.to_us,
            expires_us=self._expires_us,
        )

    # ── ending ───────────────────────────────────────────────────────────────────────────────

    def _end(self, claim: Claim) -> None:
        """Something is over: what was known of it ends there; what was not is known now."""
        main = line = self._sheet.line(claim.main)
        ended = self._last_of(line, claim)
        if ended is None and main.has(BESIDE):
            line = self._sheet.line(claim.beside)
            ended = self._last_of(line, claim)
        if ended is None:
            if claim.is_dated:
                self._say(claim)
            else:
                self._end_unheard(main, claim)
            return
        ruling = self._ruling(ended, claim)
        if ruling not in {"take", "policy_keeps_both"}:
            self._reject(claim, ended, ruling)
            return
        is_over = ended.own_to_us is not None and ended.own_to_us <= (claim.to_us or 0)
        before = line.at_or_before(ended.start_us - 1)
        free_us = FIRST_US if before is None else self._sheet.end_of(line, before)
        begins_earlier = claim.is_dated and free_us is not None and free_us <= claim.from_us
        told = replace(
            claim,
            from_us=min(claim.from_us, ended.start_us) if begins_earlier else ended.start_us,
            # Heard once more that it is over, without a date: we know when.
            to_us=None if is_over and not claim.is_end_dated else claim.to_us,
        )
        draft = self._support(ended, told, ENDED)
        if told.from_us < draft.basis.start_us:
            self._sheet.move(draft, told.from_us)

    def _end_unheard(self, line: Line, claim: Claim) -> None:
        """It was so until then, and on the day before if nothing else was."""
        to_us = claim.to_us or 0
        before = line.at_or_before(to_us - 1)
        free_us = FIRST_US if before is None else self._sheet.end_of(line, before)
        if free_us is not None and free_us < to_us:
            start_us = max(to_us - limits.FACT_ENDED_S * 1_000_000, free_us)
            began = replace(claim, from_us=start_us)
            if self._against(began) is None:
                self._lay(line, began, None)

    def _last_of(self, line: Line, claim: Claim) -> Segment | None:
        """The last segment that says the same, of the time the claim is about."""
        found = self._sheet.last_of(Contrary(line.key, claim.value), (claim.to_us or 0) - 1)
        ends_us = None if found is None else self._sheet.end_of(line, found)
        is_other = claim.is_dated and ends_us is not None and ends_us <= claim.from_us
        return None if is_other else found

    # ── contraries and corrections ───────────────────────────────────────────────────────────

    def _against(self, claim: Claim) -> Segment | None:
        """What holds on another line and cannot be so together with the claim."""
        where, sheet = claim.contrary, self._sheet
        if where is None:
            return None
        values = sheet.line(claim.main if claim.polarity == "positive" else where.line)
        if claim.polarity == "positive" and not values.has(OPPOSED):
            return None
        for key in (where.line, claim.beside_contrary) if values.has(BESIDE) else (where.line,):
            found = sheet.covering(sheet.line(key), claim.from_us)
            if found is not None and found.value == where.value and sheet.is_live(found):
                return found
        return None

    def _oppose(self, claim: Claim) -> None:
        """From the first denial on, what lies on the lines of a predicate may have a contrary."""
        if claim.contrary is None:
            return
        main, other = self._sheet.line(claim.main), self._sheet.line(claim.contrary.line)
        if claim.polarity == "negative" or other.has(OPPOSED):
            main.mark(OPPOSED)
            other.mark(OPPOSED)

    def _is_opposed(self, claim: Claim, until_us: int) -> bool:
        """Whether the contrary of a claim begins between it and a moment."""
        if claim.contrary is None or not self._sheet.line(claim.main).has(OPPOSED):
            return False
        found = self._sheet.next_of(claim.contrary, claim.from_us - 1)
        return found is not None and found.start_us <= until_us

    def _wrong(self, line: Line, claim: Claim) -> Segment | None:
        """What a claim corrects: what held when it was made, or at the time it is about."""
        if not claim.corrects or self._source.no_supersede:
            return None
        for moment_us in (to_us(self._source.observed_at), claim.from_us):
            found = self._sheet.covering(line, moment_us)
            if found is not None and self._sheet.is_live(found):
                return found
        return None

    def _correct(self, line: Line, claim: Claim, wrong: Segment) -> Draft | None:
        """What stood was never so: the claim takes its place from its beginning."""
        sheet = self._sheet
        if wrong.value == claim.value:
            return self._redated(line, claim, wrong)
        ruling = self._ruling(wrong, claim)
        if ruling == "policy_keeps_both":
            return self._placed(line, claim)
        if ruling != "take":
            self._reject(claim, wrong, ruling)
            return None
        false = sheet.draft(wrong.fact)
        sheet.lift(false)
        before = sheet.covering(line, claim.from_us)
        if before is not None and sheet.is_live(before) and before.value == claim.value:
            made = self._support(before, claim)
        else:
            made = self._lay(line, claim, before)
            if made.before is None:
                made.after = replace(made.after, supersedes=false.after.id)
        sheet.close(false, made.after.id)
        return made

    def _redated(self, line: Line, claim: Claim, known: Segment) -> Draft | None:
        """The same, but it began at another time; unless something else lies between."""
        before, ends_us = line.at_or_before(known.start_us - 1), self._sheet.end_of(line, known)
        is_free = before is None or before.start_us < claim.from_us
        is_free = is_free and not self._is_opposed(claim, known.start_us)
        is_within = ends_us is None or claim.from_us < ends_us
        if not (claim.is_dated and is_free and is_within):
            return self._placed(line, claim)
        draft = self._sheet.draft(known.fact)
        self._sheet.hear(draft, claim.confidence)
        if self._add_telling(draft, self._telling(claim, CORRECTED, draft)):
            self._sheet.move(draft, claim.from_us)
        return draft

    # ── conflicts ────────────────────────────────────────────────────────────────────────────

    def _ruling(self, standing: Segment | None, claim: Claim) -> Ruling:
        if standing is None:
            return "take"
        return rule(self.policy, standing, claim.confidence, claim.trust)

    def _reject(self, claim: Claim, standing: Segment, reason: Ruling) -> None:
        """A claim that does not get past what stands is kept as superseded from the start."""
        assert reason != "take", "what is taken is not rejected"
        stands = self._sheet.draft(standing.fact)
        known = next((one for one in stands.basis.rivals if one.value == claim.value), None)
        if known is not None:
            conflict = self._sheet.conflict(known.conflict)
            self._sheet.conflicts[known.conflict] = replace(
                conflict, count=conflict.count + 1, last_at=self._sheet.at
            )
            return
        rival = self._make(claim)
        self._sheet.close(rival, stands.after.id)
        self._conflict(stands, rival, claim.value, reason, "kept_standing")

    def _dispute(self, rival: Draft, stands: Draft, claim: Claim) -> None:
        """Both stand, and say so, until someone decides."""
        for draft in (rival, stands):
            draft.after = replace(draft.after, partial=True, partial_reason="conflict_unresolved")
        if not any(one.fact == rival.raw for one in stands.basis.rivals):
            self._conflict(stands, rival, claim.value, "policy_keeps_both", "unresolved")

    def _conflict(
        self,
        stands: Draft,
        rival: Draft,
        value: bytes,
        reason: ConflictReason,
        resolution: Resolution,
    ) -> None:
        conflict = Conflict(
            id=derive_id("conflict", self._seed, len(self._sheet.conflicts)),
            scope=self._source.scope,
            subject=rival.after.subject,
            predicate=rival.after.predicate,
            standing=stands.after.id,
            rival=rival.after.id,
            reason=reason,
            policy=self.policy,
            resolution=resolution,
            at=self._sheet.at,
            count=1,
            last_at=self._sheet.at,
        )
        raw = parse_id("conflict", conflict.id)
        assert raw is not None, "an id of our own"
        self._sheet.conflicts[raw] = conflict
        for draft, other, claimed in ((stands, rival, value), (rival, stands, None)):
            rivals = draft.basis.rivals
            if len(rivals) < limits.FACT_RIVALS_MAX:
                one = Rival(other.raw, claimed, raw)
                draft.basis = replace(draft.basis, rivals=[*rivals, one])


def _instead(claim: Claim, wrong: Segment) -> Claim:
    """A correction without a date is about the same time as what it corrects."""
    is_over = claim.to_us is not None and claim.to_us <= wrong.start_us
    if claim.is_dated or is_over or claim.value == wrong.value:
        return claim
    ends_us = wrong.own_to_us if claim.to_us is None else claim.to_us
    return replace(claim, from_us=wrong.start_us, to_us=ends_us)
