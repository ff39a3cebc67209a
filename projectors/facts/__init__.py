"""What is so, since when, until when, and on whose word?  Facts with both times (001 §7.3).

A candidate of the text becomes a claim (`claims`), and a claim is told to what is known
(`telling`), by the rules of the scope where it meets another (`rulings`). What was said of one
thing lies on a line in the order of time (`lines`), so that it does not matter in which order it
arrives. When an event no longer counts, what rested on it is undone (`retraction`); what is
forgotten leaves nothing behind (`forgetting`).
"""

from collections.abc import Iterable

from projectors.base import Change, Projector, View
from projectors.facts.claims import claims_of, source_of
from projectors.facts.forgetting import forget
from projectors.facts.retraction import retract
from projectors.facts.rows import TABLES
from projectors.facts.sheet import Sheet
from projectors.facts.telling import Teller
from projectors.text import Extraction, extract
from schemas.entry import Annotation, Cancel, Directive, Entry, Experience, Forget

__all__ = ["FACTS", "fold", "retract"]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The facts that follow from an entry, or no longer do."""
    match entry.body:
        case Experience() | Annotation():
            return fold(entry, extract(entry), view)
        # What never was extracted left nothing to take back (ADR 0015).
        case Directive(command=Cancel(event_id=event_id, stages=stages)) if (
            "extracted" not in stages
        ):
            return retract(view, event_id, entry.recorded_at, entry.offset)
        case Directive(command=Forget() as command):
            return forget(entry, command, view)
        case _:
            return ()


def fold(entry: Entry, extraction: Extraction, view: View) -> Iterable[Change]:
    """The facts of candidates already found, whose mentions the view resolves."""
    named = view.get("entities_named", b"") if extraction.candidates else None
    if named is None or named.offset != entry.offset:
        return ()
    source = source_of(entry, extraction)
    if source is None or not source.scope_no:
        return ()
    sheet = Sheet(view, entry.recorded_at)
    teller = Teller(sheet, source, entry.id)
    for claim in claims_of(source, extraction, named, view):
        teller.tell(claim)
    return sheet.changes(entry.offset)


FACTS = Projector(name="facts", version=3, tables=TABLES, project=project)
