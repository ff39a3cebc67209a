"""What is decided before anything is looked for?  What the caller may, what is asked, the plan."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from engine import policy
from engine.reach import reach_of
from engine.recall.diagnose import Stopwatch
from engine.recall.filters import read_filters
from engine.recall.plan import asked_layers, make_plan
from engine.recall.question import read_question, terms_of
from engine.recall.run import Run
from engine.records import present
from engine.temporal import Window, moment, resolve, zone_of
from schemas import limits
from schemas.caller import Caller, Decision
from schemas.pack import RecallReceipt, RecallRequest
from schemas.times import from_us, to_us

if TYPE_CHECKING:
    from engine.engine import Engine


def permit(engine: "Engine", caller: Caller, request: RecallRequest) -> None:
    """What a request needs beyond reading its scope (001 §8.3)."""
    if request.view in policy.TRAVERSALS:
        policy.require(engine, caller, policy.TRAVERSALS[request.view], request.scope)
    if request.diagnostics != "none":
        policy.require(engine, caller, "diagnostics.read", request.scope)
    if "understanding" in (asked_layers(request) or ()):
        policy.require(engine, caller, "understanding.read", request.scope)


def begin(
    engine: "Engine",
    caller: Caller,
    request: RecallRequest,
    decision: Decision,
    receipt: RecallReceipt | None = None,
) -> Run:
    """Read the question and make the plan; with a receipt, as of the moment it was given out."""
    watch = Stopwatch(engine.clock.elapsed_s, is_timed=request.diagnostics != "none")
    filters = read_filters(request.filters)
    now = present(engine) if receipt is None else receipt.as_of
    window = _window(engine, caller, request, now)
    if receipt is not None:
        window = _as_it_was(engine, window, receipt)
    question = read_question(request.query or "", to_us(_reference(request, window)))
    if request.query_variants:
        words = [word for one in request.query_variants for word in terms_of(one.text)]
        terms = tuple(dict.fromkeys((*question.terms, *words)))[: limits.QUERY_TERMS_MAX]
        question = replace(question, terms=terms)
    if request.profile != "auto":
        question = replace(question, kind=request.profile)
    reach = reach_of(engine, caller, engine.tenant_no(caller), request.scope, request.view)
    plan = make_plan(
        request,
        question.kind,
        reach,
        window=window,
        filters=filters,
        is_past=receipt is not None or window.known_at < now,
    )
    if "understanding" in plan.layers and not policy.may(
        engine, caller, "understanding.read", request.scope
    ):
        plan = plan.leaving_out("understanding")
    watch.phase("plan", plan=plan.name, scopes=len(reach.places), denied=len(reach.barred))
    return Run(
        engine, caller, request, plan=plan, question=question, watch=watch, decision=decision
    )


def _window(engine: "Engine", caller: Caller, request: RecallRequest, now: datetime) -> Window:
    block, tenant_no = request.temporal, engine.tenant_no(caller)
    if block is None or block.natural is None or tenant_no is None:
        return resolve(block, now)
    phrases = [row.phrase for _, row in engine.inline.scan(tenant_no, "phrases")]
    return resolve(block, now, phrases)


def _reference(request: RecallRequest, window: Window) -> datetime:
    """The moment against which time in the question itself is read."""
    block = request.temporal
    if block is None or block.reference_date is None:
        return window.known_at
    return moment(block.reference_date, "temporal.reference_date", zone_of(block.timezone))


def _as_it_was(engine: "Engine", window: Window, receipt: RecallReceipt) -> Window:
    """The same window, known no later than what could be found when the receipt was given out."""
    header = next((found[0] for found in engine.log.headers(receipt.watermark)), None)
    last = receipt.as_of if header is None else from_us(header.recorded_us)
    return replace(window, known_at=min(window.known_at, last))
