"""What is now believed?  Every scale that moved is read, and its belief revised, held or let go.

A revision is made when it matters (001 §7.4): at once when the stance, the validity, a rival or the
loss of a support says so; otherwise when the confidence moved by the smallest step that counts or
the cooldown is over, and not more often than the hour allows. What is not shown yet waits, visibly.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from projectors.beliefs import calibration, posterior
from projectors.beliefs.desk import Desk, Touch
from projectors.beliefs.keys import about_key, due_key, thing_of
from projectors.beliefs.rows import Deleted, Held, Scale, Weighed
from projectors.beliefs.shapes import Judgement
from projectors.records import create, past_key, put, revise, scope_row_key
from projectors.rows import Mark
from schemas import limits
from schemas.ids import format_id
from schemas.layers import (
    Belief,
    Contradiction,
    Evidence,
    Fact,
    RevisionPolicy,
    Stance,
)
from schemas.times import from_us, seconds_of, to_us

_replace: Final = msgspec.structs.replace
_POLICY: Final = RevisionPolicy()
_COOLDOWN: Final = timedelta(seconds=seconds_of(_POLICY.cooldown))
_HOUR_US: Final = 3600 * 1_000_000


def settle(desk: Desk) -> list[str]:
    """Settle every belief that was touched; the ids of those whose record moved."""
    desk.link()
    # What is let go comes first: nothing else is to be at odds with it.
    ordered = sorted(desk.touched.items(), key=lambda item: not item[1].lost)
    return [
        format_id("belief", belief) for belief, touch in ordered if _settled(desk, belief, touch)
    ]


def _settled(desk: Desk, belief: bytes, touch: Touch) -> bool:
    scale = desk.scale(belief)
    before = desk.record(belief)
    if scale is None or (before is None and touch.claim is None):
        return False
    if scale.facts == 0:
        return _let_go(desk, belief, scale, touch)
    judged = _judge(desk, scale)
    if touch.is_outdated:
        judged = _replace(judged, stance="deprecated")
    lost = touch.lost or judged.redacted_fraction == 1.0
    is_low = judged.confidence < desk.rules.confidence_floor
    if lost and is_low and judged.stance != "contradicted":
        return _let_go(desk, belief, scale, touch)
    after = _shown(desk, belief, scale, judged, touch)
    if before is None:
        _publish_first(desk, belief, scale, after)
        return True
    if scale.held_us is None and _says_the_same(before, after):
        return False
    is_contested = any(one.resolution == "unresolved" for one in scale.rivals)
    is_urgent = touch.lost or touch.is_joined or is_contested or _is_urgent(before, after, desk.at)
    if is_urgent or _is_due(before, after, scale, desk):
        _publish(desk, belief, scale, before, after)
        return True
    _hold(desk, belief, scale)
    return False


# ── reading the scale ────────────────────────────────────────────────────────────────────────


def _stance(desk: Desk, scale: Scale) -> Stance:
    """What a rival's scale says, and nothing else of it."""
    if round(scale.redacted / scale.facts, 4) == 1.0:
        return "uncertain"
    con = _against(desk, scale)
    return posterior.stance_of(posterior.confidence_of(scale.pro, con), scale.pro, con)


def _against(desk: Desk, scale: Scale) -> int:
    con = scale.con + _opposed(desk, scale)
    # Somebody said it, and what stood was believed instead: that is the stronger voice.
    return max(con, 2 * scale.pro) if scale.refused else con


def _judge(desk: Desk, scale: Scale) -> Judgement:
    con = _against(desk, scale)
    confidence = posterior.confidence_of(scale.pro, con)
    interval = posterior.interval_of(scale.pro, con)
    stance = posterior.stance_of(confidence, scale.pro, con)
    fraction = round(scale.redacted / scale.facts, 4)
    if fraction == 1.0:
        # 001 §11.3 phase 5: nothing that speaks for it can be looked at any more.
        factor = desk.rules.redaction_factor
        confidence, stance = round(confidence * factor, 4), "uncertain"
        interval = _replace(
            interval,
            lower=round(interval.lower * factor, 4),
            upper=round(interval.upper * factor, 4),
        )
    return Judgement(
        stance=stance,
        confidence=confidence,
        interval=interval,
        redacted_fraction=fraction,
        partial_reason="supporting_evidence_redacted" if fraction == 1.0 else None,
    )


def _opposed(desk: Desk, scale: Scale) -> int:
    """What speaks for a rival speaks against this, as long as neither has given way."""
    mass = 0
    for rival in scale.rivals:
        other = desk.scale(rival.belief) if rival.resolution != "newer_wins" else None
        if other is None:
            continue
        is_open = scale.valid_to_us is None and other.valid_to_us is None
        mass += other.pro if is_open or rival.resolution == "refused" else 0
    return mass


