"""What an agent says, over HTTP: its last lines, and those that come."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from remuda.domain.events import TurnEnded
from remuda.store.select import about
from remuda.store.transcript import Tail
from remuda.views.query import flag, number
from remuda.web.door import Door, answer, caller_of, door_of, text_answer
from remuda.web.events import pages

LINES = 100
MOST_LINES = 1_000_000


class LogsAnswer(msgspec.Struct, frozen=True):
    agent: str
    lines: list[str]


class LineAnswer(msgspec.Struct, frozen=True):
    line: str


async def show_logs(request: Request) -> Response:
    caller_of(request)
    door, name = door_of(request), request.path_params["name"]
    count = number(request.query_params, "lines", LINES, most=MOST_LINES)
    plain = request.query_params.get("format") == "text"
    if flag(request.query_params, "follow"):
        door.runtime.agent(name)
        media = "text/plain; charset=utf-8" if plain else "application/x-ndjson"
        return StreamingResponse(_encoded(follow_lines(door, name, count), plain=plain), media_type=media)
    lines = await asyncio.to_thread(door.runtime.lines, name, count)
    return text_answer("".join(f"{line}\n" for line in lines)) if plain else answer(LogsAnswer(name, lines))


async def _encoded(source: AsyncIterator[list[str]], *, plain: bool) -> AsyncIterator[bytes]:
    async for lines in source:
        if plain:
            yield "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        else:
            yield b"".join(msgspec.json.encode(LineAnswer(line)) + b"\n" for line in lines)


async def follow_lines(door: Door, name: str, count: int) -> AsyncIterator[list[str]]:
    """The last lines and then each that comes, none left out and none twice. Events say when to look; where to go on
    reading is known from what was read, so that a report which was ignored leaves no hole."""
    runtime = door.runtime
    after = runtime.loop.shown.seq
    tail = Tail(runtime.place.transcripts, name)
    yield await asyncio.to_thread(tail.last, count)
    async for records in pages(runtime.store, after, door.stop):
        mine = [each.event for each in records if about(each) == name]
        if mine:
            lines = await asyncio.to_thread(tail.more)
            for event in mine:
                if isinstance(event, TurnEnded):
                    lines += tail.rest(event.turn)
            if lines:
                yield lines


ROUTES = [Route("/v1/agents/{name}/logs", show_logs, methods=["GET"])]
