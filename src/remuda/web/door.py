"""What every endpoint shares: who is asking, what they ask, and how answers and refusals look."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from remuda.domain.errors import Invalid, RemudaError
from remuda.runtime.runtime import Caller, Runtime
from remuda.views.agent import Detail, detail

LARGEST_BODY = 4 << 20
LONGEST_KEY = 200

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Door:
    runtime: Runtime
    stop: asyncio.Event  # set: the server is closing, and streams end


def door_of(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


def runtime_of(request: Request) -> Runtime:
    return door_of(request).runtime


def caller_of(request: Request) -> Caller:
    """The agent whose session has this token; without one it is the user, because the socket is the user's alone."""
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    if header and (scheme.lower() != "bearer" or not token.strip()):
        raise Invalid("the header Authorization must read: Bearer <token>")
    return runtime_of(request).who(token.strip())


def order_of(request: Request) -> str:
    """The caller's own id of what it asks, so that asking again after a lost answer does it once."""
    key = request.headers.get("idempotency-key", "")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise Invalid(f"the header Idempotency-Key must be printable and at most {LONGEST_KEY} characters")
    return key


async def body_of(request: Request, kind: type[_T]) -> _T:
    """The request's body, typed. Nothing at all stands for an empty object."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            raise TooLarge(
                f"the body is larger than {LARGEST_BODY >> 20} MiB; put the text in a file and name the file"
            )
    try:
        return msgspec.json.decode(bytes(data) or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is not what was expected: {error}") from error


class TooLarge(Invalid):
    http_status = 413


# --- answers ---


def agent_now(runtime: Runtime, name: str) -> Detail:
    """An agent as it is when something was done to it."""
    return detail(runtime.agent(name), time.time(), runtime.loop.shown.agents)


class ErrorAnswer(msgspec.Struct, frozen=True):
    error: str
    message: str
    possible: tuple[str, ...]
    exit_code: int


def answer(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def text_answer(text: str) -> Response:
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")


def refuse(error: RemudaError) -> Response:
    body = ErrorAnswer(type(error).__name__, error.message, error.possible, error.exit_code)
    return answer(body, error.http_status)
