"""Did the extractor find what a reader finds?  Candidates beside the labels of extraction.jsonl.

A line holds a sentence of our own, its class, its part (`tuned`: the rules were written looking at
it; `held`: they were not) and the facts a reader takes from it. `optional` facts may be found or
not. A candidate is right when subject, predicate, object, polarity, times and the degree of doubt
all agree with a label; objects agree by their words.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from projectors.text import Candidate, Mention, extract
from projectors.text.lexicon import KIN_NAMES
from projectors.text.names import normal
from projectors.text.stems import singular
from projectors.text.words import NUMBER_WORDS
from schemas.entry import Entry, Experience
from schemas.envelope import Actor, Context, Envelope, Message
from schemas.ids import format_id, uuid7

LABELS: Final = Path(__file__).with_suffix(".jsonl").with_name("extraction.jsonl")
OBSERVED_AT: Final = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
SPEAKER: Final = "user:alice"
DOUBT: Final = 0.65
"""A hedged or reported statement is believed at most this much, a plain one at least."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reader takes from a sentence; lists hold readings that are equally right."""

    subject: str | list[str]
    predicate: str | list[str]
    object: str | list[str]
    negative: bool | None = False
    ends: bool = False
    unsure: bool = False
    optional: bool = False
    valid_from: str | None = None
    valid_to: str | None = None


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence and what it says."""

    class_: str = msgspec.field(name="class")
    part: Literal["tuned", "held"]
    text: str
    facts: list[Fact]
    role: Literal["user", "assistant"] = "user"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one sentence."""

    label: Label
    right: int
    wrong: list[str]
    missed: list[str]


def labels() -> list[Label]:
    """The labelled set."""
    lines = LABELS.read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Label) for line in lines if line.strip()]


def entry_of(
    text: str, *, role: str = "user", actor: str = SPEAKER, at: datetime = OBSERVED_AT
) -> Entry:
    """A message as the log would hold it."""
    raw = uuid7(1_778_600_000_000_000, 1)
    is_machine = role == "assistant"
    envelope = Envelope(
        scope="org:bench/user:alice",
        observed_actor=Actor(id="agent:helper" if is_machine else actor),
        subject=Actor(id=SPEAKER) if is_machine else None,
        modality="conversation",
        content=Message(role=role, text=text),  # type: ignore[arg-type]
        context=Context(observed_at=at),
        idempotency_key="k",
    )
    return Entry(
        offset=1,
        id=raw,
        event_id=format_id("evt", raw),
        tenant="bench",
        tenant_no=1,
        scope=envelope.scope,
        scope_no=1,
        caller="agent:helper",
        recorded_at=at,
        kind=1,
        body=Experience(envelope=envelope),
    )


def judge(label: Label) -> Verdict:
    """Run the extractor on a sentence and compare."""
    found = list(extract(entry_of(label.text, role=label.role)).candidates)
    taken: set[int] = set()
    wrong = []
    for candidate in found:
        agreeing = [at for at, fact in enumerate(label.facts) if agrees(candidate, fact)]
        taken.update(agreeing[:1] if not set(agreeing) & taken else ())
        if not agreeing:
            wrong.append(shown(candidate))
    required = [at for at, fact in enumerate(label.facts) if not fact.optional]
    missed = [_told(label.facts[at]) for at in required if at not in taken]
    right = sum(at in taken for at in required)
    return Verdict(label=label, right=right, wrong=wrong, missed=missed)


# ── agreement ────────────────────────────────────────────────────────────────────────────────


def agrees(candidate: Candidate, fact: Fact) -> bool:
    """Whether a candidate says what the label says."""
    if not any(_is_subject(candidate.subject, name) for name in _either(fact.subject)):
        return False
    names = set(_either(fact.predicate))
    is_negative = candidate.polarity == "negative"
    predicate = candidate.predicate
    if predicate == "dislikes" and "likes" in names and "dislikes" not in names:
        predicate, is_negative = "likes", not is_negative
    if predicate not in names or fact.negative not in (None, is_negative):
        return False
    if not any(_is_object(candidate, words) for words in _either(fact.object)):
        return False
    return _is_as_sure(candidate, fact) and _is_then(candidate, fact)


def _either(words: str | list[str]) -> list[str]:
    return words if isinstance(words, list) else [words]


def _is_subject(mention: Mention, name: str) -> bool:
    if name in {"I", "you"}:
        return mention.actor == SPEAKER
    owned = re.sub(r"^(?:my|our|your) ", "alice's ", name)
    if owned != name:
        kin = owned.rpartition(" ")[2]
        owned = owned.removesuffix(kin) + KIN_NAMES.get(kin, kin)
    return normal(mention.text) == normal(owned)


def _is_object(candidate: Candidate, words: str) -> bool:
    wanted, found = _tokens(words), _tokens(_object(candidate))
    if not words:
        return True
    if wanted <= found:
        return len(found) <= len(wanted) + 5
    return bool(found) and found <= wanted and 2 * len(found) >= len(wanted)


def _object(candidate: Candidate) -> str:
    value = candidate.object
    if isinstance(value, Mention):
        return value.text
    if isinstance(value.value, dict) and "amount" in value.value:
        return f"{value.value['amount']} {_CURRENCY.get(value.value['currency'], '')}"
    return str(value.value)


_CURRENCY: Final = {"USD": "$", "EUR": "euros", "GBP": "pounds"}
_SMALL: Final = frozenset({"a", "an", "the", "my", "our", "his", "her", "their", "to", "some"})


def _tokens(words: str) -> frozenset[str]:
    found = re.findall(r"[\w@./+'-]+", words.lower().replace(",", ""))
    plain = (singular(token.removesuffix("'s").strip("./")) for token in found)
    told = [str(NUMBER_WORDS.get(token, token)) for token in plain if token and token not in _SMALL]
    return frozenset(told)


def _is_as_sure(candidate: Candidate, fact: Fact) -> bool:
    return candidate.confidence <= DOUBT if fact.unsure else candidate.confidence >= DOUBT


def _is_then(candidate: Candidate, fact: Fact) -> bool:
    if fact.ends and not candidate.ends:
        return False
    if candidate.ends and not fact.ends and fact.valid_to is None and fact.negative is not None:
        return False
    return _is_day(candidate.valid_from, fact.valid_from) and _is_day(
        candidate.valid_to, fact.valid_to
    )


def _is_day(moment: datetime | None, day: str | None) -> bool:
    return day is None or (moment is not None and f"{moment:%Y-%m-%d}" == day)


def shown(candidate: Candidate) -> str:
    """A candidate in a line."""
    marks = "".join(
        (
            "" if candidate.polarity == "positive" else " not",
            " ends" if candidate.ends else "",
            f" from {candidate.valid_from:%Y-%m-%d}" if candidate.valid_from else "",
            f" to {candidate.valid_to:%Y-%m-%d}" if candidate.valid_to else "",
        )
    )
    return (
        f"{candidate.subject.text} · {candidate.predicate} · {_object(candidate)}{marks}"
        f" ({candidate.confidence:.2f})"
    )


def _told(fact: Fact) -> str:
    parts = ("/".join(_either(part)) for part in (fact.subject, fact.predicate, fact.object))
    return " · ".join(parts)
