"""The runtime itself over HTTP: is it well, and the request to stop."""

import os

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.errors import Refused
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Sender
from remuda.version import __version__
from remuda.web.door import answer, caller_of, door_of, runtime_of


class HealthAnswer(msgspec.Struct, frozen=True):
    status: str
    version: str
    project: str
    pid: int
    seq: int
    clock: int
    agents: int  # alive


class StoppingAnswer(msgspec.Struct, frozen=True):
    stopping: bool
    pid: int


async def health(request: Request) -> Response:
    runtime = runtime_of(request)
    shown = runtime.loop.shown
    well = not runtime.running.done()
    body = HealthAnswer(
        status="ok" if well else "failed",
        version=__version__,
        project=str(runtime.place.root),
        pid=os.getpid(),
        seq=shown.seq,
        clock=shown.clock,
        agents=sum(agent.status not in DEAD for agent in shown.agents.values()),
    )
    return answer(body, 200 if well else 500)


async def stop_runtime(request: Request) -> Response:
    if caller_of(request).sender is not Sender.USER:
        raise Refused("only the user may stop the runtime; an agent may ask for it in a message")
    door_of(request).stop.set()
    return answer(StoppingAnswer(True, os.getpid()), 202)


ROUTES = [
    Route("/v1/health", health, methods=["GET"]),
    Route("/v1/runtime/stop", stop_runtime, methods=["POST"]),
]
