"""What was asked of the schedule, and what becomes of it?  Pure: bodies and rows in, rows out.

Each request is checked in one order, so that the first thing wrong is always the same one. Times
are seconds of UTC and come as arguments: one reading of the clock serves a whole request.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from api.cognirelay.errors import refuse
from schemas import limits
from schemas.surfaces.cognirelay.schedule import (
    ENDINGS,
    KINDS,
    STATUSES,
    SUBJECT_KINDS,
    ChangeItem,
    CreateItem,
    EndItem,
    ListItems,
    ScheduledItem,
    Selector,
)

ID_PATTERN: Final = "^sched_[a-z0-9][a-z0-9_-]{0,57}$"
_ID = re.compile(ID_PATTERN.removesuffix("$") + r"\Z")
_EXACT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_ELSEWHERE = re.compile(_EXACT.pattern[:-1] + r"(\.[0-9]+)?([+-][0-9]{2}:[0-9]{2})?")
"""A moment of another zone, or of none."""
_FORM = "%Y-%m-%dT%H:%M:%SZ"
_FLAGS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)
_NEVER_NULL = ("kind", "title", "due_at")
_SUBJECT = "subject"
_canonical = msgspec.json.Encoder(order="sorted").encode

_PAIRED = "subject_kind and subject_id must be supplied or cleared together"
_LINKED = "task_nudge requires task_id, thread_id, or subject_kind plus subject_id"
_FLAT = (
    "metadata must be a flat object with canonical JSON "
    f"<= {limits.SCHEDULE_METADATA_BYTES_MAX} bytes"
)


def _invalid(code: str, field: str, message: str) -> Exception:
    return refuse(422, {"code": code, "field": field, "message": message})


def _conflict(code: str, field: str, message: str) -> Exception:
    return refuse(409, {"code": code, "field": field, "message": message})


# ── requests ─────────────────────────────────────────────────────────────────────────────────


def read_body(raw: bytes) -> dict[str, Any]:
    """The body as an object; no body is an empty one."""
    if not raw:
        return {}
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid("invalid_schedule_payload", "body", "body must be valid JSON") from None
    if not isinstance(body, dict):
        raise _invalid("invalid_schedule_payload", "body", "body must be a JSON object")
    return body


def checked_id(schedule_id: Any) -> str:
    """An id of the schedule's own form."""
    found = schedule_id.strip() if isinstance(schedule_id, str) else ""
    if _ID.match(found):
        return found
    message = f"schedule_id must match {ID_PATTERN}"
    raise _invalid("invalid_schedule_id", "schedule_id", message)


def read_create(raw: bytes) -> CreateItem:
    """A new item, or what is wrong with it."""
    body = read_body(raw)
    _only(body, CreateItem.__struct_fields__)
    for name in ("kind", "title", "due_at"):
        if name not in body:
            raise _invalid("invalid_schedule_payload", name, f"{name} is required")
    item = CreateItem(**_read(body))
    _check_link(item)
    return item


def read_change(raw: bytes) -> ChangeItem:
    """What to change, or why that cannot be meant."""
    body = read_body(raw)
    _only(body, ("expected_version", *_MUTABLE))
    version = _version(body.get("expected_version"))
    fields = {name: value for name, value in body.items() if name != "expected_version"}
    if not fields:
        message = "patch must include at least one mutable field"
        raise _invalid("invalid_schedule_payload", "body", message)
    return ChangeItem(expected_version=version, fields=_read(fields))


def read_end(raw: bytes, *, retires: bool) -> EndItem:
    """How an item is to end: acknowledged, done or retired."""
    body = read_body(raw)
    _only(body, ("expected_version", "reason", *(() if retires else ("status",))))
    given = body.get("expected_version")
    version = None if given is None else _version(given)
    status: Any = "retired" if retires else body.get("status", ENDINGS[0])
    if status is None:
        raise _invalid("invalid_schedule_payload", "status", "status cannot be null")
    status = status.strip() if isinstance(status, str) else status
    if not retires and status not in ENDINGS:
        message = "status must be acknowledged or done"
        raise _invalid("invalid_schedule_status", "status", message)
    reason = _read_words("reason", body.get("reason"), limits.SCHEDULE_REASON_CHARS_MAX)
    # A blank reason is none; a blank note is a note without words.
    return EndItem(status=status, reason=reason or None, expected_version=version)


