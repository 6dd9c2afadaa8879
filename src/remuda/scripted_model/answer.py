"""A reply on its way to the client: whole or in pieces, at the script's pace, and with the fault that it asks for."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from remuda.scripted_model.codec import Codec, Envelope, Frame, Mark, compact, unfinished
from remuda.scripted_model.reply import Cut, Failure, Fault, Garbage, Hang, Reply

EVENTS = "text/event-stream; charset=utf-8"


class Broken(Exception):
    """Raised through the server, which then closes the connection without a proper end. It is meant."""


@dataclass(frozen=True, slots=True)
class Streams:
    wanted: bool
    as_events: bool  # else as one list

    @property
    def in_pieces(self) -> bool:
        return self.wanted and self.as_events


@dataclass(frozen=True, slots=True)
class Answer:
    codec: Codec
    envelope: Envelope
    reply: Reply
    streams: Streams
    request: Request
    stop: asyncio.Event
    note: Callable[..., None]  # tells the record what became of it

    async def respond(self) -> Response:
        fault = self.reply.fault
        if isinstance(fault, Failure) and not self._fails_in_stream(fault):
            return self._failure(fault)
        if isinstance(fault, Hang) and not (self.streams.in_pieces and self.reply.parts):
            ended = await self._until_nobody_waits()
            self.note(ended=ended)
            return Response(status_code=503)  # read only by who still waits when the server must go
        if not self.streams.in_pieces:
            return await self._whole(fault)
        self.note(status=200)
        return StreamingResponse(self._pieces(), media_type=EVENTS, headers={"cache-control": "no-cache"})

    def _fails_in_stream(self, fault: Failure) -> bool:
        begun = bool(self.reply.parts) or (fault.too_long and self.codec.too_long_in_stream)
        return self.streams.in_pieces and begun

    def _failure(self, fault: Failure) -> Response:
        self.note(status=fault.status, ended="failed")
        headers = {}
        if fault.retry_after is not None:
            headers["retry-after"] = str(math.ceil(fault.retry_after))
        return JSONResponse(self.codec.failure(fault), fault.status, headers)

    async def _whole(self, fault: Fault | None) -> Response:
        frames = self.codec.frames(self.envelope, self.reply)
        await self._pause(self.reply.pace * sum(each.mark is Mark.PIECE for each in frames))
        body = compact(self.codec.whole(self.envelope, self.reply))
        if self.streams.wanted:
            body = "[" + ",\n".join(each.data for each in frames) + "]"
        if isinstance(fault, Cut):
            self.note(status=200, ended="cut")
            headers = {"content-length": str(len(body.encode()))}
            return StreamingResponse(_half(body), media_type="application/json", headers=headers)
        if isinstance(fault, Garbage):
            self.note(status=200, ended="garbage")
            return Response(fault.text, media_type="application/json")
        self.note(status=200, ended="finished", usage=self.reply.usage)
        return Response(body, media_type="application/json")

    async def _pieces(self) -> AsyncIterator[bytes]:
        ended = "client left"  # what it is if nothing below is reached
        try:
            frames = self.codec.frames(self.envelope, self.reply)
            fault = self.reply.fault
            for each in unfinished(frames) if fault else frames:
                if each.mark is Mark.PIECE:
                    await self._pause(self.reply.pace)
                yield each.encode()
            match fault:
                case None:
                    ended = "finished"
                case Failure():
                    ended = "failed"
                    for each in self.codec.failed(self.envelope, fault):
                        yield each.encode()
                case Garbage():
                    ended = "garbage"
                    yield Frame(Mark.CLOSE, fault.text, self.codec.piece).encode()
                case Hang():
                    ended = await self._until_nobody_waits()
                    raise Broken
                case Cut():
                    ended = "cut"
                    raise Broken
        finally:
            self.note(ended=ended, usage=self.reply.usage if ended == "finished" else None)

    async def _pause(self, seconds: float) -> None:
        if seconds:
            try:
                await asyncio.wait_for(self.stop.wait(), seconds)
            except TimeoutError:
                return
            raise Broken

    async def _until_nobody_waits(self) -> str:
        """Until the client goes, or the server must."""
        both = {asyncio.ensure_future(self._client_gone()), asyncio.ensure_future(self.stop.wait())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
        return "stopped" if self.stop.is_set() else "client left"

    async def _client_gone(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


async def _half(body: str) -> AsyncIterator[bytes]:
    data = body.encode()
    yield data[: len(data) // 2]
    raise Broken
