"""Do answers agree with recorded ones?  Scenarios are played step by step, then compared.

`tests/golden/<system>/*.json` hold recorded requests and answers of the systems whose contracts the
surfaces keep. A scenario may say `{{now+60}}` (a time, from the start of the scenario),
`{{epoch+60}}` and `{{epoch_ms+60}}` (the same as a number), `{{repeat:x:160}}` and `{{name}}` (a
value taken from an earlier answer, or given by who plays); in answers also `{{server_time}}` and
`{{server_epoch}}`, some time during the run. Answers are turned back into these before they are
compared:

1. the status is equal;
2. every recorded key is there with an equal value, further keys are fine; arrays are equal in
   length and order;
3. where a pointer is `volatile` only the type counts, unless the recorded value is a template;
4. where it is `soft`, or the value is one of `soft_values`, nothing counts: rankings, a validator's
   own words, warnings that only another layout of files gives;
5. `expect` says what ranked results hold whatever their scores;
6. a catalogue of tools is compared by what it lets one call: of a recorded list that was cut down
   to the contract (`__projected__`) its length is not known, and its prose is the server's own.
"""

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

HERE = Path(__file__).resolve().parent
PROJECTED = "__projected__"
"""Marks a recorded body whose lists were cut down to what the contract has."""

_TEMPLATE = re.compile(r"\{\{([^{}]+)\}\}")
_TIME = re.compile(r"(now|epoch|epoch_ms)([+-]\d+)?")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_SERVER_TIMES = ("{{server_time}}", "{{server_epoch}}")
_SLACK_S = 3
_CAPTURED_MIN = 4
_EPOCH_MIN = 10**8
_WAIT_S = 60.0

Setup = Callable[[str, Any, "Context"], None]


@dataclass(frozen=True)
class Difference:
    """A place where an answer is not as recorded."""

    step: int
    place: str
    recorded: Any
    answered: Any

    def __str__(self) -> str:
        recorded, answered = (_shown(value) for value in (self.recorded, self.answered))
        return f"step {self.step} {self.place}: recorded {recorded}, answered {answered}"


@dataclass
class Answer:
    """What came back for one step."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def names(system: str) -> list[str]:
    """The scenarios of a system, in order."""
    return sorted(path.stem for path in (HERE / system).glob("*.json"))


def load(system: str, name: str) -> dict[str, Any]:
    """One scenario."""
    scenario: dict[str, Any] = json.loads((HERE / system / f"{name}.json").read_text("utf-8"))
    return scenario


# ── playing ──────────────────────────────────────────────────────────────────────────────────


class Context:
    """What the templates of one scenario stand for, and which values they came to."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.start = int(time.time())
        self.variables = dict(variables)
        self._templates: dict[Any, str] = {}

    def resolve(self, value: Any) -> Any:
        """A part of a request with its templates filled in."""
        if isinstance(value, str):
            whole = _TEMPLATE.fullmatch(value)
            if whole:
                return self._meant(whole[1])
            return _TEMPLATE.sub(lambda found: str(self._meant(found[1])), value)
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if isinstance(value, dict):
            return {self.resolve(key): self.resolve(item) for key, item in value.items()}
        return value

    def _meant(self, name: str) -> Any:
        if name.startswith("repeat:"):
            _, letter, count = name.split(":")
            return self._known(letter * int(count), name)
        found = _TIME.fullmatch(name)
        if found is None:
            return self.variables[name]
        kind, offset = found[1], found[2] or ""
        moment = self.start + int(offset or 0)
        if kind == "now":
            stamp = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return self._known(stamp, name)
        if kind == "epoch_ms":
            self._known(moment, f"epoch{offset}")
            return self._known(moment * 1000, name)
        return self._known(moment, name)

    def _known(self, value: Any, name: str) -> Any:
        self._templates[value] = f"{{{{{name}}}}}"
        return value

    def unresolve(self, value: Any, end: float) -> Any:
        """A part of an answer with known values turned back into templates."""
        captured = [
            (text, name)
            for name, text in self.variables.items()
            if isinstance(text, str)
            and len(text) >= _CAPTURED_MIN
            and not name.startswith("token:")
        ]
        captured.sort(key=lambda pair: -len(pair[0]))
        return self._unresolved(value, captured, end)

    def _unresolved(self, value: Any, captured: list[tuple[str, str]], end: float) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return self._number(value, end)
        if isinstance(value, str):
            return self._text(value, captured, end)
        if isinstance(value, list):
            return [self._unresolved(item, captured, end) for item in value]
        return {
            self._unresolved(key, captured, end): self._unresolved(item, captured, end)
            for key, item in value.items()
        }

    def _number(self, value: float, end: float) -> Any:
        if isinstance(value, int) and value > _EPOCH_MIN and value in self._templates:
            return self._templates[value]
        return "{{server_epoch}}" if self._is_during(value, end) else value

    def _text(self, value: str, captured: list[tuple[str, str]], end: float) -> str:
        if value in self._templates:
            return self._templates[value]
        for text, name in captured:
            value = value.replace(text, f"{{{{{name}}}}}")
        if _ISO.fullmatch(value) and self._is_during(
            datetime.fromisoformat(value).timestamp(), end
        ):
            return "{{server_time}}"
        return value

    def _is_during(self, moment: float, end: float) -> bool:
        return self.start - _SLACK_S <= moment <= end + _SLACK_S


