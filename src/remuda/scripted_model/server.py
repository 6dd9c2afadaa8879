"""The loopback server: HTTP around `play.plan` and the codecs, and nothing that they could decide."""

import asyncio
import contextlib
import functools
import ipaddress
import logging
import secrets
import socket
import time
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from remuda.domain.errors import Invalid
from remuda.scripted_model.answer import Answer, Broken, Streams
from remuda.scripted_model.codec import Envelope
from remuda.scripted_model.conversation import BadRequest
from remuda.scripted_model.models import gemini_models, models
from remuda.scripted_model.play import Kind, Tokens, plan
from remuda.scripted_model.record import Faults, ModelCall, Record
from remuda.scripted_model.reply import NOTHING, USUAL, Failure, Usage
from remuda.scripted_model.request import MOST_BYTES, auth_digest, body_of, session_of, target

LAST_ANSWERS = 1  # seconds that answers under way are given when the server stops


class ScriptedModel:
    """A model that does what the prompt's script says: `async with ScriptedModel() as model: model.url`."""

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, usage: Usage = USUAL, side_usage: Usage = NOTHING
    ) -> None:
        self._address = (loopback(host), port)
        self._tokens = Tokens(usage, side_usage)
        self._record = Record()
        self._faults = Faults()
        self._stop = asyncio.Event()
        self._listening: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        self._listening = socket.create_server(self._address, family=family, backlog=256)
        config = uvicorn.Config(
            self.app(),
            http="h11",
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=LAST_ANSWERS,
        )
        logging.getLogger("uvicorn.error").addFilter(_meant)
        # No need to wait until it has started: the socket listens already, and whoever connects is kept waiting.
        self._serving = asyncio.create_task(_Server(config, self._stop).serve(sockets=[self._listening]))
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        assert self._serving is not None
        assert self._listening is not None
        self._stop.set()
        try:
            await self._serving
        finally:
            self._listening.close()
            logging.getLogger("uvicorn.error").removeFilter(_meant)

    @property
    def url(self) -> str:
        if self._listening is None:
            raise Invalid("the scripted model has no address before it is started: use `async with`")
        host, port = self._listening.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def calls(self) -> list[ModelCall]:
        """Every request for an answer or a count so far, oldest first."""
        return self._record.calls

    def clear(self) -> None:
        self._record.clear()

    async def until(self, enough: Callable[[list[ModelCall]], bool], within: float = 20.0) -> list[ModelCall]:
        """Wait for calls without polling: `await model.until(lambda calls: len(calls) == 2)`."""
        async with asyncio.timeout(within):
            await self._record.until(enough)
        return self.calls

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/calls", self._show_calls),
                Route("/health", lambda _: JSONResponse({"ok": True})),
                Route("/{base:path}", self._get, methods=["GET", "HEAD"]),
                Route("/{base:path}", self._post, methods=["POST"]),
            ]
        )

    async def _show_calls(self, _: Request) -> Response:
        return JSONResponse([each.as_json() for each in self.calls])

    async def _get(self, request: Request) -> Response:
        path = request.url.path.rstrip("/")
        if "/models" not in path:
            return _not_found(path)
        # Its SDK asks at the same path as the others, depending on its version.
        asks_gemini = "/v1beta/" in path or any(name.startswith("x-goog-") for name in request.headers)
        return JSONResponse(gemini_models(path) if asks_gemini else models(path))

    async def _post(self, request: Request) -> Response:
        path = request.url.path
        asked = target(path, request.query_params)
        if asked is None:
            return _not_found(path)
        auth, session = auth_digest(request.headers, request.query_params), session_of(request.headers)
        note = functools.partial(self._record.note, self._record.begin(asked.codec.name, path, auth, session))
        try:
            body = body_of(await _whole_body(request), request.headers, asked)
            conversation = asked.codec.read(body)
        except BadRequest as error:
            note(kind=Kind.REFUSED, played=("bad request",), status=400, ended="failed")
            return JSONResponse(asked.codec.failure(Failure(400, str(error))), 400)
        except ClientDisconnect:
            note(ended="client left")
            return Response(status_code=400)  # nobody is there to read it
        note(model=conversation.model, stream=conversation.stream)
        if asked.counts:
            note(kind=Kind.SIDE, played=("count",), status=200, ended="finished")
            return JSONResponse(asked.codec.count(self._tokens.scripted))
        decided = plan(conversation, auth + session, self._faults.of, self._tokens, asked.codec)
        if decided.broke:
            self._faults.count(*decided.broke)
        note(kind=decided.kind, move=decided.move, played=decided.names)
        envelope = Envelope(conversation.model, secrets.token_hex(8), int(time.time()), conversation.usage_wanted)
        streams = Streams(conversation.stream, asked.events)
        return await Answer(asked.codec, envelope, decided.reply, streams, request, self._stop, note).respond()


class _Server(uvicorn.Server):
    """uvicorn inside a process that is somebody else's: no signals, no ticking; it serves until told to stop."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self._stop.wait()


def loopback(host: str) -> str:
    """The address itself if it stays on this machine: a model that does what a prompt says is not for the network."""
    if host == "localhost":
        return "127.0.0.1"
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host
    raise Invalid(f"the scripted model listens on this machine only, not on {host!r}; use 127.0.0.1, ::1 or localhost")


def _meant(record: logging.LogRecord) -> bool:
    """A connection that a script breaks is no error, though the server logs it as one."""
    return not (record.exc_info and isinstance(record.exc_info[1], Broken))


async def _whole_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise BadRequest(f"the body is longer than {MOST_BYTES} bytes")
    return bytes(body)


def _not_found(path: str) -> Response:
    error = {"type": "not_found_error", "code": "not_found", "message": f"the scripted model has no {path}"}
    return JSONResponse({"type": "error", "error": error}, 404)
