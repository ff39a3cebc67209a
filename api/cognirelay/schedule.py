"""/v1/schedule: what is to be remembered, and when?  (000, schedule)

An item lies in the scope of what it is about: its subject, else its thread, else its task, else
who made it. Items with an idempotency key are found by it through a document of their own.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from api.cognirelay.access import SURFACE, need, peer_of
from api.cognirelay.errors import DIALECT
from api.cognirelay.homes import home_of
from api.cognirelay.translate import schedule as translate
from api.endpoint import Call, Endpoint, Handler, Reply
from engine.surface import (
    Address,
    Change,
    Held,
    Outcome,
    Shelf,
    Write,
    change_documents,
    list_documents,
    read_document,
)
from schemas.surfaces.cognirelay import schedule as shapes
from schemas.surfaces.cognirelay.schedule import ChangeItem, ScheduledItem, Selector
from schemas.surfaces.document import Document
from schemas.surfaces.shapes import Shape, Table

_ITEM: Final = "schedule"
_KEY: Final = "schedule_key"
_READ: Final = "read:files"
_WRITE: Final = "write:projects"

Step = Callable[[ScheduledItem, int], ScheduledItem | None]
"""An item and the second it is to the item that follows; None when nothing changes."""


async def _create(call: Call) -> Reply:
    need(call, _WRITE)
    asked, by = translate.read_create(call.body), peer_of(call.caller)
    schedule_id = translate.id_of(asked, by)
    home = home_of(msgspec.structs.asdict(asked), by)

    def decide(held: Held) -> Outcome:
        now_s = int(held.now.timestamp())
        pointer = None if asked.idempotency_key is None else held.get(_KEY, asked.idempotency_key)
        keyed = None if pointer is None else _item_of(held.get(_ITEM, pointer.value))
        named = _item_of(held.get(_ITEM, schedule_id))
        item = translate.created(asked, by, now_s, keyed=keyed, named=named)
        stands = item or keyed or named
        assert stands is not None, "it is new, or it is there"
        shown = translate.shown(stands, now_s)
        answer = {"ok": True, "created": item is not None, "item": shown, "warnings": []}
        return Outcome(answer=answer, writes=[] if item is None else _new(item, home))

    answer = await _changed(call, (home,), decide)
    return Reply(answer, status=201 if answer["created"] else 200)


def _get(call: Call) -> Reply:
    need(call, _READ)
    item = _read(call, translate.checked_id(call.path["schedule_id"]))
    now_s = call.engine.clock.now_us() // 1_000_000
    return Reply({"ok": True, "item": translate.shown(item, now_s), "warnings": []})


def _list(call: Call) -> Reply:
    need(call, _READ)
    asked = translate.read_list(call.query)
    now_s = call.engine.clock.now_us() // 1_000_000
    return Reply(translate.listed(_items(call, translate.labels_meant(asked)), asked, now_s))


async def _update(call: Call) -> Reply:
    need(call, _WRITE)
    schedule_id = translate.checked_id(call.path["schedule_id"])
    asked, by = translate.read_change(call.body), peer_of(call.caller)
    return await _stepped(
        call, schedule_id, lambda item, now_s: translate.changed(item, asked, by, now_s), asked
    )


async def _acknowledge(call: Call) -> Reply:
    return await _ended(call, retires=False)


async def _retire(call: Call) -> Reply:
    return await _ended(call, retires=True)


async def _ended(call: Call, *, retires: bool) -> Reply:
    need(call, _WRITE)
    schedule_id = translate.checked_id(call.path["schedule_id"])
    asked, by = translate.read_end(call.body, retires=retires), peer_of(call.caller)
    return await _stepped(
        call, schedule_id, lambda item, now_s: translate.ended(item, asked, by, now_s)
    )


# ── documents ────────────────────────────────────────────────────────────────────────────────


async def _stepped(
    call: Call, schedule_id: str, step: Step, change: ChangeItem | None = None
) -> Reply:
    """The item after one step, decided where nobody else writes."""
    seen = _read(call, schedule_id)
    next_ = seen if change is None else msgspec.structs.replace(seen, **change.fields)
    homes = dict.fromkeys((_home(seen), _home(next_)))

    def decide(held: Held) -> Outcome:
        now_s = int(held.now.timestamp())
        item = _item_of(held.get(_ITEM, schedule_id))
        if item is None:
            raise translate.not_found(schedule_id)
        after = step(item, now_s)
        stands = after or item
        home = _home(stands)
        if after is not None and home not in homes:  # it was moved since we looked
            raise translate.version_conflict()
        answer = {
            "ok": True,
            "updated": after is not None,
            "item": translate.shown(stands, now_s),
            "warnings": [],
        }
        return Outcome(answer=answer, writes=[] if after is None else [_written(after, home)])

    return Reply(await _changed(call, tuple(homes), decide))


async def _changed(
    call: Call, scopes: tuple[str, ...], decide: Callable[[Held], Outcome]
) -> dict[str, Any]:
    change = Change(surface=SURFACE, scopes=scopes, decide=decide)
    answer: dict[str, Any] = (await change_documents(call.engine, call.caller, change)).answer
    return answer


def _home(item: ScheduledItem) -> str:
    return home_of(msgspec.structs.asdict(item), item.created_by)


def _new(item: ScheduledItem, home: str) -> list[Write]:
    writes = [_written(item, home)]
    if item.idempotency_key is not None:
        key = item.idempotency_key
        writes.append(Write(kind=_KEY, key=key, scope=home, words="", value=item.schedule_id))
    return writes


def _written(item: ScheduledItem, home: str) -> Write:
    return Write(
        kind=_ITEM,
        key=item.schedule_id,
        scope=home,
        words=translate.words_of(item),
        value=msgspec.to_builtins(item),
        labels=translate.labels_of(item),
    )


def _read(call: Call, schedule_id: str) -> ScheduledItem:
    address = Address(surface=SURFACE, kind=_ITEM, key=schedule_id)
    item = _item_of(read_document(call.engine, call.caller, address))
    if item is None:
        raise translate.not_found(schedule_id)
    return item


def _item_of(document: Document | None) -> ScheduledItem | None:
    return None if document is None else msgspec.convert(document.value, ScheduledItem)


def _items(call: Call, labels: tuple[str, ...] | None) -> list[ScheduledItem]:
    shelf = Shelf(surface=SURFACE, kind=_ITEM, labels=labels)
    rows = list_documents(call.engine, call.caller, shelf)
    return [msgspec.convert(row.value, ScheduledItem) for row in rows]


def schedule_context(call: Call, about: Iterable[Selector]) -> dict[str, Any]:
    """What is due and what comes soon for these subjects: a part of every orientation."""
    settings = call.engine.settings
    window = translate.Window(
        due_limit=settings.schedule_due_limit,
        upcoming_limit=settings.schedule_upcoming_limit,
        upcoming_hours=settings.schedule_upcoming_window_hours,
    )
    now_s, selectors = call.engine.clock.now_us() // 1_000_000, tuple(about)
    items = _items(call, translate.labels_about(selectors))
    return translate.context_of(items, selectors, window, now_s)


_PATH: Final = "/v1/schedule/items"
_ONE: Final = _PATH + "/{schedule_id}"


def _writing(method: str, path: str, handler: Handler, summary: str, shape: Shape) -> Endpoint:
    statuses = (200, 201) if shape is shapes.CREATE else (200,)
    return Endpoint(
        method,
        path,
        handler,
        summary,
        "scope.write",
        takes_raw=True,
        shape=shape,
        statuses=statuses,
        dialect=DIALECT,
    )


def _reading(path: str, handler: Handler, summary: str, shape: Shape) -> Endpoint:
    return Endpoint(
        "GET", path, handler, summary, "scope.read.local", query_shape=shape, dialect=DIALECT
    )


ENDPOINTS = (
    _writing("POST", _PATH, _create, "Schedule a reminder or a nudge, once.", shapes.CREATE),
    _reading(_ONE, _get, "A scheduled item.", Table()),
    _reading(_PATH, _list, "Scheduled items, the soonest first.", shapes.LIST),
    _writing("PATCH", _ONE, _update, "Change a pending item.", shapes.UPDATE),
    _writing(
        "POST",
        _ONE + "/acknowledge",
        _acknowledge,
        "An item was seen, or is done.",
        shapes.ACKNOWLEDGE,
    ),
    _writing("POST", _ONE + "/retire", _retire, "An item is no longer wanted.", shapes.RETIRE),
)
