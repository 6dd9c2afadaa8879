"""MCP over streamable HTTP: a client posts each message, and is answered on the same response.

A session of the older era may hold one more stream open (GET), on which it is told what belongs to no request. A
request of the newer era is a conversation of its own.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from time import monotonic

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.mcp import Desk, eras
from remuda.mcp.conversation import Conversation
from remuda.mcp.http_checks import LOOPBACK, Refusal, accepts, bearer, check_place, check_post
from remuda.mcp.http_stream import Said, Stream, as_event_stream, respond
from remuda.mcp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Id, Malformed, Message, RpcError, decode, failure
from remuda.mcp.jsonrpc import Request as Asked

LARGEST_BODY = 4 << 20
MOST_SESSIONS = 256
SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"
_MODERN = eras.VERSION.encode()

# Who stands behind a token; None for a token that is nobody's. Compare tokens with `hmac.compare_digest`.
Door = Callable[[str], Desk | None]


class Session:
    """A client of the older era, from its `initialize` until it leaves or is forgotten."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.open: dict[Id, Stream] = {}
        self.aside: Stream | None = None  # for what belongs to no request
        self.used = monotonic()
        self.conversation = Conversation(desk, self)

    def tell(self, message: bytes, about: Id | None) -> None:
        stream = self.open.get(about, self.aside) if about is not None else self.aside
        if stream is not None:
            stream.put(Said(message))

    def answer(self, to: Id, message: bytes) -> None:
        if stream := self.open.get(to):
            stream.put(Said(message, last=True))

    def refuse(self, to: Id | None, error: RpcError) -> None:
        if to is not None:
            self.answer(to, failure(to, error.body))

    def behind(self) -> bool:
        return False  # each stream is bounded by itself

    def drop(self, to: Id) -> None:
        if stream := self.open.get(to):
            stream.drop(to)

    async def close(self) -> None:
        for stream in (*self.open.values(), *([self.aside] if self.aside else [])):
            stream.put(None)
        await self.conversation.close()