def _shown(desk: Desk, belief: bytes, scale: Scale, judged: Judgement, touch: Touch) -> Belief:
    """The record as the scale would have it now."""
    before = desk.record(belief)
    claim = touch.claim if before is None else before.claim
    assert claim is not None, "a belief is in something"
    name = format_id("belief", belief)
    total = scale.pro + scale.con + posterior.PRIOR_PRO + posterior.PRIOR_CON
    return Belief(
        id=name,
        scope=touch.scope if before is None else before.scope,
        claim=claim,
        stance=judged.stance,
        confidence=judged.confidence,
        confidence_interval=judged.interval,
        calibration=calibration.block_of(desk.draft, scale.family, desk.at_us),
        supports=[
            Evidence(
                type="fact",
                id=format_id("fact", one.fact),
                weight=round(one.mass / total, 4),
                polarity="against" if one.against else "supports",
            )
            for one in scale.shown
        ],
        contradicts=_contradictions(desk, scale, judged.stance),
        revision_policy=_POLICY,
        valid_from=from_us(scale.valid_from_us),
        valid_to=_instant(scale.valid_to_us),
        recorded_from=desk.at,
        recorded_to=None if scale.lasting else _instant(scale.known_to_us),
        last_revised_at=desk.at,
        revision_count=0 if before is None else before.revision_count + 1,
        supporting_evidence_redacted=scale.redacted > 0,
        supporting_evidence_redacted_fraction=judged.redacted_fraction,
        why_url=f"/v1/beliefs/why?belief_id={name}",
        evidence_count=scale.facts,
        version=1 if before is None else before.version + 1,
        superseded_by=_successor(desk, belief, scale, touch),
        partial=judged.partial_reason is not None,
        partial_reason=judged.partial_reason,
    )


def _contradictions(desk: Desk, scale: Scale, stance: Stance) -> list[Contradiction]:
    """The rivals that are still there, and what came of the tension."""
    found = []
    for rival in scale.rivals:
        resolution = rival.resolution
        if desk.draft.get("beliefs_deleted", rival.belief) is not None:
            continue
        if resolution == "unresolved":
            other = desk.scale(rival.belief)
            if other is None or other.facts == 0:
                continue
            is_over = other.valid_to_us is not None or scale.valid_to_us is not None
            if is_over or {stance, _stance(desk, other)} == {"supported", "contradicted"}:
                resolution = "higher_confidence_wins"
        elif resolution == "refused":
            resolution = "higher_confidence_wins"
        found.append(
            Contradiction(
                belief_id=format_id("belief", rival.belief),
                tension=rival.tension / 100,
                resolution=resolution,
            )
        )
    return found


def _successor(desk: Desk, belief: bytes, scale: Scale, touch: Touch) -> str | None:
    """The belief that took its place, once it is over."""
    if scale.valid_to_us is None:
        return None
    before = desk.record(belief)
    known = None if before is None else before.superseded_by
    return _follower(desk, belief, touch) or known


def _follower(desk: Desk, belief: bytes, touch: Touch) -> str | None:
    if touch.successor is None:
        return None
    follower: Weighed | None = desk.draft.get("belief_evidence", touch.successor)
    if follower is None or follower.belief == belief:
        return None
    return format_id("belief", follower.belief)


# ── when ─────────────────────────────────────────────────────────────────────────────────────


def _says_the_same(before: Belief, after: Belief) -> bool:
    """Whether a revision would change nothing but its own number and times."""
    return before == _replace(
        after,
        calibration=before.calibration,
        recorded_from=before.recorded_from,
        last_revised_at=before.last_revised_at,
        revision_count=before.revision_count,
        version=before.version,
    )


def _is_urgent(before: Belief, after: Belief, at: datetime) -> bool:
    """Whether readers would be misled by waiting."""
    return (
        before.stance != after.stance
        or before.valid_from != after.valid_from
        or before.valid_to != after.valid_to
        or before.superseded_by != after.superseded_by
        or before.partial_reason != after.partial_reason
        or before.supporting_evidence_redacted != after.supporting_evidence_redacted
        or _ties(before) != _ties(after)
        or _runs_out(before, after, at)
    )


def _ties(belief: Belief) -> list[tuple[str, str]]:
    return [(one.belief_id, one.resolution) for one in belief.contradicts]


def _runs_out(before: Belief, after: Belief, at: datetime) -> bool:
    """Whether it would lapse, by a TTL that no longer holds, before it is looked at again."""
    if before.recorded_to is None or before.recorded_to == after.recorded_to:
        return False
    return after.recorded_to is None or before.recorded_to <= at + _COOLDOWN


def _is_due(before: Belief, after: Belief, scale: Scale, desk: Desk) -> bool:
    recent = sum(1 for one in scale.revised_us if one > desk.at_us - _HOUR_US)
    if recent >= _POLICY.max_revisions_per_hour:
        return False
    step = abs(after.confidence - before.confidence)
    is_cool = desk.at >= before.last_revised_at + _COOLDOWN
    return is_cool or step >= _POLICY.min_evidence_delta


# ── what becomes of it ───────────────────────────────────────────────────────────────────────


def _publish_first(desk: Desk, belief: bytes, scale: Scale, after: Belief) -> None:
    desk.draft.take(create("beliefs", scale.scope_no, after, _events(desk, scale)))
    desk.put_scale(belief, _replace(scale, held=()))