def read_list(query: Mapping[str, str]) -> ListItems:
    """Which items are asked for; parameters nobody knows are left alone."""
    status = query.get("status")
    if status is not None and status not in STATUSES:
        message = "status must be pending, acknowledged, done, or retired"
        raise _invalid("invalid_schedule_status", "query.status", message)
    due = _read_flag(query, "due")
    found: dict[str, Any] = {
        name: _read_id(f"query.{name}", query[name], "invalid_schedule_query")
        for name in ("task_id", "thread_id")
        if name in query
    }
    found |= _read_subject(query, "query.", "invalid_schedule_query")
    include_retired = _read_flag(query, "include_retired")
    default, most = limits.SCHEDULE_PAGE_ITEMS_DEFAULT, limits.SCHEDULE_PAGE_ITEMS_MAX
    return ListItems(
        status=status,
        due=due,
        include_retired=bool(include_retired),
        limit=_read_number(query, "limit", default, (1, most)),
        offset=_read_number(query, "offset", 0, (0, limits.SCHEDULE_OFFSET_MAX)),
        **found,
    )


def check_tool(name: str, arguments: dict[str, Any]) -> None:
    """What is wrong with a tool's arguments before its route is asked: names, ids and types."""
    if name == "schedule.create":
        return
    if name != "schedule.list":
        if name == "schedule.get":
            _only(arguments, ("schedule_id",))
        if arguments.get("schedule_id") is None:
            message = "schedule_id is required"
            raise _invalid("invalid_schedule_payload", "schedule_id", message)
        checked_id(arguments["schedule_id"])
        return
    _only(arguments, ListItems.__struct_fields__)
    for field, value in arguments.items():
        if value is not None and type(value) is not _LIST_TYPES.get(field, str):
            read_list({field: _NO_VALUE})


_LIST_TYPES: Final[dict[str, type]] = {
    "due": bool,
    "include_retired": bool,
    "limit": int,
    "offset": int,
}
_NO_VALUE = "\0" * (limits.COGNIRELAY_ID_CHARS_MAX + 1)
"""What no parameter takes."""


def _only(body: dict[str, Any], known: Iterable[str]) -> None:
    for name in body:
        if name not in known:
            raise _invalid("invalid_schedule_payload", name, f"unexpected field: {name}")