class HttpFront:
    """The endpoint, for as long as the server runs. Its `routes` go into any Starlette application."""

    def __init__(self, door: Door, *, hosts: frozenset[str] = LOOPBACK) -> None:
        self._door, self._hosts = door, hosts
        self._sessions: dict[str, Session] = {}
        self._alone: dict[Stream, tuple[Desk, Conversation]] = {}

    def routes(self, path: str = "/mcp") -> Sequence[Route]:
        return [Route(path, self._take, methods=["POST", "GET", "DELETE"])]

    async def close(self, desk: Desk | None = None) -> None:
        """Whoever came in has to leave; with a desk, whoever came to that."""
        leaving = {name: each for name, each in self._sessions.items() if desk in (None, each.desk)}
        for name in leaving:
            del self._sessions[name]
        alone = {stream: talk for stream, (at, talk) in self._alone.items() if desk in (None, at)}
        for stream in alone:
            stream.put(None)
        closing = [each.close() for each in leaving.values()] + [each.close() for each in alone.values()]
        await asyncio.gather(*closing)

    async def _take(self, request: Request) -> Response:
        refusal = check_place(request.headers, self._hosts)
        if refusal is not None:
            return _refuse(refusal)
        desk = self._door(bearer(request.headers))
        if desk is None:
            why = "the header Authorization must be: Bearer <token>, with the token that you were given for this server"
            return _refuse(Refusal(401, why), {"WWW-Authenticate": "Bearer"})
        match request.method:
            case "POST":
                return await self._post(request, desk)
            case "DELETE":
                return await self._delete(request, desk)
            case _:
                return self._listen(request, desk)

    # --- a message ---

    async def _post(self, request: Request, desk: Desk) -> Response:
        refusal = check_post(request.headers)
        if refusal is not None:
            return _refuse(refusal)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)  # to nobody
        if body is None:
            return _refuse(Refusal(413, f"the body is larger than {LARGEST_BODY >> 20} MiB"))
        message = decode(body)
        if isinstance(message, Malformed):
            return _error(message.id, RpcError(message.code, message.why))
        name = request.headers.get(SESSION, "")
        newer = isinstance(message, Asked) and not name and _MODERN in bytes(message.params)
        if newer or request.headers.get(VERSION, "") in eras.MODERN:
            return await self._answer_alone(request, desk, message)
        return await self._answer_in_session(request, desk, message)

    async def _answer_alone(self, request: Request, desk: Desk, message: Message) -> Response:
        if not isinstance(message, Asked):
            return Response(status_code=202)  # nobody is left whom it could concern
        try:
            if eras.envelope(message.params) is None:
                why = f"params._meta must hold {eras.VERSION} and {eras.CAPABILITIES}"
                raise RpcError(INVALID_PARAMS, why)
        except RpcError as error:
            return _error(message.id, error)
        stream = Stream()
        conversation = Conversation(desk, stream)
        self._alone[stream] = (desk, conversation)

        async def done() -> None:
            del self._alone[stream]
            await conversation.close()

        conversation.receive(message)
        return await respond(request, stream, done)

    async def _answer_in_session(self, request: Request, desk: Desk, message: Message) -> Response:
        name = request.headers.get(SESSION, "")
        if isinstance(message, Asked) and message.method == "initialize" and not name:
            name = await self._begin(desk)
        session = self._find(name, desk)
        if isinstance(session, Refusal):
            return _refuse(session)
        if (spoken := request.headers.get(VERSION)) is not None and spoken not in eras.HANDSHAKE:
            why = f"version {spoken[:20]!r} of the protocol is not spoken here; there are {', '.join(eras.HANDSHAKE)}"
            return _refuse(Refusal(400, why))
        session.used = monotonic()
        if not isinstance(message, Asked):
            session.conversation.receive(message)
            return Response(status_code=202)
        if message.id in session.open:
            return _error(message.id, RpcError(INVALID_REQUEST, f"a request {message.id!r} is under way already"))
        session.open[message.id] = stream = Stream()

        async def done() -> None:
            # A client of this era that hangs up has not cancelled; only nobody reads the answer.
            session.open.pop(message.id, None)

        session.conversation.receive(message)
        response = await respond(request, stream, done)
        response.headers[SESSION] = name
        return response

    async def _begin(self, desk: Desk) -> str:
        if len(self._sessions) >= MOST_SESSIONS:
            idle = [it for it in self._sessions.items() if it[1].aside is None and not it[1].conversation.busy]
            oldest, _ = min(idle or self._sessions.items(), key=lambda it: it[1].used)
            await self._sessions.pop(oldest).close()
        name = secrets.token_urlsafe(24)
        self._sessions[name] = Session(desk)
        return name

    def _find(self, name: str, desk: Desk) -> Session | Refusal:
        if not name:
            return Refusal(400, "the header Mcp-Session-Id is missing; begin with initialize")
        session = self._sessions.get(name)
        # Somebody else's session does not exist: their token opens another desk.
        if session is None or session.desk is not desk:
            return Refusal(404, "there is no such session; begin with initialize")
        return session

    # --- the stream beside, and the end ---

    def _listen(self, request: Request, desk: Desk) -> Response:
        session = self._find(request.headers.get(SESSION, ""), desk)
        if isinstance(session, Refusal):
            # Without a session there is nothing to listen to, and clients take 405 for just that.
            return _refuse(session if session.status == 404 else Refusal(405, "there is no stream without a session"))
        if not accepts(request.headers, "text/event-stream"):
            return _refuse(Refusal(406, "the header Accept must name text/event-stream"))
        if session.aside is not None:
            session.aside.put(None)  # a client that lost its connection comes again before we notice
        session.aside = stream = Stream()

        async def done() -> None:
            if session.aside is stream:
                session.aside = None

        return as_event_stream(stream, done, Said(b""))

    async def _delete(self, request: Request, desk: Desk) -> Response:
        name = request.headers.get(SESSION, "")
        session = self._find(name, desk)
        if isinstance(session, Refusal):
            return _refuse(session)
        del self._sessions[name]
        await session.close()
        return Response(status_code=204)


async def _body(request: Request) -> bytes | None:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            return None
    return bytes(data)


def _error(to: Id | None, error: RpcError) -> Response:
    return Response(failure(to, error.body), 400, media_type="application/json")


def _refuse(refusal: Refusal, headers: dict[str, str] | None = None) -> Response:
    body = failure(None, RpcError(INVALID_REQUEST, refusal.why).body)
    return Response(body, refusal.status, headers=headers, media_type="application/json")