def play(
    url: str, scenario: dict[str, Any], variables: dict[str, Any], setup: Setup | None = None
) -> list[Answer]:
    """Send every step; the answers, with known values turned back into templates.

    `setup(kind, value, context)` is called for what a scenario or a step wants beforehand.
    """
    context = Context(variables)
    if scenario.get("setup") and setup is not None:
        setup("scenario", scenario["setup"], context)
    answers = []
    for number, step in enumerate(scenario["steps"]):
        time.sleep(step.get("wait_seconds") or 0)
        if step.get("setup") and setup is not None:
            setup("step", step["setup"], context)
        answer = _sent(url, step["request"], context)
        for name, place in (step.get("capture") or {}).items():
            context.variables[name] = _taken(answer.body, place, number)
        answers.append(answer)
    end = time.time()
    for answer in answers:
        answer.body = context.unresolve(answer.body, end)
        answer.headers = context.unresolve(answer.headers, end)
    return answers


def _sent(url: str, request: dict[str, Any], context: Context) -> Answer:
    base = urlsplit(url)
    path = base.path.rstrip("/") + quote(context.resolve(request["path"]), "/:@!$&'()*+,;=-._~%")
    query = context.resolve(request.get("query") or {})
    if query:
        path += "?" + urlencode(query, doseq=True)
    given = context.resolve(request.get("headers_of_interest") or {})
    headers = {name.lower(): str(value) for name, value in given.items()}
    body = None
    if "raw_body" in request:
        body = str(context.resolve(request["raw_body"])).encode()
    elif request.get("body") is not None:
        body = json.dumps(context.resolve(request["body"]), ensure_ascii=False).encode()
    if body is not None:
        headers.setdefault("content-type", "application/json")
    connection = http.client.HTTPConnection(str(base.hostname), base.port, timeout=_WAIT_S)
    try:
        connection.request(request["method"], path, body, headers)
        response = connection.getresponse()
        said = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, _read(response.read(), said.get("content-type", "")), said)
    finally:
        connection.close()


def _read(content: bytes, media_type: str) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        is_stream = "event-stream" in media_type
        text = "<event stream>" if is_stream else content.decode("utf-8", "replace")
        return {"__text__": text, "__content_type__": media_type}


