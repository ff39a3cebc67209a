"""Is the whole of `/v1` in the client?  Compared with the server's one table of endpoints."""

import inspect
import typing

import msgspec
import pytest

from api.endpoint import Nothing
from api.v1 import ENDPOINTS
from strata_client.client import Client
from strata_client.methods import ROUTES, Group, Listing, Method, Streaming

DESCRIPTORS = (Method, Listing, Streaming)
MEANT = {"stream", "cursor", "name"}
"""Said by which method is called, by iterating, or by a part of the path."""


def methods():
    """(group, name, descriptor) of every method of the client."""
    for kind in {each for each in all_groups(Group) if each.__module__.startswith("strata_client")}:
        for name, value in vars(kind).items():
            if isinstance(value, DESCRIPTORS):
                yield kind.__name__, name, value


def all_groups(kind):
    for child in kind.__subclasses__():
        yield child
        yield from all_groups(child)


METHODS = sorted(methods(), key=lambda each: each[:2])


def of(endpoint):
    """The methods that ask an endpoint."""
    place = (endpoint.method, endpoint.path)
    return [each for _, _, each in METHODS if place == (each.route.method, each.route.path)]


def words_of(descriptor):
    """What a caller may say: the method's own parameters, and the keys of its typed dictionary."""
    build = descriptor._build
    words = set()
    for name, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            unpacked = typing.get_type_hints(build, include_extras=True)[name]
            (keys,) = typing.get_args(unpacked)
            words |= set(keys.__annotations__)
        else:
            words.add(name)
    return words


def test_every_endpoint_has_a_method_and_every_method_an_endpoint():
    """An endpoint that is added is missed here until a method asks it."""
    assert set(ROUTES) == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_every_field_of_a_request_can_be_said(endpoint):
    """Each query parameter and field of the body is a parameter of some method."""
    asked = [endpoint.query] if endpoint.query is not Nothing else []
    asked += [] if endpoint.body is None else [endpoint.body]
    fields = {field.encode_name for kind in asked for field in msgspec.structs.fields(kind)}
    words = set().union(*(words_of(each) for each in of(endpoint)))
    if endpoint.path == "/v1/scopes" and endpoint.method == "GET":
        words |= {"prefix", "auto_provisioned", "limit"}  # a page of scopes is asked of /list

    assert set() == fields - words - MEANT


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_an_answer_is_read_as_the_type_it_is(endpoint):
    """The struct a method gives has the name and the fields of the one the server sends."""
    kinds = endpoint.response if isinstance(endpoint.response, tuple) else (endpoint.response,)
    if endpoint.media_type != "application/json":
        return
    read = {each.route.result for each in of(endpoint) if not isinstance(each, Streaming)}

    for kind in read:
        names = {getattr(one, "__name__", None) for one in kinds}
        assert getattr(kind, "__name__", None) in names
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            (sent,) = [one for one in kinds if one.__name__ == kind.__name__]
            assert set(sent.__struct_encode_fields__) == set(kind.__struct_encode_fields__)


@pytest.mark.parametrize("group, name, descriptor", METHODS)
def test_a_method_says_what_it_is_for(group, name, descriptor):
    """Its docstring is what an editor shows, also on a client."""
    assert descriptor.__doc__
    assert name == descriptor._build.__name__


def test_help_shows_what_may_be_given():
    """The keys of a request are parameters there, and so is what comes first."""
    with Client("http://127.0.0.1:1") as client:
        shown = inspect.signature(client.facts.timeline)

    assert ["subject", "predicate"] == list(shown.parameters)[:2]
    assert {"scope", "as_of", "limit"} <= set(shown.parameters)
    assert "FactTimeline" == shown.return_annotation.__name__


def test_a_client_reaches_every_group():
    """What is a group is an attribute of the client."""
    reached = {
        typing.get_origin(typing.get_type_hints(value.func)["return"])
        for kind in Client.__mro__
        for value in vars(kind).values()
        if hasattr(value, "func")
    }
    kinds = {each for each in all_groups(Group) if any(g == each.__name__ for g, _, _ in METHODS)}

    assert {"Memory"} == {kind.__name__ for kind in kinds - reached}
