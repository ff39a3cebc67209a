"""Which terms has a tenant registered for its predicates and relations?  (001 §7.3.1, §8.14)

Writing takes the tenant's administrator (§8.14.1) and the capability for just this (§5.2).
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.cursor import PageRequest
from engine.directives import Asked, Order, Written
from engine.natural import normal
from projectors.vocabularies import ACTIVE_KEY, vocabulary_key
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Command, DropVocabulary, SetVocabulary
from schemas.errors import Conflict, InvalidParameter, NotFound
from schemas.vocabularies import (
    PredicateTerm,
    RelationTerm,
    Vocabulary,
    VocabularyPage,
    VocabularyRecord,
    VocabularyRequest,
    VocabularyRow,
    VocabularyUpdate,
    active,
    vocabularies_in,
)

if TYPE_CHECKING:
    from engine.engine import Engine

_FAMILY: Final = "/v1/vocabularies"
_VALUE_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Registered(msgspec.Struct, frozen=True):
    """The record, and whether an earlier call made it."""

    record: VocabularyRecord
    is_replay: bool


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def register_vocabulary(
    engine: "Engine", caller: Caller, request: VocabularyRequest
) -> Registered:
    """Register a vocabulary; the same again is the same answer, another of its name a conflict."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    policy.require(engine, caller, "vocabulary.write")
    vocabulary = _checked(request.name, request)

    def choose(desk: Desk, tenant_no: int) -> Command | None:
        known = desk.overlay.get(tenant_no, "vocabularies", vocabulary_key(vocabulary.name))
        if known is None:
            _check_room(desk, tenant_no, vocabulary)
            return SetVocabulary(vocabulary=vocabulary)
        if known.vocabulary != vocabulary:
            raise Conflict(
                f"There is another vocabulary {vocabulary.name!r}.",
                name=vocabulary.name,
                remediation="replace it with PUT /v1/vocabularies/{name}",
            )
        return None

    asked = _asked(request, vocabulary.name, status=201)
    return await _write(engine, vocabulary, Order(engine, caller, decision, asked, choose))


async def replace_vocabulary(
    engine: "Engine", caller: Caller, name: str, update: VocabularyUpdate
) -> Registered:
    """What a registered vocabulary is from now on; facts keep the terms they have."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    policy.require(engine, caller, "vocabulary.write")
    if update.name not in (None, name):
        raise InvalidParameter(field="name", reason=f"the path says {name!r}")
    vocabulary = _checked(name, update)

    def choose(desk: Desk, tenant_no: int) -> Command | None:
        known = desk.overlay.get(tenant_no, "vocabularies", vocabulary_key(name))
        if known is None:
            raise _missing(name)
        _check_room(desk, tenant_no, vocabulary)
        return None if known.vocabulary == vocabulary else SetVocabulary(vocabulary=vocabulary)

    asked = _asked(update, name, status=200)
    return await _write(engine, vocabulary, Order(engine, caller, decision, asked, choose))


async def drop_vocabulary(engine: "Engine", caller: Caller, name: str) -> None:
    """Take a vocabulary out of use; facts keep the terms they have."""
    decision = policy.require(engine, caller, "policy.administer.tenant")
    policy.require(engine, caller, "vocabulary.write")

    def choose(desk: Desk, tenant_no: int) -> Command:
        if desk.overlay.get(tenant_no, "vocabularies", vocabulary_key(name)) is None:
            raise _missing(name)
        return DropVocabulary(name=name)

    asked = Asked(family=_FAMILY, said=name, status=204)
    await engine.committer.submit(Order(engine, caller, decision, asked, choose))


def get_vocabulary(engine: "Engine", caller: Caller, name: str) -> VocabularyRecord:
    """One vocabulary by its name."""
    policy.require(engine, caller, "vocabulary.read")
    tenant_no = engine.tenant_no(caller)
    row: VocabularyRow | None = None
    if tenant_no is not None:
        row = engine.inline.get(tenant_no, "vocabularies", vocabulary_key(name))
    if row is None:
        raise _missing(name)
    return _record(row.vocabulary, row.created_at, row.updated_at)


def list_vocabularies(engine: "Engine", caller: Caller, request: PageRequest) -> VocabularyPage:
    """A page of the tenant's vocabularies, in the order of their names."""
    policy.require(engine, caller, "vocabulary.read")
    tenant_no = engine.tenant_no(caller)
    rows = [] if tenant_no is None else engine.inline.scan(tenant_no, "vocabularies")
    named = {row.vocabulary.name: row for _, row in rows}
    found, cursor = engine.cursors.page(request, named, caller.tenant, "vocabularies")
    items = [_record(row.vocabulary, row.created_at, row.updated_at) for row in found]
    return VocabularyPage(items=items, next_cursor=cursor, has_more=cursor is not None)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def _asked(update: VocabularyUpdate, name: str, *, status: int) -> Asked:
    said = (status, name, msgspec.structs.replace(update, idempotency_key=None))
    return Asked(family=_FAMILY, said=said, key=update.idempotency_key, status=status)


