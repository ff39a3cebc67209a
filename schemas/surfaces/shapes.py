"""Is a body of the shape a surface declares, and if not, where not?

A dialect's clients read every complaint at once, each with its place (`loc`), as the validator of
the original says them. A shape is declared once: it checks bodies and it is the published schema.
Only what was given comes back: a field that is absent, null or empty may mean three things.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from schemas.errors import InvalidBody

Loc = tuple[str | int, ...]
REQUIRED: Final[Any] = object()
ABSENT: Final[Any] = object()

_TRUE: Final = frozenset({"true", "1", "yes", "on", "y", "t"})
_FALSE: Final = frozenset({"false", "0", "no", "off", "n", "f"})
_WHOLE: Final = re.compile(r"\s*[+-]?\d+(\.0+)?\s*")


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong, and where."""

    type: str
    loc: Loc
    msg: str


class BadShape(InvalidBody):
    """A body that is not of its shape."""

    def __init__(self, complaints: Sequence[Complaint]) -> None:
        first = complaints[0]
        field = ".".join(map(str, first.loc[1:])) or "body"
        super().__init__(field=field, reason=first.msg)
        self.complaints = tuple(complaints)


class Shape:
    """What a value must look like; subclasses say how."""

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The value as it is meant; what is wrong is added to the list."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """The shape as JSON Schema."""
        raise NotImplementedError

    def parse(self, value: Any, loc: Loc = ("body",)) -> Any:
        """The value, or BadShape with every complaint there is."""
        wrong: list[Complaint] = []
        read = self.read(value, loc, wrong)
        if wrong:
            raise BadShape(wrong)
        return read


@dataclass(frozen=True)
class Anything(Shape):
    """Any JSON value."""

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """As it came."""
        del loc, wrong
        return value

    def schema(self) -> dict[str, Any]:
        """Anything goes."""
        return {}


@dataclass(frozen=True)
class Text(Shape):
    """A string of so many characters."""

    max: int | None = None
    min: int = 0

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The string."""
        if not isinstance(value, str):
            wrong.append(Complaint("string_type", loc, "Input should be a valid string"))
        elif len(value) < self.min:
            msg = f"String should have at least {_count(self.min, 'character')}"
            wrong.append(Complaint("string_too_short", loc, msg))
        elif self.max is not None and len(value) > self.max:
            msg = f"String should have at most {_count(self.max, 'character')}"
            wrong.append(Complaint("string_too_long", loc, msg))
        return value

    def schema(self) -> dict[str, Any]:
        """With its bounds."""
        bounds = {"minLength": self.min or None, "maxLength": self.max}
        return {"type": "string"} | {name: n for name, n in bounds.items() if n is not None}


_ANY_TEXT: Final = Text()


