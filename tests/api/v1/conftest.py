"""What do the tests of /v1 share?  A client that holds every answer against the published page."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator


class Contract:
    """The OpenAPI page of a server, as a judge of its answers."""

    def __init__(self, page: dict[str, Any]) -> None:
        self._components = page["components"]
        # The one parameter that may hold slashes is the last of its path.
        self._operations = [
            (re.compile(re.sub(r"\\{key\\}$", ".+", re.escape(path))), item)
            if path.endswith("{key}")
            else (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), item)
            for path, item in page["paths"].items()
        ]
        self._validators: dict[str, Draft202012Validator] = {}

    def check(self, response: httpx.Response) -> None:
        """The status is documented, the body is of the documented shape, the headers are there."""
        assert "x-cortex-request-id" in response.headers
        assert "x-cortex-stability" in response.headers
        operation = self._operation(response.request)
        if operation is None:
            return
        tiers = [operation["x-stability"]]
        tiers += ["experimental"] if "x-experimental-when" in operation else []
        assert response.headers["x-cortex-stability"] in tiers
        documented = operation["responses"].get(str(response.status_code))
        assert documented is not None, f"undocumented {response.status_code}: {response.request}"
        if response.status_code == 204:
            return
        media_type = response.headers["content-type"].partition(";")[0]
        assert media_type in documented["content"]
        if media_type == "application/json":
            response.read()
            self._validator(documented["content"][media_type]["schema"]).validate(response.json())

    def _operation(self, request: httpx.Request) -> dict[str, Any] | None:
        for pattern, item in self._operations:
            if pattern.fullmatch(request.url.path):
                return item.get(request.method.lower())
        return None

    def _validator(self, schema: dict[str, Any]) -> Draft202012Validator:
        name = repr(schema)
        if name not in self._validators:
            whole = {**schema, "components": self._components}
            self._validators[name] = Draft202012Validator(whole)
        return self._validators[name]


@pytest.fixture(scope="module")
def young_server(
    start_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A server for one file whose tests count entries: nobody but they writes to its log.

    The log of one that has been up for minutes is told what has come due by then, at any moment.
    """
    running = start_server(tmp_path_factory.mktemp("young") / "data")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def contract(server: Any) -> Contract:
    """What the shared server says of itself."""
    with server.client() as client:
        return Contract(client.get("/v1/openapi.json").json())


@pytest.fixture
def api(server: Any, contract: Contract) -> Iterator[httpx.Client]:
    """A client of the shared server whose every answer is checked against the OpenAPI page."""
    with server.client(event_hooks={"response": [contract.check]}) as client:
        yield client


@pytest.fixture
def capture(api: httpx.Client, envelope: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """Write one experience and see it through every stage; its event id."""

    def write(text: str = "hello", **changes: Any) -> str:
        answer = api.post("/v1/experience?wait=settled", json=envelope(text, **changes))
        assert 200 == answer.status_code, answer.text
        return answer.json()["event_id"]

    return write


@pytest.fixture
def told(api: httpx.Client) -> Callable[..., list[dict[str, Any]]]:
    """Write envelopes in one go and wait once until every view has them; the events, in order."""

    def write(*items: dict[str, Any]) -> list[dict[str, Any]]:
        assert 202 == api.post("/v1/experience/bulk", json={"items": items}).status_code
        assert 200 == api.post("/v1/admin/flush-views").status_code
        keys = [item["idempotency_key"] for item in items]
        found = [api.get(f"/v1/experience/by-idempotency-key/{key}").json() for key in keys]
        return [api.get(f"/v1/events/{one['event_id']}").json() for one in found]

    return write


@pytest.fixture
def stated(told: Callable[..., Any], envelope: Callable[..., Any]) -> Callable[..., Any]:
    """State things exactly: (time, subject, predicate, object), in one go; the events."""

    def write(*facts: tuple[str, Any, str, Any], **changes: Any) -> list[dict[str, Any]]:
        items = [
            envelope(
                content={
                    "kind": "triple",
                    "triple": {"subject": subject, "predicate": predicate, "object": thing},
                },
                context={"observed_at": at},
            )
            | changes
            for at, subject, predicate, thing in facts
        ]
        events: list[dict[str, Any]] = told(*items)
        return events

    return write


@pytest.fixture
def everything(api: httpx.Client) -> Callable[..., list[Any]]:
    """All items of a listing, by its cursors."""

    def read(path: str, **parameters: Any) -> list[Any]:
        items: list[Any] = []
        while True:
            answer = api.get(path, params=parameters)
            assert 200 == answer.status_code, answer.text
            page = answer.json()
            items += page["items"]
            assert page["has_more"] == (page["next_cursor"] is not None)
            if not page["has_more"]:
                return items
            parameters = parameters | {"cursor": page["next_cursor"]}

    return read


@pytest.fixture
def head(api: httpx.Client) -> Callable[[], int]:
    """The last offset of the log, as health tells it."""
    return lambda: api.get("/v1/admin/health").json()["head_offset"]


@pytest.fixture
def backlog(api: httpx.Client, envelope: Callable[..., dict[str, Any]]) -> Callable[[], str]:
    """Write more than the projectors take in one go; the id of the event at the very end."""

    def write() -> str:
        items = [envelope("x" * 2000) for _ in range(1000)]
        assert 202 == api.post("/v1/experience/bulk", json={"items": items}).status_code
        last = api.get(f"/v1/experience/by-idempotency-key/{items[-1]['idempotency_key']}")
        return last.json()["event_id"]

    return write