def _publish(desk: Desk, belief: bytes, scale: Scale, before: Belief, after: Belief) -> None:
    known = _replace(before, held_from=_instant(scale.held_us))
    desk.draft.take(revise("beliefs", known, after, desk.at, _events(desk, scale)))
    revised = (*scale.revised_us, desk.at_us)[-_POLICY.max_revisions_per_hour :]
    if scale.held_us is not None:
        _release(desk, belief)
    resolved = scale.resolved or _resolves(desk, scale, before, after)
    scale = _replace(scale, held=(), held_us=None, revised_us=revised, resolved=resolved)
    desk.put_scale(belief, scale)


def _events(desk: Desk, scale: Scale) -> list[str]:
    """The events behind the evidence that a version is the first to show."""
    facts: list[Fact | None] = [desk.draft.get("facts", raw) for raw in scale.held]
    found = [event for fact in facts if fact is not None for event in fact.supports]
    return list(dict.fromkeys(found))[: limits.BELIEF_EVENTS_MAX]


def _resolves(desk: Desk, scale: Scale, before: Belief, after: Belief) -> bool:
    """Whether this revision tells how good the confidence was; each belief tells it once."""
    is_overturned = after.stance == "contradicted" and before.stance != "contradicted"
    is_over = before.valid_to is None and after.superseded_by is not None
    if is_overturned or is_over:
        outcome = 0 if is_overturned else 1
        calibration.resolve(
            desk.draft, scale.family, before.confidence, at_us=desk.at_us, outcome=outcome
        )
    return is_overturned or is_over


def _hold(desk: Desk, belief: bytes, scale: Scale) -> None:
    """The evidence waits: since when is written down once, until when as often as it must."""
    held: Held | None = desk.draft.get("beliefs_held", belief)
    if held is not None and held.due_s * 1_000_000 > desk.at_us:
        return
    since = desk.at if held is None else held.since
    _release(desk, belief)
    due_s = -(-desk.at_us // 1_000_000) + round(_COOLDOWN.total_seconds())
    desk.put_scale(belief, _replace(scale, held_us=to_us(since)))
    desk.draft.put("beliefs_held", belief, Held(since=since, due_s=due_s))
    desk.draft.put("belief_due", due_key(due_s, belief), Mark())


def _release(desk: Desk, belief: bytes) -> None:
    held: Held | None = desk.draft.get("beliefs_held", belief)
    if held is not None:
        desk.draft.drop("beliefs_held", belief)
        desk.draft.drop("belief_due", due_key(held.due_s, belief))


def _let_go(desk: Desk, belief: bytes, scale: Scale, touch: Touch) -> bool:
    """Nothing holds it up: it is replaced as never true, or deleted below the floor (001 §7.4)."""
    before = desk.record(belief)
    desk.draft.drop("belief_scales", belief)
    for one in scale.shown:
        desk.draft.drop("belief_evidence", one.fact)
    desk.set_period(scale.claim, belief, None)
    if scale.held_us is not None:
        _release(desk, belief)
    if before is None:
        return False
    if touch.forgotten:
        _forget(desk, belief, scale.scope_no, before)
        return True
    if not scale.resolved and touch.joined_to is None:
        calibration.resolve(
            desk.draft, scale.family, before.confidence, at_us=desk.at_us, outcome=0
        )
    ended = desk.at if before.recorded_to is None else min(desk.at, before.recorded_to)
    follower = _follower(desk, belief, touch) if scale.facts == 0 else None
    if touch.joined_to is not None and scale.facts == 0:
        follower = format_id("belief", touch.joined_to)
    closed = _replace(
        before, recorded_to=ended, superseded_by=follower, held_from=_instant(scale.held_us)
    )
    desk.draft.take([put("beliefs", closed, [])])
    if follower is None:
        mark = Deleted(at=desk.at, by=desk.entry.event_id)
        desk.draft.put("beliefs_deleted", belief, mark)
    return True


def forget(desk: Desk, belief: bytes, scope_no: int) -> bool:
    """A belief is itself forgotten, whatever speaks for it; told again, it is another one."""
    before, scale = desk.record(belief), desk.scale(belief)
    if before is None:
        return False
    if scale is not None:
        desk.touched.pop(belief, None)
        _let_go(desk, belief, scale, Touch(forgotten=True))
    else:
        _forget(desk, belief, scope_no, before)
    return True


def _forget(desk: Desk, belief: bytes, scope_no: int, before: Belief) -> None:
    """What it rested on was forgotten: no version of it stays."""
    draft = desk.draft
    draft.drop("beliefs", belief)
    for version in range(1, before.version):
        draft.drop("beliefs_past", past_key("beliefs", before.id, version))
    draft.drop("beliefs_in", scope_row_key("beliefs", scope_no, before.id))
    for node in (before.claim.subject, before.claim.object):
        thing = thing_of(node, desk.root(node))
        if thing is not None:
            draft.drop("beliefs_about", about_key(scope_no, thing, belief))
    mark = Deleted(at=desk.at, by=desk.entry.event_id, forgotten=True)
    draft.put("beliefs_deleted", belief, mark)


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)