@dataclass(frozen=True)
class Choice(Shape):
    """One of these words."""

    words: tuple[str, ...]

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The word."""
        if not isinstance(value, str) or value not in self.words:
            quoted = [f"'{word}'" for word in self.words]
            said = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
            wrong.append(Complaint("literal_error", loc, f"Input should be {said}"))
        return value

    def schema(self) -> dict[str, Any]:
        """An enumeration."""
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Number(Shape):
    """A number within bounds; a whole one unless said otherwise. Digits in a string are read."""

    ge: float | None = None
    le: float | None = None
    is_whole: bool = True

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The number."""
        read = self._number(value)
        if read is None:
            wrong.append(Complaint(*self._fault(value, loc)))
            return value
        if self.ge is not None and not read >= self.ge:
            msg = f"Input should be greater than or equal to {self.ge}"
            wrong.append(Complaint("greater_than_equal", loc, msg))
        elif self.le is not None and not read <= self.le:
            msg = f"Input should be less than or equal to {self.le}"
            wrong.append(Complaint("less_than_equal", loc, msg))
        return read

    def _fault(self, value: Any, loc: Loc) -> tuple[str, Loc, str]:
        name, kind = ("integer", "int") if self.is_whole else ("number", "float")
        said = f"Input should be a valid {name}"
        if isinstance(value, str):
            article = "an" if self.is_whole else "a"
            return f"{kind}_parsing", loc, f"{said}, unable to parse string as {article} {name}"
        if self.is_whole and isinstance(value, float):
            return "int_from_float", loc, f"{said}, got a number with a fractional part"
        return f"{kind}_type", loc, said

    def _number(self, value: Any) -> int | float | None:
        if isinstance(value, str):
            try:
                if not self.is_whole:
                    return float(value)
                return int(float(value)) if _WHOLE.fullmatch(value) else None
            except (ValueError, OverflowError):
                return None
        if isinstance(value, bool):
            return int(value) if self.is_whole else float(value)
        if isinstance(value, int):
            is_float = abs(value) <= sys.float_info.max
            return value if self.is_whole else float(value) if is_float else None
        if not isinstance(value, float):
            return None
        if not self.is_whole:
            return value
        return int(value) if value.is_integer() else None

    def schema(self) -> dict[str, Any]:
        """With its bounds."""
        bounds = {"minimum": self.ge, "maximum": self.le}
        kind = {"type": "integer" if self.is_whole else "number"}
        return kind | {name: n for name, n in bounds.items() if n is not None}


