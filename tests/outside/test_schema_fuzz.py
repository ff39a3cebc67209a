"""Does the server keep to its published page, whatever is sent?  Requests made up from the page."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from api.endpoint import Endpoint
from api.v1 import ENDPOINTS

REQUESTS = 2000
"""Requests made up; each is sent with a token, without one, and to a server that asks for none."""

FUZZED = [e for e in ENDPOINTS if e.media_type != "text/event-stream"]
EACH = math.ceil(REQUESTS / len(FUZZED))
EDGES = EACH // 2
SEED = 20260513
OPERATOR = "user:root"
SCOPE = "org:acme/user:alice"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@dataclass
class House:
    """A signed server and an unsigned one, the page they publish, and what can be found there."""

    realm: Any
    unsigned: Any
    page: BaseSchema
    known: dict[str, str]

    def operation(self, endpoint: Endpoint) -> APIOperation:
        """An endpoint, as the page has it."""
        path = endpoint.path.replace(":path}", "}")
        return self.page[path][endpoint.method]

    def ways(self) -> dict[str, tuple[str, dict[str, str]]]:
        """How each request is sent: to which server, with which headers beside its own."""
        signed = self.realm.server.url
        return {
            "with a token": (signed, self.realm.headers(OPERATOR, "system")),
            "without a token": (signed, {}),
            "unsigned": (self.unsigned.url, {}),
        }


@dataclass
class Findings:
    """What came back, by the way it was asked for."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)

    def statuses(self, way: str) -> set[int]:
        """Every status of a way."""
        return {status for asked, status in self.answers if asked == way}


def furnished(realm: Any) -> dict[str, str]:
    """Write something, so that made-up requests find it: a value for each path parameter."""
    body = {
        "scope": SCOPE,
        "modality": "conversation",
        "content": {"kind": "message", "role": "user", "text": "Acme moved to 200 seats"},
        "context": {"observed_at": "2026-05-13T15:42:00Z"},
        "idempotency_key": "furniture",
    }
    with realm.client(OPERATOR, "system") as client:
        written = client.post("/v1/experience?wait=settled", json=body).json()
        rows = client.get("/v1/audit", params={"capability": "scope.write"}).json()["items"]
        state = client.get(f"/v1/lifecycle/memory-event/{written['event_id']}").json()
        projectors = client.get("/v1/admin/projectors").json()["items"]
    return {
        "event_id": written["event_id"],
        "lifecycle_id": state["lifecycle_event_ids"][0],
        "audit_id": rows[0]["id"],
        "key": "furniture",
        "code": "NOT_FOUND",
        "projector": projectors[-1]["name"],
        "tenant": "system",
        "actor": OPERATOR,
        "scope": SCOPE,
        "path": SCOPE,
    }


def without_luck(page: Any) -> Any:
    """The page with any text for a duration: what looks ahead is met by luck, in half a minute.

    What is wrong there is wrong on the page as it is; more may be sent that is right here alone.
    """
    if isinstance(page, list):
        return [without_luck(one) for one in page]
    if not isinstance(page, dict):
        return page
    looks_ahead = isinstance(page.get("pattern"), str) and "(?=" in page["pattern"]
    return {
        name: without_luck(one)
        for name, one in page.items()
        if not (name == "pattern" and looks_ahead)
    }