def _version(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    message = "expected_version must be a positive integer"
    raise _invalid("invalid_schedule_version", "expected_version", message)


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Every field that was given, in its normal form; the first that is wrong is blamed."""
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name == _SUBJECT:
            found |= _read_subject(body, "", "invalid_schedule_payload")
        elif name in body:
            if body[name] is None and name in _NEVER_NULL:
                raise _invalid("invalid_schedule_payload", name, f"{name} cannot be null")
            found[name] = read(body[name])
    return found


def _read_subject(given: Mapping[str, Any], prefix: str, code: str) -> dict[str, Any]:
    """Kind and id, each right by itself, then both or neither."""
    if "subject_kind" not in given and "subject_id" not in given:
        return {}
    kind, subject_id = given.get("subject_kind"), given.get("subject_id")
    field = f"{prefix}subject_kind"
    if isinstance(kind, str) and not prefix:
        kind = kind.strip()
    if kind is not None and kind not in SUBJECT_KINDS:
        message = "subject_kind must be user, peer, thread, or task"
        raise _invalid("invalid_schedule_subject", field, message)
    found = None if subject_id is None else _read_id(f"{prefix}subject_id", subject_id, code)
    if (kind is None) != (found is None):
        raise _invalid("invalid_schedule_subject", field, _PAIRED)
    return {"subject_kind": kind, "subject_id": found}


def _read_kind(value: Any) -> str:
    if isinstance(value, str) and value.strip() in KINDS:
        return value.strip()
    raise _invalid("invalid_schedule_kind", "kind", "kind must be reminder or task_nudge")


def _read_title(value: Any) -> str:
    title = value.strip() if isinstance(value, str) else ""
    if 1 <= len(title) <= limits.SCHEDULE_TITLE_CHARS_MAX:
        return title
    message = f"title must be 1-{limits.SCHEDULE_TITLE_CHARS_MAX} characters"
    raise _invalid("invalid_schedule_title", "title", message)


def _read_words(field: str, value: Any, most: int) -> str | None:
    """A note or a reason."""
    if value is None:
        return None
    words = value.strip() if isinstance(value, str) else None
    if words is None or len(words) > most:
        message = f"{field} must be at most {most} characters"
        raise _invalid(f"invalid_schedule_{field}", field, message)
    return words


def _read_id(field: str, value: Any, code: str = "invalid_schedule_payload") -> str:
    found = value.strip() if isinstance(value, str) else ""
    if 1 <= len(found) <= limits.COGNIRELAY_ID_CHARS_MAX:
        return found
    name = field.removeprefix("query.")
    message = f"{name} must be 1-{limits.COGNIRELAY_ID_CHARS_MAX} characters"
    raise _invalid(code, field, message)


def _read_link(name: str) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else _read_id(name, value)


def _read_due(value: Any) -> str:
    """Exact seconds of UTC: offsets, local times and parts of a second are refused."""
    found = value.strip() if isinstance(value, str) else ""
    if _ELSEWHERE.fullmatch(found):
        message = "due_at must be UTC in YYYY-MM-DDTHH:MM:SSZ form"
        raise _invalid("invalid_schedule_due_at", "due_at", message)
    exact = "due_at must use YYYY-MM-DDTHH:MM:SSZ"
    try:
        datetime.strptime(found, _FORM).replace(tzinfo=UTC)
    except ValueError:
        raise _invalid("invalid_schedule_due_at", "due_at", exact) from None
    if not _EXACT.fullmatch(found):
        raise _invalid("invalid_schedule_due_at", "due_at", exact)
    return found


def _read_metadata(value: Any) -> dict[str, Any]:
    found = {} if value is None else value
    is_flat = isinstance(found, dict) and all(map(_is_scalar, found.values()))
    if is_flat and len(_canonical(found)) <= limits.SCHEDULE_METADATA_BYTES_MAX:
        return dict(found)
    raise _invalid("invalid_schedule_metadata", "metadata", _FLAT)


def _is_scalar(value: Any) -> bool:
    """Whether it can be kept as it is: no list or object, and no number beyond 64 bits."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return not isinstance(value, dict | list)


def _read_flag(query: Mapping[str, str], name: str) -> bool | None:
    if name not in query:
        return None
    flag = _FLAGS.get(query[name].strip().lower())
    if flag is None:
        message = f"{name} must be a boolean"
        raise _invalid("invalid_schedule_query", f"query.{name}", message)
    return flag


def _read_number(query: Mapping[str, str], name: str, default: int, bounds: tuple[int, int]) -> int:
    least, most = bounds
    with contextlib.suppress(ValueError):
        number = int(query.get(name, default))
        if least <= number <= most:
            return number
    message = f"{name} must be an integer between {least} and {most}"
    raise _invalid("invalid_schedule_query", f"query.{name}", message)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "schedule_id": lambda value: None if value is None else checked_id(value),
    "idempotency_key": _read_link("idempotency_key"),
    "kind": _read_kind,
    "title": _read_title,
    "note": lambda value: _read_words("note", value, limits.SCHEDULE_NOTE_CHARS_MAX),
    "due_at": _read_due,
    "task_id": _read_link("task_id"),
    "thread_id": _read_link("thread_id"),
    _SUBJECT: str,
    "metadata": _read_metadata,
}
"""How each field is read, in the order in which they are blamed; the subject is two of them."""

_MUTABLE: Final = (
    *(name for name in _READERS if name not in ("schedule_id", "idempotency_key", _SUBJECT)),
    "subject_kind",
    "subject_id",
)


# ── decisions ────────────────────────────────────────────────────────────────────────────────


def identity_of(asked: CreateItem, by: str) -> str:
    """What makes two creations the same one: all that was asked, and who asked."""
    said = msgspec.structs.asdict(asked) | {"created_by": by}
    del said["schedule_id"]
    return sha256(_canonical(said)).hexdigest()


def id_of(asked: CreateItem, by: str) -> str:
    """The id an item gets: its own, or one that follows from its identity."""
    return asked.schedule_id or f"sched_{identity_of(asked, by)[:32]}"