async def _write(engine: "Engine", vocabulary: Vocabulary, order: Order) -> Registered:
    """The record as it was when the entry had just been written, whatever became of it since."""
    written: Written = await engine.committer.submit(order)
    tenant_no = engine.tenant_no(order.caller)
    assert tenant_no is not None, "who has written has a number"
    row = engine.inline.get(tenant_no, "vocabularies", vocabulary_key(vocabulary.name))
    entry = written.entry
    if entry is None:
        assert row is not None, "nothing had to change"
        return Registered(_record(row.vocabulary, row.created_at, row.updated_at), is_replay=True)
    began = entry.recorded_at
    if row is not None and row.created_at < began:
        began = row.created_at
    return Registered(_record(vocabulary, began, entry.recorded_at), is_replay=written.is_replay)


def _check_room(desk: Desk, tenant_no: int, vocabulary: Vocabulary) -> None:
    """All of a tenant's stand in one row that a projector reads with every entry."""
    row = desk.overlay.get(tenant_no, "vocabularies_active", ACTIVE_KEY)
    known = () if row is None else vocabularies_in(row.encoded)
    others = [other for other in known if other.name != vocabulary.name]
    if len(others) >= limits.VOCABULARIES_MAX:
        raise Conflict(
            f"A tenant has at most {limits.VOCABULARIES_MAX} vocabularies.",
            limit=limits.VOCABULARIES_MAX,
        )
    if len(active([*others, vocabulary]).encoded) > limits.VOCABULARIES_BYTES_MAX:
        raise Conflict(
            f"A tenant's vocabularies have at most {limits.VOCABULARIES_BYTES_MAX} bytes.",
            limit_bytes=limits.VOCABULARIES_BYTES_MAX,
        )


def _missing(name: str) -> NotFound:
    return NotFound(f"There is no vocabulary {name[:80]!r}.", name=name[:80])


def _record(vocabulary: Vocabulary, created: datetime, updated: datetime) -> VocabularyRecord:
    return VocabularyRecord(
        name=vocabulary.name,
        kind=vocabulary.kind,
        scope=vocabulary.scope,
        predicates=vocabulary.predicates,
        relations=vocabulary.relations,
        created_at=created,
        updated_at=updated,
    )


# ── checking ─────────────────────────────────────────────────────────────────────────────────


def _checked(name: str, given: VocabularyUpdate) -> Vocabulary:
    """The vocabulary that is meant, or what is wrong with it."""
    kind, predicates = given.kind, given.predicates
    if kind in ("closed", "open"):
        if predicates or given.relations:
            raise InvalidParameter(field="kind", reason=f"a {kind} vocabulary has `values` only")
        if kind == "closed" and not given.values:
            raise InvalidParameter(field="values", reason="a closed vocabulary needs some")
        is_closed = kind == "closed"
        predicates = [PredicateTerm(id=name, values=list(given.values), closed=is_closed)]
    elif given.values:
        raise InvalidParameter(field="values", reason="only a closed or open vocabulary has them")
    wanted, other = (
        ("relations", "predicates") if kind == "relation" else ("predicates", "relations")
    )
    if kind in ("predicate", "relation") and getattr(given, other):
        raise InvalidParameter(field=other, reason=f"a {kind} vocabulary has {wanted} only")
    terms = given.relations if kind == "relation" else predicates
    if not terms:
        raise InvalidParameter(field=wanted, reason="at least one term")
    _check_names(wanted, terms)
    for at, term in enumerate(predicates):
        _check_values(f"{wanted}[{at}].values", term)
    return Vocabulary(
        name=name,
        kind="relation" if kind == "relation" else "predicate",
        scope=given.scope,
        predicates=predicates,
        relations=given.relations,
    )


def _check_names(field: str, terms: Iterable[PredicateTerm | RelationTerm]) -> None:
    """A word that means two terms means neither."""
    seen: dict[str, str] = {}
    for at, term in enumerate(terms):
        for word in {normal(term.id), *map(normal, term.aliases)}:
            if word in seen:
                reason = f"{word!r} already means {seen[word]!r}"
                raise InvalidParameter(field=f"{field}[{at}]", reason=reason)
            seen[word] = term.id


def _check_values(field: str, term: PredicateTerm) -> None:
    wanted = _VALUE_TYPES.get(term.datatype, (str,))
    for at, value in enumerate(term.values):
        is_wanted = isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))
        if not is_wanted:
            raise InvalidParameter(field=f"{field}[{at}]", reason=f"not of type {term.datatype}")
        if value in term.values[:at]:
            raise InvalidParameter(field=f"{field}[{at}]", reason="given twice")
