"""Which words of its own does a tenant have for a stretch of time?  (001 §8.17, §12.4)"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from engine import policy
from engine.commit import Desk
from engine.cursor import PageRequest
from engine.directives import Asked, Order, Written
from engine.natural import normal
from engine.records import present
from engine.temporal import Window, meaning, resolve
from projectors.phrases import phrase_key
from schemas import limits
from schemas.caller import Caller
from schemas.entry import Command, DropPhrase, SetPhrase
from schemas.errors import Conflict, InvalidParameter, NotFound
from schemas.temporal import (
    Phrase,
    PhrasePage,
    PhraseRecord,
    PhraseRequest,
    PhraseRow,
    TemporalBlock,
)

if TYPE_CHECKING:
    from engine.engine import Engine

_FAMILY: Final = "/v1/temporal/phrases"


class Registered(msgspec.Struct, frozen=True):
    """The phrase, and whether an earlier call made it."""

    record: PhraseRecord
    is_replay: bool


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


async def register_phrase(engine: "Engine", caller: Caller, request: PhraseRequest) -> Registered:
    """Register a phrase; the same again is the same answer, another of its name a conflict."""
    decision = policy.require(engine, caller, "temporal.phrases.write")
    said = msgspec.structs.replace(request, idempotency_key=None)
    phrase = _checked(said)

    def choose(desk: Desk, tenant_no: int) -> Command | None:
        known = [row.phrase for _, row in desk.overlay.scan(tenant_no, "phrases", b"")]
        if phrase in known:
            return None
        _check_room(phrase, known)
        return SetPhrase(phrase=phrase)

    asked = Asked(family=_FAMILY, said=said, key=request.idempotency_key, status=201)
    order = Order(engine, caller, decision, asked, choose)
    written: Written = await engine.committer.submit(order)
    if written.entry is not None:
        made = written.entry.recorded_at
    else:
        made = _row(engine, caller, phrase.name).created_at
    return Registered(_record(phrase, made), is_replay=written.is_replay)


def list_phrases(engine: "Engine", caller: Caller, request: PageRequest) -> PhrasePage:
    """A page of the tenant's phrases, in the order of their names."""
    policy.require(engine, caller, "temporal.phrases.read")
    tenant_no = engine.tenant_no(caller)
    rows = [] if tenant_no is None else engine.inline.scan(tenant_no, "phrases")
    named = {row.phrase.name: row for _, row in rows}
    found, cursor = engine.cursors.page(request, named, caller.tenant, "phrases")
    items = [_record(row.phrase, row.created_at) for row in found]
    return PhrasePage(items=items, next_cursor=cursor, has_more=cursor is not None)


async def drop_phrase(engine: "Engine", caller: Caller, name: str) -> None:
    """From now on the words mean nothing."""
    decision = policy.require(engine, caller, "temporal.phrases.write")

    def choose(desk: Desk, tenant_no: int) -> Command:
        if desk.overlay.get(tenant_no, "phrases", phrase_key(name)) is None:
            raise _missing(name)
        return DropPhrase(name=name)

    asked = Asked(family=_FAMILY, said=name, status=204)
    await engine.committer.submit(Order(engine, caller, decision, asked, choose))


# ── for readers ──────────────────────────────────────────────────────────────────────────────


def window_of(
    engine: "Engine", tenant_no: int | None, block: TemporalBlock | None, at: str = "temporal"
) -> Window:
    """The window a block means for a tenant: its phrases are looked up when words are used."""
    phrases: list[Phrase] = []
    if tenant_no is not None and block is not None and block.natural is not None:
        phrases = [row.phrase for _, row in engine.inline.scan(tenant_no, "phrases")]
    return resolve(block, present(engine), phrases, at)


# ── checking ─────────────────────────────────────────────────────────────────────────────────


def _checked(given: PhraseRequest) -> Phrase:
    """The phrase, when it says one thing and says it clearly."""
    fields = {name: getattr(given, name) for name in Phrase.__struct_fields__}
    phrase = Phrase(**fields)
    if not normal(phrase.pattern or phrase.name):
        raise InvalidParameter(field="pattern", reason="no words in it")
    if (phrase.resolves_to is None) == (phrase.expression is None):
        raise InvalidParameter(
            field="resolves_to", reason="give either resolves_to or an expression"
        )
    if phrase.anchor is not None and phrase.expression is None:
        raise InvalidParameter(field="anchor", reason="an expression is counted from it")
    stands_for = phrase.resolves_to
    if stands_for is not None:
        said = (stands_for.valid_during, stands_for.recorded_during, stands_for.as_of)
        if sum(one is not None for one in said) != 1:
            raise InvalidParameter(field="resolves_to", reason="exactly one of its fields")
    # An anchor far from year 1 and year 9999 stands for every reference date it may be read at.
    meaning(phrase, datetime(2000, 1, 1, tzinfo=UTC))
    return phrase


def _check_room(phrase: Phrase, known: list[Phrase]) -> None:
    words = normal(phrase.pattern or phrase.name)
    for other in known:
        if other.name == phrase.name:
            raise Conflict(
                f"There is another phrase {phrase.name!r}.",
                name=phrase.name,
                remediation="delete it first",
            )
        if normal(other.pattern or other.name) == words:
            raise Conflict(f"{words!r} already means {other.name!r}.", name=other.name)
    if len(known) >= limits.PHRASES_MAX:
        raise Conflict(
            f"A tenant has at most {limits.PHRASES_MAX} phrases.", limit=limits.PHRASES_MAX
        )


def _row(engine: "Engine", caller: Caller, name: str) -> PhraseRow:
    tenant_no = engine.tenant_no(caller)
    row = None if tenant_no is None else engine.inline.get(tenant_no, "phrases", phrase_key(name))
    if row is None:
        raise _missing(name)
    found: PhraseRow = row
    return found


def _record(phrase: Phrase, created_at: datetime) -> PhraseRecord:
    fields = {name: getattr(phrase, name) for name in Phrase.__struct_fields__}
    return PhraseRecord(**fields, created_at=created_at)


def _missing(name: str) -> NotFound:
    return NotFound(f"There is no phrase {name[:80]!r}.", name=name[:80])