@pytest.fixture(scope="session")
def open_house(
    open_realm: Callable[..., Any], start_server: Callable[..., Any]
) -> Callable[[Path], contextlib.AbstractContextManager[House]]:
    """Houses, each in a folder of its own and gone at the end of its block."""

    @contextlib.contextmanager
    def opened(folder: Path) -> Iterator[House]:
        with open_realm(folder) as realm:
            unsigned = start_server(folder / "unsigned")
            try:
                with realm.server.client() as client:
                    page = client.get("/v1/openapi.json").json()
                schema = schemathesis.openapi.from_dict(
                    without_luck(page), config=schemathesis.Config()
                )
                # Identity is not made up: it is one of the three ways.
                schema.config.generation.update(with_security_parameters=False)
                # A body that is bad and too large besides is refused for either.
                schema.config.checks.negative_data_rejection.expected_statuses = ["4xx"]
                yield House(realm, unsigned, schema, furnished(realm))
            finally:
                unsigned.stop()

    return opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, open_house: Any) -> Iterator[House]:
    """One house for all that leave it standing."""
    with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def house(request: pytest.FixtureRequest, endpoint: Endpoint, tmp_path: Path) -> Iterator[House]:
    """The shared house; a policy can shut everybody out, so its endpoints get their own."""
    if endpoint.method == "PUT" and endpoint.path.startswith("/v1/policy"):
        with request.getfixturevalue("open_house")(tmp_path) as own:
            yield own
    else:
        yield request.getfixturevalue("shared")


def cases(operation: APIOperation, known: dict[str, str]) -> st.SearchStrategy[Case]:
    """Requests as documented, such that find something, and such that contradict the page."""
    kinds = [operation.as_strategy(GenerationMode.POSITIVE)]
    kind = operation.path.split("/")[3] if "{name}" in operation.path else ""
    place = known | {"name": known.get(kind.removesuffix("s"), "")}
    fixed = {
        where: {p.name: place[p.name] for p in parameters if p.name in place}
        for where, parameters in (
            ("path_parameters", operation.path_parameters),
            ("query", operation.query),
        )
    }
    if any(fixed.values()):
        found = {where: values for where, values in fixed.items() if values}
        kinds.append(operation.as_strategy(GenerationMode.POSITIVE, **found))
    if len(operation.query) or len(operation.body):  # any text is a good path or header
        kinds.append(operation.as_strategy(GenerationMode.NEGATIVE))
    return st.one_of(kinds)


def edges(page: BaseSchema, operation: APIOperation) -> list[Case]:
    """The shortest and longest of everything, each part missing, twice or of another type.

    There are a dozen for the least endpoint and a thousand for the largest: some of these.
    """
    found = list(
        page.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=page.config.generation_for(operation=operation, phase="coverage"),
        )
    )
    return found[:: math.ceil(len(found) / EDGES)]


def checks_of(answer: Response) -> list[CheckFunction]:
    """All of them; but that a model named by a made-up word is not there is no error of ours."""
    is_said = answer.status_code == 503 and answer.json()["error_code"] == "ANSWER_UNAVAILABLE"
    return [check for check in CHECKS if not (is_said and check is not_a_server_error)]


def fuzz(house: House, endpoint: Endpoint) -> Findings:
    """Send what was made up, and hold every answer against the page."""
    operation, ways, findings = house.operation(endpoint), house.ways(), Findings()
    known_edges = edges(house.page, operation)

    def send(case: Case) -> None:
        for way, (url, headers) in ways.items():
            answer = case.call(url, session, headers=headers)
            findings.answers[way, answer.status_code] += 1
            try:
                case.validate_response(answer, checks_of(answer))
            except FailureGroup as failures:
                findings.complaints.append(f"{way}: {failures}")

    @seed(SEED)
    @settings(
        max_examples=EACH - len(known_edges),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(operation, house.known))
    def send_by_chance(case: Case) -> None:
        send(case)

    with requests.Session() as session:
        session.trust_env = False
        for case in known_edges:
            send(case)
        send_by_chance()
    return findings


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", FUZZED, ids=lambda e: f"{e.method} {e.path}")
def test_made_up_requests_get_documented_answers(house, endpoint):
    """No 5xx, no status, media type or shape that is not on the page; bad data is refused.

    With a good token nobody is asked who he is; without one nobody gets any further.
    """
    findings = fuzz(house, endpoint)

    assert [] == findings.complaints
    assert EACH <= sum(count for (way, _), count in findings.answers.items() if way == "unsigned")
    assert 401 not in findings.statuses("with a token")
    if not endpoint.is_open:
        # Nobody is asked who he is where there is nothing: no path of ours holds a line break.
        assert {401} == findings.statuses("without a token") - {404, 405}
