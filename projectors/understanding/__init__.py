"""What has been understood?  Concepts of the things that facts speak of, in versions (001 §7.5).

A tally counts what there is about each thing (`rows`, `ledger`); when there is enough, or enough
more, a version is made from the strongest of it (`synthesis`). Facts about sameness merge and split
concepts (`identity`). A directive makes a scope's concepts anew; a model's summary comes as an
annotation and is a version of its own. Readers ask `reading` how far behind a version is.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from projectors.base import Change, Projector, Put, View
from projectors.records import moved, record_key
from projectors.rows import Moved
from projectors.understanding.identity import judge
from projectors.understanding.keys import tally_key
from projectors.understanding.ledger import Ledger
from projectors.understanding.rows import TABLES, Rules, Synthesis
from projectors.understanding.synthesis import again, forget, settle, synthesise, write
from schemas import limits
from schemas.entry import (
    Annotation,
    Directive,
    Entry,
    Forget,
    ForgottenRecord,
    SetPolicy,
    Synthesize,
)
from schemas.ids import format_id, parse_id
from schemas.layers import Concept, SynthesisInputs
from schemas.policy import LayerRules

__all__ = ["UNDERSTANDING"]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The concepts after one entry, from the facts that it moved and the episodes it sealed."""
    match entry.body:
        case Directive(command=SetPolicy(tier="tenant", document=document)):
            asked = document.layers or LayerRules()
            rules = Rules(invalidation_threshold=asked.understanding_invalidation_threshold)
            return (Put(table="concept_rules", key=b"", value=rules),)
        case Directive(command=Synthesize() as command):
            return _synthesised(entry, view, command)
        case Directive(command=Forget(records=records)):
            return _counted(entry, view, records)
        case Annotation(output=output) if isinstance(output.get("concept_id"), str):
            return _told(entry, view)
        case _:
            return _counted(entry, view)


def _counted(
    entry: Entry, view: View, forgotten: Sequence[ForgottenRecord] = ()
) -> Iterable[Change]:
    facts, episodes = _moved(entry, view, "facts"), _sealed(entry, view)
    if not facts and not episodes and not forgotten:
        return ()
    ledger = Ledger(entry, view)
    made = forget(ledger, view, forgotten)
    ledger.take(facts)
    ledger.witness(episodes)
    made += judge(ledger)
    made += settle(ledger, view.get("concept_rules", b"") or Rules())
    return _said(ledger, made)


def _moved(entry: Entry, view: View, layer: str) -> list[str]:
    row: Moved | None = view.get(f"{layer}_moved", b"")
    return row.ids if row is not None and row.offset == entry.offset else []


def _sealed(entry: Entry, view: View) -> list[str]:
    """The episodes that the entry sealed: most only grow by it, and that is not counted."""
    moved_ids = _moved(entry, view, "episodes")
    rows = ((name, view.get("episodes", record_key("episodes", name))) for name in moved_ids)
    return [name for name, episode in rows if episode is not None and episode.sealed]


def _said(ledger: Ledger, made: Iterable[str]) -> Iterable[Change]:
    names = list(dict.fromkeys(made))
    if names:
        ledger.draft.take([moved("concepts", ledger.entry.offset, names)])
    return ledger.draft.changes()


# ── on demand ────────────────────────────────────────────────────────────────────────────────


def _synthesised(entry: Entry, view: View, command: Synthesize) -> Iterable[Change]:
    """Make the concepts of a scope anew, as many as one entry may; where to go on is left."""
    ledger = Ledger(entry, view)
    made: list[str] = []
    looked_at, left_at = 0, None
    for raw, concept in _concepts_in(view, entry.scope_no, command):
        if looked_at >= limits.SYNTHESIS_CONCEPTS_MAX:
            break
        looked_at, left_at = looked_at + 1, format_id("concept", raw)
        key, tally = ledger.resolve(tally_key(entry.scope_no, concept))
        is_current = tally is not None and tally.concept == raw
        if tally is not None and is_current and (command.force or tally.fresh):
            version = synthesise(ledger, key)
            made += [] if version is None else [version.id]
    else:
        left_at = None
    row = Synthesis(looked_at=looked_at, made=len(made), next=left_at)
    ledger.draft.put("concept_syntheses", entry.id, row)
    return _said(ledger, made)


def _concepts_in(view: View, scope_no: int, command: Synthesize) -> Iterator[tuple[bytes, Concept]]:
    """The concepts of a scope that a directive means, in the order of their ids."""
    after = b"" if command.after is None else parse_id("concept", command.after) or b""
    topics = {topic.casefold() for topic in command.topics}
    for key, _ in view.scan("concepts_in", scope_no.to_bytes(4, "big")):
        raw = key[4:]
        concept: Concept | None = view.get("concepts", raw) if raw > after else None
        if concept is None or concept.canonical_id is not None or concept.valid_to is not None:
            continue
        names = {name.casefold() for name in (concept.name, *concept.aliases, *concept.topics)}
        if not topics or topics & names:
            yield raw, concept


def _told(entry: Entry, view: View) -> Iterable[Change]:
    """A model's summary: a version of its own, made by the model."""
    body = entry.body
    assert isinstance(body, Annotation), "an annotation was asked for"
    raw = parse_id("concept", body.output["concept_id"])
    summary = body.output.get("summary")
    before: Concept | None = None if raw is None else view.get("concepts", raw)
    is_fit = isinstance(summary, str) and summary.strip()
    if before is None or not is_fit or before.scope != entry.scope:
        return _counted(entry, view)
    ledger = Ledger(entry, view)
    inputs = before.synthesis_inputs
    after = again(
        before,
        ledger.at,
        summary=str(summary).strip()[: limits.CONCEPT_SUMMARY_CHARS_MAX],
        synthesis_inputs=_by(inputs, body),
    )
    write(ledger, before, after, entry.scope_no)
    return _said(ledger, [before.id])


def _by(inputs: SynthesisInputs, annotation: Annotation) -> SynthesisInputs:
    return msgspec.structs.replace(
        inputs, synthesizer=annotation.model, synthesizer_version=annotation.version
    )


UNDERSTANDING = Projector(name="understanding", version=1, tables=TABLES, project=project)
