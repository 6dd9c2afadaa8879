"""Triggers, verdicts and bodies over HTTP."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.errors import Refused
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Sender
from remuda.domain.text import LONGEST_REASON, check_text
from remuda.domain.trigger import Course, Strategy, Trigger
from remuda.domain.trigger_commands import AN_HOUR, BuryAgent, FireTrigger, GiveVerdict
from remuda.domain.verdict import below
from remuda.runtime.bodies import body_of as body_from
from remuda.runtime.runtime import Caller, Runtime
from remuda.views.body import body_text
from remuda.web.door import agent_now, answer, body_of, caller_of, order_of, runtime_of, text_answer

LONGEST_WORD = LONGEST_REASON - 100  # with who says so


class TriggerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trigger: Trigger
    evidence: str


class VerdictBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    course: Course
    why: str = ""
    seconds: float = AN_HOUR
    strategy: Strategy = Strategy.ONE
    backend: str = ""
    model: str = ""
    instructions: str = ""
    words: str = ""
    tokens: int | None = None  # the successor's budget, in each measure
    nanousd: int | None = None
    turns: int | None = None
    milliseconds: int | None = None


class BuryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    older_than: float  # seconds


class BuriedAnswer(msgspec.Struct, frozen=True):
    buried: list[str]


def _check_may(runtime: Runtime, caller: Caller, name: str) -> None:
    """The user, the coordinator, and those above the agent."""
    if caller.sender is not Sender.AGENT:
        return
    runtime.agent(name)
    if not any(each.name == name for each in below(runtime.loop.state, caller.author)):
        raise Refused(f"{caller.author} may not judge {name}; the user, the coordinator and those above it may")


async def fire_trigger(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    name = request.path_params["name"]
    _check_may(runtime, caller, name)
    body = await body_of(request, TriggerBody)
    check_text("the evidence", body.evidence, longest=LONGEST_WORD)
    evidence = f"{caller.author} says so: {body.evidence}"
    await runtime.submit(FireTrigger(name, body.trigger, evidence, "word"), order=order)
    return answer(agent_now(runtime, name))


async def give_verdict(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    name = request.path_params["name"]
    _check_may(runtime, caller, name)
    body = await body_of(request, VerdictBody)
    if body.backend:
        runtime.known_backend(body.backend)
    command = GiveVerdict(
        agent=name,
        course=body.course,
        by=caller.author,
        why=body.why,
        seconds=body.seconds,
        strategy=body.strategy,
        backend=body.backend,
        model=body.model,
        instructions=body.instructions,
        words=body.words,
        budget=Limits(body.tokens, body.nanousd, body.turns, body.milliseconds),
    )
    await runtime.submit(command, order=order)
    return answer(agent_now(runtime, name))


async def show_body(request: Request) -> Response:
    caller_of(request)
    runtime = runtime_of(request)
    shown = await body_from(runtime.place, runtime.store.read, runtime.loop.shown, request.path_params["name"])
    return text_answer(body_text(shown)) if request.query_params.get("format") == "text" else answer(shown)


async def bury_agent(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    _check_people(caller)
    name = request.path_params["name"]
    await runtime.submit(BuryAgent(name, caller.author), order=order)
    return answer(BuriedAnswer([name]))


async def bury_old(request: Request) -> Response:
    caller, runtime = caller_of(request), runtime_of(request)
    _check_people(caller)
    body = await body_of(request, BuryBody)
    limit = time.time() - body.older_than
    old = [
        agent.name
        for agent in runtime.loop.shown.agents.values()
        if agent.status in DEAD and not agent.buried_at and agent.ended_at <= limit
    ]
    buried = []
    for name in old:
        try:
            await runtime.submit(BuryAgent(name, caller.author))
        except Refused:
            continue  # its process is still on its way out, or somebody was faster
        buried.append(name)
    return answer(BuriedAnswer(buried))


def _check_people(caller: Caller) -> None:
    if caller.sender is not Sender.USER:
        raise Refused(f"{caller.author} may not bury anybody; the user may")


ROUTES = [
    Route("/v1/agents/{name}/trigger", fire_trigger, methods=["POST"]),
    Route("/v1/agents/{name}/verdict", give_verdict, methods=["POST"]),
    Route("/v1/agents/{name}/body", show_body, methods=["GET"]),
    Route("/v1/agents/{name}/bury", bury_agent, methods=["POST"]),
    Route("/v1/bury", bury_old, methods=["POST"]),
]