@dataclass(frozen=True)
class Flag(Shape):
    """True or false, also in words."""

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The truth."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        said = "Input should be a valid boolean"
        if isinstance(value, str | int | float):
            said += ", unable to interpret input"
        kind = "bool_type" if value is None or isinstance(value, list | dict) else "bool_parsing"
        wrong.append(Complaint(kind, loc, said))
        return value

    def schema(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Items(Shape):
    """A list of so many of one shape."""

    of: Shape
    max: int | None = None
    min: int = 0

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The items; a list that is too long is not looked into."""
        if not isinstance(value, list):
            wrong.append(Complaint("list_type", loc, "Input should be a valid list"))
            return value
        before = len(wrong)
        if self.max is not None and len(value) > self.max:
            most = f"{_count(self.max, 'item')} after validation, not {len(value)}"
            wrong.append(Complaint("too_long", loc, f"List should have at most {most}"))
            return value
        if self.of == _ANY_TEXT and all(type(item) is str for item in value):
            read = [*value]
        else:
            read = [self.of.read(item, (*loc, at), wrong) for at, item in enumerate(value)]
        if len(wrong) == before and len(value) < self.min:
            least = f"{_count(self.min, 'item')} after validation, not {len(value)}"
            wrong.append(Complaint("too_short", loc, f"List should have at least {least}"))
        return read

    def schema(self) -> dict[str, Any]:
        """An array with its bounds."""
        bounds = {"minItems": self.min or None, "maxItems": self.max}
        kind = {"type": "array", "items": self.of.schema()}
        return kind | {name: n for name, n in bounds.items() if n is not None}


@dataclass(frozen=True)
class Table(Shape):
    """An object of the client's own fields."""

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """As it came."""
        if not isinstance(value, dict):
            wrong.append(Complaint("dict_type", loc, "Input should be a valid dictionary"))
        return value

    def schema(self) -> dict[str, Any]:
        """An object."""
        return {"type": "object", "additionalProperties": True}


@dataclass(frozen=True)
class Maybe(Shape):
    """The shape, or null."""

    of: Shape

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """Null, or what the shape reads."""
        return None if value is None else self.of.read(value, loc, wrong)

    def schema(self) -> dict[str, Any]:
        """Either of both."""
        return {"anyOf": [self.of.schema(), {"type": "null"}]}


Check = Callable[[dict[str, Any]], str | None]
"""What is wrong with fields that are each right by themselves; None when nothing is."""


@dataclass(frozen=True)
class Field:
    """One field of a model: its shape, and what it is when it is not given."""

    shape: Shape
    default: Any = REQUIRED


@dataclass(frozen=True)
class Model(Shape):
    """An object of named fields, in their order."""

    name: str
    fields: Mapping[str, Field | Shape]
    forbids_extra: bool = False
    check: Check | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names under which a field is taken too."""
    parts: tuple[tuple[str, Shape, Any], ...] = field(init=False, compare=False, repr=False)
    """Name, shape and default of each field: taken apart once, not for every body."""

    def __post_init__(self) -> None:
        parts = tuple((name, *_split(declared)) for name, declared in self.fields.items())
        object.__setattr__(self, "parts", parts)

    def read(self, value: Any, loc: Loc, wrong: list[Complaint]) -> Any:
        """The fields that were given, under their own names."""
        if not isinstance(value, dict):
            msg = "Input should be a valid dictionary or object to extract fields from"
            wrong.append(Complaint("model_attributes_type", loc, msg))
            return value
        given = value
        if self.aliases:
            given = {self.aliases.get(name, name): item for name, item in value.items()}
        before, read = len(wrong), dict[str, Any]()
        for name, shape, default in self.parts:
            if name in given:
                read[name] = shape.read(given[name], (*loc, name), wrong)
            elif default is REQUIRED:
                wrong.append(Complaint("missing", (*loc, name), "Field required"))
        if self.forbids_extra:
            wrong += [
                Complaint("extra_forbidden", (*loc, name), "Extra inputs are not permitted")
                for name in given
                if name not in self.fields
            ]
        if self.check is not None and len(wrong) == before:
            problem = self.check(read)
            if problem is not None:
                wrong.append(Complaint("value_error", loc, f"Value error, {problem}"))
        return read

    def filled(self, value: dict[str, Any]) -> dict[str, Any]:
        """With the defaults of what was not given, all the way down, in the order declared."""
        full: dict[str, Any] = {}
        for name, shape, default in self.parts:
            if name in value:
                full[name] = _filled(shape, value[name])
            elif default not in (REQUIRED, ABSENT):
                full[name] = default() if callable(default) else default
        return full

    def stored(self, value: dict[str, Any]) -> dict[str, Any]:
        """As it is kept: with its defaults, and without what is null."""
        kept: dict[str, Any] = {}
        for name, shape, default in self.parts:
            if name in value:
                if value[name] is not None:
                    kept[name] = _stored(shape, value[name])
            elif default not in (REQUIRED, ABSENT, None):
                kept[name] = default() if callable(default) else default
        return kept

    def schema(self) -> dict[str, Any]:
        """An object, closed where it is closed."""
        required = [name for name, _, default in self.parts if default is REQUIRED]
        made: dict[str, Any] = {
            "type": "object",
            "title": self.name,
            "properties": {name: _described(shape, default) for name, shape, default in self.parts},
        }
        if required:
            made["required"] = required
        if self.forbids_extra:
            made["additionalProperties"] = False
        return made


def _split(declared: Field | Shape) -> tuple[Shape, Any]:
    return (
        (declared.shape, declared.default) if isinstance(declared, Field) else (declared, REQUIRED)
    )


def _described(shape: Shape, default: Any) -> dict[str, Any]:
    if default is REQUIRED or default is ABSENT:
        return shape.schema()
    return shape.schema() | {"default": default() if callable(default) else default}


def _filled(shape: Shape, value: Any) -> Any:
    if isinstance(shape, Maybe):
        return None if value is None else _filled(shape.of, value)
    if isinstance(shape, Model):
        return shape.filled(value)
    if isinstance(shape, Items):
        return _each(_filled, shape.of, value)
    return value


def _stored(shape: Shape, value: Any) -> Any:
    if isinstance(shape, Maybe):
        return _stored(shape.of, value)
    if isinstance(shape, Model):
        return shape.stored(value)
    if isinstance(shape, Items):
        return _each(_stored, shape.of, value)
    return value


def _each(read: Callable[[Shape, Any], Any], shape: Shape, items: list[Any]) -> list[Any]:
    """A new list of what is read of each item; sentences are what they are."""
    return [*items] if isinstance(shape, Text) else [read(shape, item) for item in items]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
