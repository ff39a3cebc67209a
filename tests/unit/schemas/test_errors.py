"""Has every error a code, a status and a remedy, and are those of the seed all there?  (001 §16)"""

import re
from pathlib import Path

import msgspec
import pytest

from api.errors import STATUS, extra_headers, render, status_of
from schemas import errors
from schemas.errors import REMEDIES, EngineError
from schemas.problem import ErrorEnvelope

CATALOGUE = Path(__file__).parents[2] / "golden" / "seed" / "16-errors.txt"


def ours(base):
    """The error classes below one that are of the contract: a surface has refusals of its own."""
    return [kind for kind in base.__subclasses__() if kind.__module__ == errors.__name__]


def kinds(base=EngineError):
    """Every error class."""
    for kind in ours(base):
        yield kind
        yield from kinds(kind)


KINDS = list(kinds())
BY_CODE = {kind.code: kind for kind in KINDS}


def seed_rows():
    """(status, code, retriable) of the seed's table, whose columns have run together."""
    for line in CATALOGUE.read_text(encoding="utf-8").splitlines():
        rest = line[3:]
        code = max((code for code in BY_CODE if rest.startswith(code)), key=len, default=rest)
        yield int(line[:3]), code, re.search(r"(no|yes.*|sometimes)$", rest)[1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_has_a_code_of_its_own(kind):
    """UPPER_SNAKE, said in the class itself, shared with no other (001 §18.2.22)."""
    assert "code" in vars(kind)
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", kind.code)
    assert kind is BY_CODE[kind.code]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_says_what_it_is(kind):
    """A docstring for us, a sentence for the caller."""
    assert (kind.__doc__ or "").strip()
    assert kind is errors.InvalidRequest or kind.summary != EngineError.summary
    assert kind.summary.endswith(".")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_has_a_status(kind):
    """A 4xx for what the caller must change, a 5xx for what we must."""
    status = status_of(kind)
    is_our_fault = issubclass(kind, errors.Unavailable | errors.Internal)

    assert (500 if is_our_fault else 400) <= status < (600 if is_our_fault else 500)
    assert status == status_of(kind("said"))


@pytest.mark.parametrize("kind", ours(EngineError), ids=lambda kind: kind.__name__)
def test_a_group_has_a_remedy(kind):
    """Errors are grouped by what to do about them (docs/adr/0008)."""
    assert REMEDIES[kind].endswith(".")


def test_the_remedies_are_of_groups():
    """And of nothing else."""
    assert set(ours(EngineError)) == set(REMEDIES)


@pytest.mark.parametrize("status, code, retriable", list(seed_rows()))
def test_section_16_row(status, code, retriable):
    """Each row of the seed's catalogue: code, status, and whether a retry may help."""
    assert code in BY_CODE
    assert status == status_of(BY_CODE[code])
    assert (retriable != "no") == BY_CODE[code].retriable


def test_the_table_lists_no_strangers():
    """Every class with a status is an error."""
    assert set(STATUS) <= {EngineError, *KINDS}


@pytest.mark.parametrize(
    "error, message",
    [
        (errors.NotFound(), "There is no such resource."),
        (errors.NotFound("There is no cat."), "There is no cat."),
        (errors.InvalidScope(reason="empty"), "The scope path is malformed. empty."),
        (
            errors.InvalidScope(field="scope", reason="empty"),
            "The scope path is malformed. `scope`: empty.",
        ),
        (errors.InvalidScope(field="scope"), "The scope path is malformed."),
    ],
)
def test_the_sentence(error, message):
    """What was said, or the summary with field and reason."""
    assert message == error.message == str(error)


def test_the_envelope():
    """001 §6.6, with the details as they were given."""
    error = errors.PolicyDenied(capability="scope.create.global", denied_by_tier="deployment")
    said = msgspec.json.decode(render(error, "req_1"), type=ErrorEnvelope)

    assert (
        ErrorEnvelope(
            error_code="POLICY_DENIED",
            message="The effective policy does not allow this.",
            request_id="req_1",
            details={"capability": "scope.create.global", "denied_by_tier": "deployment"},
            retriable=False,
            documentation="/v1/errors/POLICY_DENIED",
        )
        == said
    )


@pytest.mark.parametrize(
    "error, headers",
    [
        (errors.NotFound(), []),
        (errors.WalUnavailable(), [(b"retry-after", b"1")]),
        (errors.Overloaded(retry_after_s=5), [(b"retry-after", b"5")]),
        (errors.RateLimited(), [(b"retry-after", b"1")]),
        (errors.MethodNotAllowed(allowed=["GET", "PUT"]), [(b"allow", b"GET, PUT")]),
        (errors.BodyTooLarge(), [(b"connection", b"close")]),
        (errors.BodyTimeout(), [(b"connection", b"close")]),
        (errors.Internal(), [(b"connection", b"close")]),
    ],
)
def test_what_some_errors_say_in_headers(error, headers):
    """When to come back, what is allowed, and that the connection ends."""
    assert headers == extra_headers(error)
