"""What is there to say about a thing, in a few sentences?  Extractive: its strongest facts."""

from collections.abc import Iterable, Sequence

from projectors.text.statements import month, name_of, statement, words_of
from projectors.understanding.rows import PREDICATE, Tally
from schemas import limits
from schemas.layers import Episode, Fact, LiteralValue


def summarise(tally: Tally, facts: Sequence[Fact], episodes: Iterable[Episode]) -> str:
    """`Acme Corp: seat count 200 since May 2026; stage signed. Alice works at Acme Corp.`"""
    if tally.kind == PREDICATE:
        told = [statement(f.subject, f.predicate, f.object, f.polarity) for f in facts]
        parts = [f"{tally.name}: {'; '.join(told[: limits.CONCEPT_PHRASES_MAX])}."]
    else:
        parts = _about(tally, facts)
        named = [episode.name for episode in episodes if episode.name]
        if named:
            parts.append(f"Seen in: {'; '.join(named)}.")
    return _cut(" ".join(parts))


def _about(tally: Tally, facts: Sequence[Fact]) -> list[str]:
    own = [fact for fact in facts if _is_about(fact, tally)]
    others = [fact for fact in facts if not _is_about(fact, tally)]
    parts = []
    if own:
        phrases = dict.fromkeys(_phrase(fact) for fact in own)
        parts.append(f"{tally.name}: {'; '.join([*phrases][: limits.CONCEPT_PHRASES_MAX])}.")
    parts += [
        f"{statement(fact.subject, fact.predicate, fact.object, fact.polarity)}."
        for fact in others[: limits.CONCEPT_MENTIONS_MAX]
    ]
    return parts or [f"{tally.name}."]


def _is_about(fact: Fact, tally: Tally) -> bool:
    """Whether the thing is what the fact speaks about, and not what it mentions."""
    if isinstance(fact.subject, LiteralValue) or fact.subject.id == tally.what:
        return True
    value = fact.object
    is_mentioned = not isinstance(value, LiteralValue) and value.id == tally.what
    return not is_mentioned


def _phrase(fact: Fact) -> str:
    said = f"{words_of(fact.predicate, fact.polarity)} {name_of(fact.object)}"
    if fact.valid_to is not None:
        return f"{said} until {month(fact.valid_to)}"
    # Of what holds one value at a time, since when it does is part of what is known.
    return f"{said} since {month(fact.valid_from)}" if fact.cardinality == "single" else said


def _cut(text: str) -> str:
    if len(text) <= limits.CONCEPT_SUMMARY_CHARS_MAX:
        return text
    return text[: limits.CONCEPT_SUMMARY_CHARS_MAX - 1].rstrip() + "…"
