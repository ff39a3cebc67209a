"""What does an error code mean, and what should a caller do about it?  (001 §16)"""

from collections.abc import Iterator
from html import escape
from string import Template

from api.endpoint import STABLE, Call, Endpoint, Reply
from api.errors import status_of
from schemas import errors
from schemas.errors import EngineError, NotFound
from schemas.problem import Problem, ProblemList

_PAGE = Template(
    """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>$code</title>
<style>body{font-family:system-ui,sans-serif;max-width:42rem;margin:3rem auto}</style>
<h1>$code</h1>
<p><strong>$status</strong> · $meaning</p>
<p><strong>What to do.</strong> $remedy</p>
<p>The same request $again.</p>
<p><a href="/v1/errors">All codes</a></p></html>
"""
)


def catalogue() -> dict[str, Problem]:
    """Every error a caller of this surface can meet, by its code."""
    return {kind.code: _describe(kind) for kind in kinds()}


def kinds() -> Iterator[type[EngineError]]:
    """Every class of them: the groups by remedy, each followed by its own."""
    for group in errors.REMEDIES:
        yield group
        yield from _below(group)


def _below(base: type[EngineError]) -> Iterator[type[EngineError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)


def _describe(kind: type[EngineError]) -> Problem:
    group = next(base for base in kind.__mro__ if base in errors.REMEDIES)
    return Problem(
        error_code=kind.code,
        status=status_of(kind),
        retriable=kind.retriable,
        meaning=(kind.__doc__ or "").strip(),
        remedy=errors.REMEDIES[group],
    )


def get_problems(call: Call) -> Reply:
    """The whole catalogue."""
    del call
    return Reply(ProblemList(items=list(catalogue().values())))


def get_problem(call: Call) -> Reply:
    """One code; who follows the link of an envelope in a browser gets it as a page."""
    code = call.path["code"]
    found = catalogue().get(code)
    if found is None:
        raise NotFound(f"There is no error code {code[:80]!r}.", error_code=code[:80])
    if b"text/html" in call.headers.get(b"accept", b""):
        return Reply(raw=_page(found).encode(), media_type=b"text/html; charset=utf-8")
    return Reply(found)


def _page(problem: Problem) -> str:
    again = "may succeed later" if problem.retriable else "fails again"
    return _PAGE.substitute(
        code=escape(problem.error_code),
        status=problem.status,
        meaning=escape(problem.meaning),
        remedy=escape(problem.remedy),
        again=again,
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/errors",
        get_problems,
        "Every error code: status, meaning, remedy.",
        tier=STABLE,
        is_open=True,
        response=ProblemList,
    ),
    Endpoint(
        "GET",
        "/v1/errors/{code}",
        get_problem,
        "One error code: status, meaning, remedy.",
        tier=STABLE,
        is_open=True,
        response=Problem,
        errors=(NotFound,),
    ),
)
