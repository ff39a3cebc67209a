"""Can the comparer see?  It complains about planted differences, and about nothing else."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def replay():
    """The comparer, loaded by its path."""
    name = "tests_golden_replay"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("replay.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def scenario(body, status=200, **rest):
    step = {"request": {}, "response": {"status": status, "body": body}}
    step |= {name: rest.pop(name) for name in ("expect", "reference_bug") if name in rest}
    return {"steps": [step], "volatile": [], "soft": []} | rest


DIFFERENT = [
    ({"a": 1}, {"a": 2}, {}),
    ({"a": 1}, {}, {}),
    ({"a": True}, {"a": 1}, {}),
    ({"a": [1, 2]}, {"a": [2, 1]}, {}),
    ({"a": [1]}, {"a": [1, 2]}, {}),
    ({"a": 1}, {"a": "1"}, {"volatile": ["/a"]}),
    ({"a": "{{id}}"}, {"a": "other"}, {"volatile": ["/a"]}),
    ({"a": "{{server_time}}"}, {"a": None}, {}),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, {"soft": ["/b"]}),
    ({"results": []}, {"results": [{"text": "x"}]}, {"soft": ["/results"], "expect": {"empty": 1}}),
    (
        {"tools": [{"name": "a", "path": "/x"}], "count": 9, "__projected__": ""},
        {"tools": [{"name": "a", "path": "/x"}], "count": 2},
        {},
    ),
    (
        {"tools": [{"name": "a", "input_schema": {"properties": {"description": 1}}}]}
        | {"__projected__": ""},
        {"tools": [{"name": "a", "input_schema": {"properties": {}}}]},
        {},
    ),
]


@pytest.mark.parametrize("recorded, answered, marks", DIFFERENT)
def test_a_difference_is_seen(replay, recorded, answered, marks):
    """A value, a type, a length, an order or a captured id that differs is named."""
    found = replay.check(scenario(recorded, **marks), [replay.Answer(200, answered)])

    assert 1 <= len(found)


ALIKE = [
    ({"a": 1}, {"a": 1, "b": 2}, {}),
    ({"a": 1}, {"a": 2}, {"volatile": ["/a"]}),
    ({"a": 1}, {"a": None}, {"volatile": ["/*"]}),
    ({"x": [{"a": 1}]}, {"x": [{"a": "z"}]}, {"soft": ["**/a"]}),
    ({"a": "{{server_time}}"}, {"a": "{{server_time}}"}, {}),
    ({"w": ["one", "gone"]}, {"w": ["one"]}, {"soft_values": ["gone"]}),
    (
        {"tools": [{"name": "a", "description": "x"}], "count": 9, "__projected__": ""},
        {"tools": [{"name": "b"}, {"name": "a", "description": "y"}], "count": 2},
        {},
    ),
]


@pytest.mark.parametrize("recorded, answered, marks", ALIKE)
def test_the_alike_are_left_alone(replay, recorded, answered, marks):
    """Further keys, and what was marked as volatile or soft, are no difference."""
    assert [] == replay.check(scenario(recorded, **marks), [replay.Answer(200, answered)])


def test_a_crash_is_never_right(replay):
    """Where the recorded system crashed any answer will do, except another crash."""
    crashed = scenario({}, 500, reference_bug=True)

    assert [] == replay.check(crashed, [replay.Answer(422, {})])
    assert 1 == len(replay.check(crashed, [replay.Answer(500, {})]))


def test_values_come_back_as_templates(replay):
    """What a request was given, and times of the run, are turned back wherever they are said."""
    context = replay.Context({"id": "abcd-1"})
    due = context.resolve({"due": "{{now+60}}", "title": "{{repeat:x:3}}"})
    now = context.resolve("{{now}}")
    said = {"due": due["due"], "path": "/items/abcd-1", "text": "xxx", "at": now}

    back = context.unresolve(said, context.start + 1)

    assert {"due": "{{now+60}}", "path": "/items/{{id}}", "text": "{{repeat:x:3}}"} | {
        "at": "{{now}}"
    } == back
