"""Does a shape find everything that is wrong, and where?"""

import pytest

from schemas.surfaces.shapes import (
    ABSENT,
    BadShape,
    Choice,
    Field,
    Flag,
    Items,
    Maybe,
    Model,
    Number,
    Table,
    Text,
)

INNER = Model("Inner", {"name": Text(3, 1)}, forbids_extra=True)
OUTER = Model(
    "Outer",
    {
        "kind": Choice(("a", "b")),
        "count": Field(Number(1, 5), 2),
        "share": Field(Number(0, 1, is_whole=False), 0.5),
        "inner": Field(Maybe(INNER), ABSENT),
        "many": Field(Items(INNER, 2, 1), list),
        "is_on": Field(Flag(), default=False),
        "rest": Field(Table(), dict),
    },
    check=lambda given: (
        "b needs a count" if given["kind"] == "b" and "count" not in given else None
    ),
)


def locs(body):
    with pytest.raises(BadShape) as caught:
        OUTER.parse(body)
    return [(one.type, one.loc[1:]) for one in caught.value.complaints]


@pytest.mark.parametrize(
    "body, wrong",
    [
        ([], [("model_attributes_type", ())]),
        ({}, [("missing", ("kind",))]),
        (
            {"kind": "c", "count": 6},
            [("literal_error", ("kind",)), ("less_than_equal", ("count",))],
        ),
        ({"kind": "a", "count": 0}, [("greater_than_equal", ("count",))]),
        ({"kind": "a", "count": 1.5}, [("int_from_float", ("count",))]),
        ({"kind": "a", "count": "x"}, [("int_parsing", ("count",))]),
        ({"kind": "a", "count": None}, [("int_type", ("count",))]),
        ({"kind": "a", "share": "x"}, [("float_parsing", ("share",))]),
        ({"kind": "a", "inner": {"name": "long"}}, [("string_too_long", ("inner", "name"))]),
        ({"kind": "a", "inner": {"name": "x", "y": 1}}, [("extra_forbidden", ("inner", "y"))]),
        ({"kind": "a", "many": []}, [("too_short", ("many",))]),
        ({"kind": "a", "many": [{"name": "x"}] * 3}, [("too_long", ("many",))]),
        (
            {"kind": "a", "many": [{"name": ""}, {}]},
            [("string_too_short", ("many", 0, "name")), ("missing", ("many", 1, "name"))],
        ),
        ({"kind": "a", "is_on": "maybe"}, [("bool_parsing", ("is_on",))]),
        ({"kind": "a", "is_on": []}, [("bool_type", ("is_on",))]),
        ({"kind": "a", "rest": None}, [("dict_type", ("rest",))]),
        ({"kind": "b"}, [("value_error", ())]),
    ],
)
def test_every_complaint_has_its_place(body, wrong):
    """All that is wrong is said at once, in the order of the fields."""
    assert wrong == locs(body)


def test_only_what_was_given_comes_back():
    """Absent, null and empty stay apart; numbers and truths in strings are read."""
    body = {"kind": "b", "count": "3", "inner": None, "is_on": "true", "unknown": 1}

    assert {"kind": "b", "count": 3, "inner": None, "is_on": True} == OUTER.parse(body)


def test_defaults_are_filled_and_nulls_left_out():
    """A stored value has every default, and no null."""
    read = OUTER.parse({"kind": "a", "inner": None})
    filled = {"kind": "a", "count": 2, "share": 0.5, "many": [], "is_on": False, "rest": {}}

    assert filled | {"inner": None} == OUTER.filled(read)
    assert filled == OUTER.stored(read)


def test_a_shape_is_its_schema():
    """What is checked is what is published."""
    schema = OUTER.schema()

    assert ["kind"] == schema["required"]
    assert {"type": "integer", "minimum": 1, "maximum": 5, "default": 2} == (
        schema["properties"]["count"]
    )
    assert False is schema["properties"]["many"]["items"]["additionalProperties"]
