"""The log over HTTP: a page of it as JSON, or all that comes as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from remuda.domain.events import Recorded
from remuda.store import Store
from remuda.store.select import about, last, page
from remuda.views.process_events import ProcessEvent, event_text, process_events
from remuda.views.query import flag, number
from remuda.web.door import Door, answer, caller_of, door_of, text_answer

PULSE = 15.0  # seconds of silence after which a stream says that it is alive
PAGE = 500
LARGEST = 10_000
SEQ_MAX = 10**18


class EventsAnswer(msgspec.Struct, frozen=True):
    events: list[ProcessEvent]
    next: int  # the `after` of the next page


async def list_events(request: Request) -> Response:
    caller_of(request)
    door = door_of(request)
    agent = request.query_params.get("agent", "")
    if agent:
        door.runtime.agent(agent)
    following = flag(request.query_params, "follow")
    after = await _after(request, door, agent, 0 if following else 100)
    plain = request.query_params.get("format") == "text"
    if following and plain:
        return StreamingResponse(_lines(door, after, agent), media_type="text/plain; charset=utf-8")
    if following:
        return StreamingResponse(_frames(door, after, agent), media_type="text/event-stream")
    limit = number(request.query_params, "limit", 1000, most=LARGEST)
    records, behind = await page(door.runtime.store.read, after, limit, agent)
    events = [each for record in records for each in told(door, record)]
    return (
        text_answer("".join(f"{event_text(each)}\n" for each in events))
        if plain
        else answer(EventsAnswer(events, behind))
    )


async def _after(request: Request, door: Door, agent: str, default_last: int) -> int:
    """Where to begin: after the last event the caller has, or after all but the last few."""
    seen = request.headers.get("last-event-id", "")
    if seen.isascii() and seen.isdigit() and len(seen) < 19:
        return int(seen)
    if "after" in request.query_params:
        return number(request.query_params, "after", 0, most=SEQ_MAX)
    count = number(request.query_params, "last", default_last, most=LARGEST)
    return await last(door.runtime.store.read, door.runtime.loop.shown.seq, count, agent)


def told(door: Door, record: Recorded) -> list[ProcessEvent]:
    agents = door.runtime.loop.shown.agents
    return process_events(record, lambda name: agents[name].role if name in agents else "")


async def _frames(door: Door, after: int, agent: str) -> AsyncIterator[bytes]:
    yield b": the log of events\n\n"
    async for records in pages(door.runtime.store, after, door.stop):
        frames = [frame(told(door, each)) for each in records if not agent or about(each) == agent]
        yield b"".join(frames) or b": still here\n\n"


async def _lines(door: Door, after: int, agent: str) -> AsyncIterator[bytes]:
    async for records in pages(door.runtime.store, after, door.stop):
        mine = [each for each in records if not agent or about(each) == agent]
        yield "".join(f"{event_text(each)}\n" for record in mine for each in told(door, record)).encode()


def frame(events: list[ProcessEvent]) -> bytes:
    """One event of the log. Only the last part carries the id: whoever is cut off between the parts gets all again."""
    parts = [f"event: {each.type}\ndata: ".encode() + msgspec.json.encode(each) + b"\n" for each in events]
    return b"\n".join(parts) + f"id: {events[-1].seq}\n\n".encode()


async def pages(store: Store, after: int, stop: asyncio.Event) -> AsyncIterator[list[Recorded]]:
    """The log from a cursor until the server stops, in pages; an empty one now and then while nothing happens."""
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stopping.done():
            records = await store.read(after, PAGE)
            if records:
                after = records[-1].seq
                yield records
                continue
            more = asyncio.ensure_future(store.past(after))
            try:
                await asyncio.wait({more, stopping}, timeout=PULSE, return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    yield []
            finally:
                more.cancel()
    finally:
        stopping.cancel()


ROUTES = [Route("/v1/events", list_events, methods=["GET"])]