def _taken(body: Any, place: str, step: int) -> Any:
    try:
        for part in filter(None, place.split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            body = body[int(name)] if isinstance(body, list) else body[name]
    except (KeyError, IndexError, TypeError):
        return f"<not captured: {place} of step {step}>"
    return body


# ── comparing ────────────────────────────────────────────────────────────────────────────────


def check(scenario: dict[str, Any], answers: list[Answer]) -> list[Difference]:
    """Where the answers are not as recorded.

    Where the recorded system crashed, any answer will do that is no crash.
    """
    found: list[Difference] = []
    for number, (step, got) in enumerate(zip(scenario["steps"], answers, strict=True)):
        recorded = step["response"]
        if step.get("reference_bug"):
            if got.status >= 500:
                found.append(Difference(number, "status", "no crash", got.status))
            continue
        if recorded["status"] != got.status:
            found.append(Difference(number, "status", recorded["status"], [got.status, got.body]))
            continue
        soft = [*scenario.get("soft", []), *step.get("soft", [])]
        judge = _Judge(number, scenario.get("volatile", []), soft)
        dropped = scenario.get("soft_values", [])
        expected, answered = _cut(recorded["body"], got.body)
        found += judge.compare(_without(expected, dropped), _without(answered, dropped))
        found += [
            Difference(number, f"header {name}", value, got.headers.get(name))
            for name, value in (recorded.get("headers") or {}).items()
            if value != got.headers.get(name)
        ]
        found += _ranked(number, step.get("expect") or {}, got.body)
    return found


class _Judge:
    """Compares one step's bodies."""

    def __init__(self, step: int, volatile: list[str], soft: list[str]) -> None:
        self._step = step
        self._volatile = [_parts(pattern) for pattern in volatile]
        self._soft = [_parts(pattern) for pattern in soft]

    def compare(
        self, recorded: Any, answered: Any, at: tuple[str, ...] = ()
    ) -> Iterator[Difference]:
        if recorded in _SERVER_TIMES:
            if answered is None or isinstance(answered, bool | list | dict):
                yield self._differ(at, "a time", answered)
        elif isinstance(recorded, str) and _TEMPLATE.fullmatch(recorded):
            # A captured value or a time of the request must come back, volatile or not.
            if recorded != answered and not _is_at(self._soft, at):
                yield self._differ(at, recorded, answered)
        elif _is_at(self._volatile, at):
            kinds = {_kind(recorded), _kind(answered)}
            if "null" not in kinds and len(kinds) > 1 and answered not in _SERVER_TIMES:
                yield self._differ(at, _kind(recorded), answered)
        elif not _is_at(self._soft, at):
            yield from self._deeper(recorded, answered, at)

    def _deeper(self, recorded: Any, answered: Any, at: tuple[str, ...]) -> Iterator[Difference]:
        if isinstance(recorded, dict) and isinstance(answered, dict):
            for key, value in recorded.items():
                place = (*at, str(key))
                if key in answered:
                    yield from self.compare(value, answered[key], place)
                elif key != PROJECTED and not _is_at([*self._volatile, *self._soft], place):
                    yield self._differ(place, value, "<missing>")
        elif isinstance(recorded, list) and isinstance(answered, list):
            if len(recorded) != len(answered):
                yield self._differ(at, f"{len(recorded)} items", f"{len(answered)} items")
            for number, (one, other) in enumerate(zip(recorded, answered, strict=False)):
                yield from self.compare(one, other, (*at, str(number)))
        elif recorded != answered or isinstance(recorded, bool) != isinstance(answered, bool):
            yield self._differ(at, recorded, answered)

    def _differ(self, at: tuple[str, ...], recorded: Any, answered: Any) -> Difference:
        return Difference(self._step, "/" + "/".join(at), recorded, answered)


def _parts(pointer: str) -> tuple[str, ...]:
    parts = pointer.strip("/").split("/") if pointer.strip("/") else []
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _is_at(patterns: list[tuple[str, ...]], at: tuple[str, ...]) -> bool:
    return any(_fits(pattern, at) for pattern in patterns)


def _fits(pattern: tuple[str, ...], at: tuple[str, ...]) -> bool:
    """`*` is one segment, `**` any number of them."""
    if not pattern:
        return not at
    if pattern[0] == "**":
        return any(_fits(pattern[1:], at[start:]) for start in range(len(at) + 1))
    return bool(at) and pattern[0] in ("*", at[0]) and _fits(pattern[1:], at[1:])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "number")


def _cut(recorded: Any, answered: Any) -> tuple[Any, Any]:
    """Two catalogues of tools, with only what they can be held to."""
    if not (isinstance(recorded, dict) and isinstance(answered, dict) and PROJECTED in recorded):
        return recorded, answered
    one, other = _silent(recorded), _silent(answered)
    for ours, theirs in ((one, other), (one.get("result"), other.get("result"))):
        if not (isinstance(ours, dict) and isinstance(theirs, dict) and "tools" in ours):
            continue
        order = [tool["name"] for tool in ours["tools"]]
        if "count" in ours and theirs.get("count") == len(theirs.get("tools", [])):
            ours["count"] = theirs["count"]
        kept = [tool for tool in theirs.get("tools", []) if tool.get("name") in order]
        theirs["tools"] = sorted(kept, key=lambda tool: order.index(tool["name"]))
    return one, other


def _silent(value: Any, *, is_named: bool = False) -> Any:
    """Without descriptions; a field may have that name, then it stays."""
    if isinstance(value, list):
        return [_silent(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _silent(item, is_named=key in {"properties", "$defs"})
        for key, item in value.items()
        if is_named or key != "description"
    }


def _without(value: Any, dropped: list[Any]) -> Any:
    """A body without these items of its lists."""
    if not dropped:
        return value
    if isinstance(value, list):
        kept = [item for item in value if not (isinstance(item, str) and item in dropped)]
        return [_without(item, dropped) for item in kept]
    if isinstance(value, dict):
        return {key: _without(item, dropped) for key, item in value.items()}
    return value


def _ranked(step: int, expect: dict[str, Any], body: Any) -> Iterator[Difference]:
    """What holds of ranked results whatever the scores are."""
    rows = (body.get("results") or []) if isinstance(body, dict) else []
    texts = [row.get("text") for row in rows]
    if "top" in expect and texts[:1] != [expect["top"]]:
        yield Difference(step, "expect.top", expect["top"], texts[:1])
    for text in expect.get("must", []):
        if text not in texts:
            yield Difference(step, "expect.must", text, texts[:5])
    for text in expect.get("must_not", []):
        if text in texts:
            yield Difference(step, "expect.must_not", text, texts[:5])
    if expect.get("empty") and texts:
        yield Difference(step, "expect.empty", [], texts[:3])
    kinds = [row.get("category") for row in rows]
    if "categories" in expect and set(kinds) - set(expect["categories"]):
        yield Difference(step, "expect.categories", expect["categories"], kinds)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + "…"
