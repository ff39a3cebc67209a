"""Who and what is spoken of?  One entity for all the names a tenant has for it (001 §3.6, §7.3).

Names are kept by hash, each with what it means, so that a mention costs two lookups and no scan:

- an actor is one entity, whatever it is called;
- the name in an actor's id, and the one it gives itself, mean it in the scopes where it speaks: two
  users called Sam stay two;
- any other name means one thing in the whole tenant;
- an id that a client gives is kept. When the name beside it was known before, what was known of the
  name is known of the id: both have the same root.

What the mentions of an entry mean is left in one row (`entities_named`) for later projectors.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from projectors.base import Change, Projector, Put, View
from projectors.entities.rows import EntityRow, Meaning, Named
from projectors.records import name_key
from projectors.text import Candidate, Extraction, Mention, Value, extract
from projectors.text.names import normal
from projectors.text.speakers import speakers_of
from schemas import limits
from schemas.entry import Annotation, Entry, envelope_of
from schemas.envelope import Envelope
from schemas.ids import derive_id

_NAMING: Final = frozenset({"name", "named"})


NOBODY: Final = Meaning("", "", "")


def entity_key(entity_id: str) -> bytes:
    """Where an entity is kept: a client's own id may say anything, so it stays out of keys."""
    return name_key(entity_id)


def actor_key(actor: str) -> bytes:
    """What an actor's id means."""
    return b"a" + name_key(actor)


def member_key(scope_no: int, actor: str) -> bytes:
    """An actor who speaks in a scope."""
    return b"m" + scope_no.to_bytes(4, "big") + name_key(actor)


def local_key(scope_no: int, name: str) -> bytes:
    """What a name in its normal form means in one scope."""
    return b"s" + scope_no.to_bytes(4, "big") + name_key(name)


def common_key(name: str) -> bytes:
    """What a name in its normal form means where no scope says otherwise."""
    return b"n" + name_key(name)


def lookup(view: View, text: str, scope_no: int) -> Meaning | None:
    """What an id, an actor or a name means in a scope, for readers; None when nobody knows."""
    row: EntityRow | None = view.get("entities", entity_key(text))
    if row is not None:
        return Meaning(row.id, row.root, row.name)
    found: Meaning | None = view.get("entity_names", actor_key(text))
    name = normal(text)
    if found is None and name:
        found = view.get("entity_names", local_key(scope_no, name))
    if found is None and name:
        found = view.get("entity_names", common_key(name))
    return found


def project(entry: Entry, view: View) -> Iterable[Change]:
    """The entities that an entry speaks of."""
    return () if envelope_of(entry.body) is None else fold(entry, extract(entry), view)


def fold(entry: Entry, extraction: Extraction, view: View) -> Iterator[Change]:
    """The entities of candidates already found: known ones resolved, new ones made."""
    register = _Register(entry, view)
    envelope = envelope_of(entry.body)
    if envelope is not None:
        register.admit(envelope)
    for candidate in extraction.candidates:
        register.introduce(candidate)
    subjects = [register.resolve(candidate.subject) for candidate in extraction.candidates]
    objects = [
        register.resolve(candidate.object) if isinstance(candidate.object, Mention) else None
        for candidate in extraction.candidates
    ]
    spoken = {mention: register.resolve(mention) for mention in extraction.mentions}
    every = {m.id: m for m in (*subjects, *(o for o in objects if o), *spoken.values()) if m.id}
    for row in register.rows.values():
        yield Put(table="entities", key=entity_key(row.id), value=row)
    for key, meaning in register.names.items():
        yield Put(table="entity_names", key=key, value=meaning)
    if every:
        named = Named(entry.offset, subjects, objects, list(every.values()))
        yield Put(table="entities_named", key=b"", value=named)


