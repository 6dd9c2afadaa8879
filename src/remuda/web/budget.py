"""Budgets over HTTP: look at them, set them, grant more."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.accounts import lineage, scopes
from remuda.domain.budget_commands import GrantBudget, SetBudget
from remuda.domain.errors import Refused
from remuda.domain.ledger import Limits, Measure
from remuda.domain.state import Sender, State
from remuda.runtime.runtime import Caller, Runtime
from remuda.views.budget import AccountRow, budgets, budgets_text
from remuda.web.door import answer, body_of, caller_of, number_of, order_of, runtime_of, text_answer


class BudgetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is; `lift` names what is not to be limited any more."""

    scope: str
    tokens: int | None = None
    nanousd: int | None = None
    turns: int | None = None
    milliseconds: int | None = None
    lift: tuple[Measure, ...] = ()
    why: str = ""

    @property
    def limits(self) -> Limits:
        return Limits(self.tokens, self.nanousd, self.turns, self.milliseconds)


class BudgetAnswer(msgspec.Struct, frozen=True):
    seq: int
    budgets: list[AccountRow]


async def show_budgets(request: Request) -> Response:
    caller_of(request)
    runtime = runtime_of(request)
    shown = budgets(_state(runtime), _chosen(runtime, request.query_params.get("agent", "")))
    if request.query_params.get("format") == "text":
        return text_answer(budgets_text(shown, width=number_of(request, "width", 0, most=10_000) or None))
    return answer(BudgetAnswer(runtime.loop.shown.seq, shown))


async def set_budget(request: Request) -> Response:
    caller, body = await _asked(request)
    return await _changed(request, SetBudget(body.scope, body.limits, body.lift, caller.author, body.why))


async def grant_budget(request: Request) -> Response:
    caller, body = await _asked(request)
    return await _changed(request, GrantBudget(body.scope, body.limits, caller.author, body.why))


async def _asked(request: Request) -> tuple[Caller, BudgetBody]:
    caller = caller_of(request)
    body = await body_of(request, BudgetBody)
    _check(runtime_of(request), caller, body.scope)
    return caller, body


async def _changed(request: Request, command: SetBudget | GrantBudget) -> Response:
    runtime = runtime_of(request)
    await runtime.submit(command, order=order_of(request))
    return answer(BudgetAnswer(runtime.loop.shown.seq, budgets(_state(runtime), [command.scope])))


def _check(runtime: Runtime, caller: Caller, scope: str) -> None:
    """An agent may give of its own to those below it, and to nobody else: not to itself either."""
    if caller.sender is Sender.USER:
        return
    name = scope.partition(":")[2]
    above = [each.name for each in lineage(_state(runtime), runtime.loop.shown.agents.get(name))]
    if caller.author not in above[1:]:
        raise Refused(f"{caller.author} may change the budgets of agents that it has spawned, and no others")


def _chosen(runtime: Runtime, agent: str) -> tuple[str, ...] | None:
    """Those that stand over one agent, or all."""
    return scopes(_state(runtime), runtime.agent(agent)) if agent else None


def _state(runtime: Runtime) -> State:
    shown = runtime.loop.shown
    return State(agents=shown.agents, tasks=shown.tasks, ledger=shown.ledger)


ROUTES = [
    Route("/v1/budget", show_budgets, methods=["GET"]),
    Route("/v1/budget/set", set_budget, methods=["POST"]),
    Route("/v1/budget/grant", grant_budget, methods=["POST"]),
]
