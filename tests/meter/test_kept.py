"""Nothing of a call under a budget leaves before it is certain that it may be made; what has none goes as it came."""

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from meter.kit import EMPTY, Purse, meter_of, post, run, service_of
from remuda.meter import Estimate, Grant, Refusal, Seat

ASKED = msgspec.json.encode({"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]})


@dataclass(slots=True)
class SlowDisk(Purse):
    """Decides at once, and keeps it when it is told to."""

    kept: asyncio.Event = field(default_factory=asyncio.Event)
    asking: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False

    async def reserve(self, seat: Seat, estimate: Estimate) -> Grant | Refusal:
        # Not super(): a dataclass with slots is made anew, and it would look in the one that was.
        grant = await Purse.reserve(self, seat, estimate)
        self.asking.set()
        await self.kept.wait()
        return Refusal("the disk is full") if self.fails else grant


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_is_made_when_its_reservation_is_kept_and_not_before(*, fails: bool) -> None:
    async def story() -> None:
        purse = SlowDisk(tokens=100_000, fails=fails)
        async with service_of([EMPTY]) as service, meter_of(service.url, purse) as meter:
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", ASKED))
            await purse.asking.wait()
            for _ in range(100):  # turns of the loop, in which it could come there
                await asyncio.sleep(0)
            assert service.bodies == []
            purse.kept.set()
            answer = await asking
            assert (answer[:12] == b"HTTP/1.1 402") is fails
            assert len(service.bodies) == (not fails)

    run(story)


def test_what_nothing_limits_is_sent_whole_and_as_it_came() -> None:
    odd = b'{ "model" : "m", "x": [1.50, "\\u0041"], "x": 2 }\n'

    async def story() -> None:
        async with service_of([EMPTY], [EMPTY], [EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            for path in ("/v1/messages", "/v1/responses", "/v1/chat/completions"):
                await post(meter.url, path, odd)
            assert service.bodies == [odd] * 3

    run(story)
