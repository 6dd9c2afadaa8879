"""Budgets over HTTP: set them, grant more."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.accounts import lineage
from remuda.domain.budget_commands import GrantBudget, SetBudget
from remuda.domain.errors import Refused
from remuda.domain.ledger import Limits, Measure
from remuda.domain.state import Sender
from remuda.runtime.runtime import Caller, Runtime
from remuda.views.budget import budgets
from remuda.views.pages import Budgets
from remuda.web.door import answer, body_of, caller_of, order_of, runtime_of


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
    return answer(Budgets(runtime.loop.shown.seq, budgets(runtime.loop.shown.state, [command.scope])))


def _check(runtime: Runtime, caller: Caller, scope: str) -> None:
    """An agent may give of its own to those below it, and to nobody else: not to itself either."""
    if caller.sender is Sender.USER:
        return
    name = scope.partition(":")[2]
    above = [each.name for each in lineage(runtime.loop.shown.state, runtime.loop.shown.agents.get(name))]
    if caller.author not in above[1:]:
        raise Refused(f"{caller.author} may change the budgets of agents that it has spawned, and no others")


ROUTES = [
    Route("/v1/budget/set", set_budget, methods=["POST"]),
    Route("/v1/budget/grant", grant_budget, methods=["POST"]),
]