def created(
    asked: CreateItem,
    by: str,
    now_s: int,
    *,
    keyed: ScheduledItem | None,
    named: ScheduledItem | None,
) -> ScheduledItem | None:
    """The new item; None when it is there already. `keyed` has its key, `named` its id."""
    identity = identity_of(asked, by)
    there = {item.schedule_id: item for item in (named, keyed) if item is not None}
    if len(there) == 1 and next(iter(there.values())).identity == identity:
        return None
    _check_future(asked.due_at, now_s)
    if named is not None and len(there) == 1:
        message = "schedule_id already exists for a different schedule item"
        raise _conflict("schedule_id_conflict", "schedule_id", message)
    if keyed is not None:
        message = "idempotency_key already exists for a different schedule item"
        raise _conflict("idempotency_key_conflict", "idempotency_key", message)
    fields = msgspec.structs.asdict(asked) | {"schedule_id": id_of(asked, by)}
    now = stamp(now_s)
    return ScheduledItem(
        **fields, created_at=now, updated_at=now, created_by=by, updated_by=by, identity=identity
    )


def changed(item: ScheduledItem, asked: ChangeItem, by: str, now_s: int) -> ScheduledItem | None:
    """The item after a patch; None when that changes nothing."""
    _check_version(item, asked.expected_version)
    if item.status != "pending":
        raise _status_conflict()
    after = msgspec.structs.replace(item, **asked.fields)
    if "due_at" in asked.fields:
        _check_future(after.due_at, now_s)
    _check_link(after)
    return None if after == item else _next(after, by, now_s)


def ended(item: ScheduledItem, asked: EndItem, by: str, now_s: int) -> ScheduledItem | None:
    """The item at its end; None when it has ended so already."""
    can_end = item.status == "pending" or (asked.status == "retired" and item.status in ENDINGS)
    if asked.expected_version is not None:
        _check_version(item, asked.expected_version)
    elif can_end:
        _version(None)
    if (item.status, item.terminal_reason) == (asked.status, asked.reason):
        return None
    if not can_end:
        raise _status_conflict()
    after = msgspec.structs.replace(
        item,
        status=asked.status,
        terminal_at=stamp(now_s),
        terminal_by=by,
        terminal_reason=asked.reason,
    )
    return _next(after, by, now_s)


def not_found(schedule_id: str) -> Exception:
    """There is no such item."""
    detail = {"code": "schedule_not_found", "schedule_id": schedule_id, "warnings": []}
    return refuse(404, detail)


def _next(item: ScheduledItem, by: str, now_s: int) -> ScheduledItem:
    return msgspec.structs.replace(
        item, version=item.version + 1, updated_at=stamp(now_s), updated_by=by
    )


def version_conflict() -> Exception:
    """Somebody else was quicker."""
    message = "expected_version does not match current version"
    return _conflict("schedule_version_conflict", "expected_version", message)


def _check_version(item: ScheduledItem, expected: int) -> None:
    if item.version != expected:
        raise version_conflict()


def _status_conflict() -> Exception:
    message = "schedule status does not allow this transition"
    return _conflict("schedule_status_conflict", "status", message)


def _check_link(item: CreateItem | ScheduledItem) -> None:
    """A nudge is about something."""
    if item.kind == "task_nudge" and not (item.task_id or item.thread_id or item.subject_id):
        raise _invalid("invalid_schedule_link", "kind", _LINKED)


def _check_future(due_at: str, now_s: int) -> None:
    if seconds_of(due_at) <= now_s:
        raise _invalid("due_at_not_future", "due_at", "due_at must be in the future")


# ── what leads to an item ────────────────────────────────────────────────────────────────────


def labels_of(item: ScheduledItem) -> tuple[str, ...]:
    """By what an item is looked for: what it is about, in each of its states."""
    links = [("thread", item.thread_id), ("task", item.task_id)]
    links.append((item.subject_kind or "", item.subject_id))
    return tuple(_label(item.status, kind, name) for kind, name in links if name)


def labels_meant(asked: ListItems) -> tuple[str, ...] | None:
    """The labels of which every item that is meant has one; None when any item may be meant."""
    links = [("thread", asked.thread_id), ("task", asked.task_id)]
    links.append((asked.subject_kind or "", asked.subject_id))
    named = next(((kind, name) for kind, name in links if name), None)
    if named is None:
        return None
    statuses = STATUSES if asked.status is None else (asked.status,)
    return tuple(_label(status, *named) for status in statuses)


