"""A request leaves before it is certain that the call may be made, but for its last byte."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import msgspec
import pytest

from meter.kit import EMPTY, Purse, meter_of, post, run, service_of, until
from remuda.meter import Estimate, Grant, Refusal, Seat

ASKED = msgspec.json.encode({"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]})


@dataclass(slots=True)
class SlowDisk(Purse):
    """Decides at once, and keeps it when it is told to."""

    kept: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False

    async def reserve(self, seat: Seat, estimate: Estimate, decided: Callable[[Grant], None]) -> Grant | Refusal:
        # Not super(): a dataclass with slots is made anew, and it would look in the one that was.
        grant = await Purse.reserve(self, seat, estimate, decided)
        try:
            await self.kept.wait()
        except asyncio.CancelledError:
            self.open.clear()
            raise
        return Refusal("the disk is full") if self.fails else grant


@dataclass(slots=True)
class Seen:
    """Answers whole requests and notes what it has of others."""

    url: str = ""
    seen: list[bytearray] = field(default_factory=list)  # on each connection
    cut: int = 0
    says_early: bytes = b""

    def __call__(self) -> asyncio.Protocol:
        return _Spoken(self)


class _Spoken(asyncio.Protocol):
    def __init__(self, service: Seen) -> None:
        self._service = service
        self._seen = bytearray()
        service.seen.append(self._seen)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast(asyncio.Transport, transport).write  # uvloop's are no subclass of it

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, _, body = bytes(self._seen).partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(body) == length:
            self._seen.clear()
            self._write(EMPTY)
        elif self._service.says_early:
            self._write(self._service.says_early)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._service.cut += bool(self._seen)


@asynccontextmanager
async def listening() -> AsyncIterator[Seen]:
    service = Seen()
    server = await asyncio.get_running_loop().create_server(service, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()


async def warmed(url: str, purse: SlowDisk) -> None:
    """So that there is an open connection to send on."""
    purse.kept.set()
    assert (await post(url, "/v1/messages", ASKED)).endswith(b"{}")
    purse.kept.clear()


def test_all_but_the_last_byte_is_sent_while_the_disk_works_and_the_last_when_it_is_kept() -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=100_000)
        async with listening() as service, meter_of(service.url, purse) as meter:
            await warmed(meter.url, purse)
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", ASKED))
            await until(lambda: service.seen[0].endswith(ASKED[:-1]))
            assert not asking.done()
            purse.kept.set()
            assert (await asking).endswith(b"{}")
            assert len(service.seen) == 1
            assert purse.open == {}

    run(story)


def test_what_is_sent_ahead_is_already_limited_to_what_is_left() -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=1_000)
        async with listening() as service, meter_of(service.url, purse) as meter:
            await warmed(meter.url, purse)
            purse.spent = 0
            more = ASKED.replace(b'"max_tokens":500', b'"max_tokens":90000')
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", more))
            await until(lambda: b"max_tokens" in service.seen[0])
            sent = int(bytes(service.seen[0]).partition(b'"max_tokens":')[2].split(b",")[0])
            assert sent == purse.open[2] - purse.asked[1].input_tokens < 1_000 < purse.asked[1].output_tokens
            purse.kept.set()
            await asking

    run(story)


def test_a_call_that_could_not_be_kept_is_never_whole_at_the_service() -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=100_000)
        async with listening() as service, meter_of(service.url, purse) as meter:
            await warmed(meter.url, purse)
            purse.fails = True
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", ASKED))
            await until(lambda: service.seen[0])
            purse.kept.set()
            assert b"402" in (await asking)[:20]
            await until(lambda: service.cut == 1)
            assert len(service.seen) == 1

    run(story)


def test_a_program_that_leaves_before_it_is_kept_has_made_no_call() -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=100_000)
        async with listening() as service, meter_of(service.url, purse) as meter:
            await warmed(meter.url, purse)
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", ASKED))
            await until(lambda: service.seen[0])
            asking.cancel()
            await until(lambda: service.cut == 1)
            assert purse.open == {}

    run(story)


@pytest.mark.parametrize("early", [b"HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n", b"junk"])
def test_what_a_service_says_to_half_a_request_is_not_its_answer(early: bytes) -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=100_000)
        async with listening() as service, meter_of(service.url, purse) as meter:
            await warmed(meter.url, purse)
            service.says_early = early
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", ASKED))
            await until(lambda: service.seen[0])
            purse.kept.set()
            assert (await asking) == EMPTY
            assert len(service.seen) == 2  # the whole of it, on another connection
            assert purse.settled[-1] is None

    run(story)


def test_what_nothing_limits_is_sent_whole_and_as_it_came() -> None:
    odd = b'{ "model" : "m", "x": [1.50, "\\u0041"], "x": 2 }\n'

    async def story() -> None:
        async with service_of([EMPTY], [EMPTY], [EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            for path in ("/v1/messages", "/v1/responses", "/v1/chat/completions"):
                await post(meter.url, path, odd)
            assert service.bodies == [odd] * 3

    run(story)