class _Register:
    """What one entry adds to the names, on top of what was known."""

    def __init__(self, entry: Entry, view: View) -> None:
        self._entry = entry
        self._view = view
        self._made = 0
        self._speakers: set[str] = set()
        self._known: dict[bytes, Meaning | None] = {}
        self.rows: dict[str, EntityRow] = {}
        self.names: dict[bytes, Meaning] = {}

    # ── looking up ───────────────────────────────────────────────────────────────────────────

    def _name(self, key: bytes) -> Meaning | None:
        found = self.names.get(key)
        if found is None and key not in self._known:
            self._known[key] = self._view.get("entity_names", key)
        return found or self._known[key]

    def _row(self, entity_id: str) -> EntityRow | None:
        found = self.rows.get(entity_id)
        if found is None:
            found = self._view.get("entities", entity_key(entity_id))
        return found

    def resolve(self, mention: Mention) -> Meaning:
        """What a mention means, made now if nobody knew it; an empty name means nothing."""
        if mention.actor is not None:
            return self._actor(mention.actor)
        if mention.ref is not None:
            return self._given(mention.ref, mention)
        name = normal(mention.text)
        if not name:
            return NOBODY
        found = self._name(local_key(self._entry.scope_no, name)) or self._name(common_key(name))
        return found or self._make(mention.text, mention.kind, names=[common_key(name)])

    def _actor(self, actor: str) -> Meaning:
        found = self._name(actor_key(actor))
        return found or self._make(_said(actor), "actor", names=[actor_key(actor)], actor=actor)

    def _given(self, given: str, mention: Mention) -> Meaning:
        """An id that the client chose; the name beside it, when there is one, means it too."""
        row = self._row(given)
        if row is not None:
            return Meaning(row.id, row.root, row.name)
        if given.startswith("concept_"):
            return Meaning(given, given, mention.text)
        name = normal(mention.text) if mention.text != given else ""
        known = self._name(common_key(name)) if name else None
        before = self._row(known.id) if known is not None else None
        if before is None:
            names = [common_key(name)] if name else []
            return self._make(mention.text, mention.kind, names=names, given=given)
        # Two ids of the client's own are two things, whatever it calls them.
        root = given if before.is_given or before.actor is not None else before.root
        names = [common_key(name)] if root == before.root else []
        return self._make(mention.text, mention.kind, names=names, given=given, root=root)

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make(
        self,
        name: str,
        kind: str,
        *,
        names: list[bytes],
        actor: str | None = None,
        given: str | None = None,
        root: str | None = None,
    ) -> Meaning:
        entity_id = given
        if entity_id is None:
            entity_id = derive_id("ent", self._entry.id, self._made)
            self._made += 1
        row = EntityRow(
            id=entity_id,
            root=root or entity_id,
            name=name,
            kind=kind,
            aliases=[],
            first_seen_at=self._entry.recorded_at,
            first_event=_event_of(self._entry),
            actor=actor,
            is_given=given is not None,
        )
        self.rows[entity_id] = row
        meaning = Meaning(row.id, row.root, row.name)
        self.names.update(dict.fromkeys(names, meaning))
        return meaning

    # ── actors ───────────────────────────────────────────────────────────────────────────────

    def admit(self, envelope: Envelope) -> None:
        """Who speaks here, and who is spoken about, is known here by the name in its id."""
        me = speakers_of(envelope, self._entry.caller).me
        self._speakers = {me.actor} if me is not None and me.actor is not None else set()
        about = {envelope.subject.id} if envelope.subject is not None else set()
        for actor in sorted(self._speakers | about):
            key = member_key(self._entry.scope_no, actor)
            known = self._name(key)
            if known is not None:
                self._known[actor_key(actor)] = known
                continue
            meaning = self._actor(actor)
            self.names[key] = meaning
            self._call(meaning, _said(actor))

    def introduce(self, candidate: Candidate) -> None:
        """`My name is Alice`: the one who says it is Alice, in this scope."""
        actor = candidate.subject.actor
        is_introduction = (
            actor in self._speakers
            and candidate.predicate in _NAMING
            and candidate.polarity == "positive"
            and not candidate.ends
        )
        said = candidate.object
        name = said.value if isinstance(said, Value) else said.text
        if not is_introduction or actor is None or not isinstance(name, str) or not normal(name):
            return
        before = self._actor(actor)
        row = self._row(before.id)
        if row is None or normal(row.name) == normal(name):
            return
        aliases = [alias for alias in (*row.aliases, row.name) if normal(alias) != normal(name)]
        self.rows[row.id] = msgspec.structs.replace(
            row, name=name, aliases=aliases[-limits.ENTITY_ALIASES_MAX :]
        )
        meaning = Meaning(row.id, row.root, name)
        self.names[actor_key(actor)] = meaning
        self.names[member_key(self._entry.scope_no, actor)] = meaning
        self._call(meaning, name)

    def _call(self, meaning: Meaning, name: str) -> None:
        """A name means an actor in this scope, unless another one came first."""
        key = local_key(self._entry.scope_no, normal(name))
        known = self._name(key)
        if normal(name) and (known is None or known.id == meaning.id):
            self.names[key] = meaning


def _said(actor: str) -> str:
    """The name in an actor's id: `user:melanie` is Melanie."""
    words = actor.partition(":")[2].replace("_", " ").replace("-", " ").replace(".", " ").split()
    return " ".join(word.capitalize() if word.isalpha() else word for word in words) or actor


def _event_of(entry: Entry) -> str:
    return entry.body.about if isinstance(entry.body, Annotation) else entry.event_id


ENTITIES = Projector(
    name="entities",
    version=2,
    tables={"entities": EntityRow, "entity_names": Meaning, "entities_named": Named},
    project=project,
)