def labels_about(selectors: Iterable[Selector]) -> tuple[str, ...]:
    """The labels of what is pending for these subjects."""
    return tuple(_label("pending", one.subject_kind, one.subject_id) for one in selectors)


def _label(status: str, kind: str, name: str) -> str:
    return f"{status}/{kind}/{name}"


# ── answers ──────────────────────────────────────────────────────────────────────────────────


def stamp(moment_s: int) -> str:
    """A moment as this surface says it: whole seconds of UTC."""
    return datetime.fromtimestamp(moment_s, UTC).strftime(_FORM)


def seconds_of(text: str) -> int:
    """The moment a stamp says."""
    return int(datetime.fromisoformat(text).timestamp())


def is_due(item: ScheduledItem, now_s: int) -> bool:
    """Whether its time has come and nobody has dealt with it."""
    return item.status == "pending" and seconds_of(item.due_at) <= now_s


def words_of(item: ScheduledItem) -> str:
    """The item in words, as recall finds it."""
    said = f"{item.kind.replace('_', ' ')}, {item.status}, due {item.due_at}: {item.title}"
    return said if item.note is None else f"{said}\n{item.note}"


def shown(item: ScheduledItem, now_s: int) -> dict[str, Any]:
    """The item as it is answered: with its state as of now, without what only we need."""
    state = "due" if is_due(item, now_s) else "scheduled"
    fields = msgspec.structs.asdict(item)
    del fields["identity"]
    return fields | {"derived_state": state if item.status == "pending" else "terminal"}


def listed(items: Iterable[ScheduledItem], asked: ListItems, now_s: int) -> dict[str, Any]:
    """A page of the items that are meant, the soonest first."""
    found = sorted((item for item in items if _is_meant(item, asked, now_s)), key=_order)
    page = found[asked.offset : asked.offset + asked.limit]
    return {
        "ok": True,
        "count": len(page),
        "total": len(found),
        "limit": asked.limit,
        "offset": asked.offset,
        "items": [shown(item, now_s) for item in page],
        "warnings": [],
    }


def _order(item: ScheduledItem) -> tuple[str, str]:
    return item.due_at, item.schedule_id


def _is_meant(item: ScheduledItem, asked: ListItems, now_s: int) -> bool:
    if asked.status is not None:
        if item.status != asked.status:
            return False
    elif item.status == "retired" and not asked.include_retired:
        return False
    if asked.due is not None and (item.status != "pending" or is_due(item, now_s) is not asked.due):
        return False
    names = ("task_id", "thread_id", "subject_kind", "subject_id")
    return all(getattr(asked, name) in (None, getattr(item, name)) for name in names)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the schedule an orientation tells; the three settings of the contract."""

    due_limit: int
    upcoming_limit: int
    upcoming_hours: int


def context_of(
    items: Iterable[ScheduledItem], selectors: tuple[Selector, ...], window: Window, now_s: int
) -> dict[str, Any]:
    """What is due and what comes soon for these subjects, and nobody else's (000, schedule)."""
    pending = sorted(
        (item for item in items if item.status == "pending" and _is_about(item, selectors)),
        key=_order,
    )
    horizon_s = now_s + window.upcoming_hours * 3600
    due = [item for item in pending if is_due(item, now_s)]
    soon = [item for item in pending if now_s < seconds_of(item.due_at) <= horizon_s]
    return {
        "due": _block(due, window.due_limit, now_s),
        "upcoming": {
            "window_hours": window.upcoming_hours,
            **_block(soon, window.upcoming_limit, now_s),
        },
        "warnings": [],
    }


def _block(items: list[ScheduledItem], most: int, now_s: int) -> dict[str, Any]:
    told = [shown(item, now_s) for item in items[:most]]
    return {"items": told, "count": len(told), "truncated": len(items) > most}


def _is_about(item: ScheduledItem, selectors: tuple[Selector, ...]) -> bool:
    """By its subject; a thread or a task also by the link of that name."""
    for selector in selectors:
        if (item.subject_kind, item.subject_id) == (selector.subject_kind, selector.subject_id):
            return True
        link = getattr(item, f"{selector.subject_kind}_id", None)
        if selector.subject_kind in ("thread", "task") and link == selector.subject_id:
            return True
    return False
