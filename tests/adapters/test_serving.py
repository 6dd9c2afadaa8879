"""HTTP beside a runtime: how it ends for those who are still connected."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from remuda.runtime import serving as served
from remuda.runtime.serving import on_loopback, serving


async def endless(_request: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield bytes(1 << 16)

    return StreamingResponse(parts())


def test_a_client_that_never_reads_is_hung_up_on_without_a_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(served, "LAST_ANSWERS", 0.2)

    async def story() -> bytes:
        listening = on_loopback()
        port = listening.getsockname()[1]
        async with serving(Starlette(routes=[Route("/", endless)]), listening) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
        assert server.done()
        writer.close()
        return head

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(asyncio.wait_for(story(), 30)).startswith(b"HTTP/1.1 200")
    assert caplog.records == []
