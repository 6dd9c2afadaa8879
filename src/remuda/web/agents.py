"""Agents over HTTP: make them, write to them, tell them what to do."""

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.commands import Command, PauseAgent, ResumeAgent, RetireAgent, SpawnAgent, StopAgent
from remuda.domain.errors import Refused, RemudaError
from remuda.domain.events import MessageQueued
from remuda.domain.ledger import Limits
from remuda.domain.state import Sender
from remuda.runtime.runtime import Caller
from remuda.views.agent import Detail
from remuda.web.door import agent_now, answer, body_of, caller_of, order_of, runtime_of


class SpawnBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: str = "worker"
    name: str = ""
    backend: str = ""
    parent: str = ""
    model: str = ""
    instructions: str = ""
    options: dict[str, str] = {}
    hold: bool = False
    message: str = ""  # its first mail, if any
    tokens: int | None = None  # what it may spend, with all that it spawns itself
    nanousd: int | None = None
    turns: int | None = None
    milliseconds: int | None = None


class MessageBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class WhyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    why: str = ""


class MessageAnswer(msgspec.Struct, frozen=True):
    message_id: str
    seq: int
    agent: Detail


async def spawn_agent(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    if caller.sender is Sender.AGENT:
        raise Refused(f"{caller.author} may not spawn agents; the user and the coordinator may")
    body = await body_of(request, SpawnBody)
    command = SpawnAgent(
        role=body.role,
        backend=body.backend,
        name=body.name,
        parent=body.parent or _parent(caller),
        model=body.model,
        instructions=body.instructions,
        options=tuple(body.options.items()),
        hold=body.hold,
        budget=Limits(body.tokens, body.nanousd, body.turns, body.milliseconds),
    )
    name = await runtime.spawn(command, order=order)
    if body.message:
        try:
            await runtime.send(name, body.message, caller=caller, order=f"{order}-message" if order else "")
        except RemudaError as error:
            raise type(error)(f"{name} was spawned, but its message was not taken: {error.message}") from error
    return answer(agent_now(runtime, name), 201)


def _parent(caller: Caller) -> str:
    """Whom a coordinator spawns is its child, unless it says otherwise."""
    return "" if caller.sender is Sender.USER else caller.author


async def send_message(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    body = await body_of(request, MessageBody)
    name = request.path_params["name"]
    accepted = await runtime.send(name, body.text, caller=caller, order=order)
    queued = [event for event in accepted.events if isinstance(event, MessageQueued)]
    message_id = queued[0].message.id if queued else order
    return answer(MessageAnswer(message_id, accepted.seq, agent_now(runtime, name)), 202)


Make = Callable[[str, str], Command]

TOLD: dict[str, Make] = {
    "pause": PauseAgent,
    "resume": lambda agent, _why: ResumeAgent(agent),
    "stop": StopAgent,
    "retire": RetireAgent,
}


async def tell_agent(request: Request) -> Response:
    caller = caller_of(request)
    if caller.sender is Sender.AGENT:
        raise Refused(f"{caller.author} may not tell other agents what to do; it may write to the coordinator")
    order, runtime = order_of(request), runtime_of(request)
    body = await body_of(request, WhyBody)
    name = request.path_params["name"]
    make = TOLD[request.url.path.rpartition("/")[2]]
    await runtime.submit(make(name, body.why), order=order)
    return answer(agent_now(runtime, name))


ROUTES = [
    Route("/v1/agents", spawn_agent, methods=["POST"]),
    Route("/v1/agents/{name}/messages", send_message, methods=["POST"]),
    *(Route(f"/v1/agents/{{name}}/{verb}", tell_agent, methods=["POST"]) for verb in TOLD),
]
