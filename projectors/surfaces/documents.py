"""What stands under a surface's keys, and what stood there before?  (DESIGN §1, ADR 0029)

A document is what the last experience with its key says; every earlier version stays until the
payload it came from is erased. Then the last version that is left stands there, as in a replay
that never reads the erased one. The labels that lead to a document are those of what stands there.
"""

from collections.abc import Iterable, Iterator

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from schemas.entry import Directive, Entry, Experience, Forget, PutDocument
from schemas.ids import raw_of
from schemas.surfaces.document import Document, label_place, place, version_place


class VersionOf(msgspec.Struct, frozen=True):
    """Which version of which document an event made (`document_events`, by its sixteen bytes)."""

    place: bytes
    version: int


class Labelled(msgspec.Struct, frozen=True):
    """Where a document with this label lies (`document_labels`, by label and document)."""

    place: bytes


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The documents after one entry."""
    match entry.body:
        case Experience(document=put):
            return () if put is None else _written(entry, put, view)
        case Directive(command=Forget() as forget) if forget.cascade != "derived_only":
            return _erased(forget, view)
    return ()


def _written(entry: Entry, put: PutDocument, view: View) -> Iterator[Change]:
    at = place(put.surface, put.kind, put.key)
    row = Document(
        surface=put.surface,
        kind=put.kind,
        key=put.key,
        version=put.version,
        state=put.state,
        value=put.value,
        scope=entry.scope,
        by=entry.caller,
        at=entry.recorded_at,
        offset=entry.offset,
        event_id=entry.event_id,
        labels=put.labels,
    )
    yield from _relabelled(at, view.get("documents", at), row)
    yield Put(table="documents", key=at, value=row)
    yield Put(table="document_versions", key=version_place(at, put.version), value=row)
    made = VersionOf(at, put.version)
    yield Put(table="document_events", key=entry.id, value=made)


def _erased(forget: Forget, view: View) -> Iterator[Change]:
    gone: dict[bytes, set[bytes]] = {}
    for event in forget.events:
        raw = raw_of("evt", event.event_id)
        made: VersionOf | None = view.get("document_events", raw)
        if made is not None:
            gone.setdefault(made.place, set()).add(version_place(made.place, made.version))
            yield Drop(table="document_events", key=raw)
    for at, versions in gone.items():
        for key in sorted(versions):
            yield Drop(table="document_versions", key=key)
        left = [row for key, row in view.scan("document_versions", at) if key not in versions]
        yield from _relabelled(at, view.get("documents", at), left[-1] if left else None)
        if left:
            yield Put(table="documents", key=at, value=left[-1])
        else:
            yield Drop(table="documents", key=at)


def _relabelled(at: bytes, before: Document | None, after: Document | None) -> Iterator[Change]:
    """Lead from the labels of what stands, and no longer from those of what stood."""
    was, now = _label_keys(at, before), _label_keys(at, after)
    for key in was:
        if key not in now:
            yield Drop(table="document_labels", key=key)
    for key in now:
        if key not in was:
            yield Put(table="document_labels", key=key, value=Labelled(at))


def _label_keys(at: bytes, row: Document | None) -> dict[bytes, None]:
    if row is None:
        return {}
    places = (label_place(row.surface, row.kind, label) for label in row.labels)
    return dict.fromkeys(start + at for start in places)


DOCUMENTS = Projector(
    name="documents",
    version=2,
    tables={
        "documents": Document,
        "document_versions": Document,
        "document_events": VersionOf,
        "document_labels": Labelled,
    },
    project=project,
    concerns=lambda body: body.document is not None,
)
