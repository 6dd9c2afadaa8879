"""A tool server that runs elsewhere: streamable HTTP, and the older kind with one stream of events."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

import h11

from remuda.gateway.faults import ServerFault, Unreachable
from remuda.gateway.http_client import Exchange, HttpClient
from remuda.gateway.link import Hear, Lost, cancelled
from remuda.gateway.references import ClientCredentials
from remuda.mcp.eras import MODERN
from remuda.mcp.jsonrpc import INTERNAL_ERROR, Failure, Malformed, Message, Result, RpcError, decode, failure
from remuda.mcp.routing import Marks, routing

LONGEST_EVENT = 64 << 20
MOST_AT_ONCE = 4096  # messages on their way to one server
_BROKEN = (OSError, h11.ProtocolError, ServerFault)


class Remote(NamedTuple):
    name: str
    url: str
    headers: Mapping[str, str]
    credentials: ClientCredentials | None
    masked: Callable[[str], str]


class _Link:
    """What both kinds share: tasks that send, and how a failure is told."""

    def __init__(self, remote: Remote, hear: Hear, lost: Lost) -> None:
        self._remote, self._hear, self._lost = remote, hear, lost
        self._client = HttpClient(remote.name, remote.url)
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[asyncio.Task[None]] = set()
        self._token = ("", 0.0)
        self._version = ""  # of the protocol, once both sides have settled on one
        self._marks: Marks = {}

    def speak(self, version: str) -> None:
        self._version = version

    def know(self, marks: Marks) -> None:
        self._marks = marks

    async def flush(self) -> None:
        await asyncio.gather(*self._told, return_exceptions=True)

    def evidence(self) -> str:
        return ""

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.close()

    def _crowded(self) -> bool:
        """Whether it takes so little of what it is sent that it is given up, as a pipe is that nobody reads."""
        if len(self._tasks) < MOST_AT_ONCE:
            return False
        self._lost(
            ServerFault(f"the tool server {self._remote.name!r} does not read: {MOST_AT_ONCE} messages wait for it")
        )
        return True

    def _go(self, work: Coroutine[Any, Any, None], *, told: bool = False) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        for kept in (self._tasks, self._told) if told else (self._tasks,):
            kept.add(task)
            task.add_done_callback(kept.discard)
        return task

    async def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= self._remote.headers
        if self._remote.credentials is not None:
            headers["Authorization"] = f"Bearer {await self._access(self._remote.credentials)}"
        return headers

    async def _access(self, credentials: ClientCredentials) -> str:
        """A token for us as ourselves, asked for anew before it ends."""
        token, until = self._token
        if token and time.monotonic() < until:
            return token
        asked = {"grant_type": "client_credentials", "client_id": credentials.client_id}
        asked |= {"client_secret": credentials.client_secret}
        asked |= {"scope": credentials.scope} if credentials.scope else {}
        client = HttpClient(self._remote.name, credentials.token_url)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        exchange = await client.send("POST", form, urlencode(asked).encode())
        try:
            said = json.loads(await exchange.body())
            token, seconds = str(said["access_token"]), float(said.get("expires_in", 300))
        except (ValueError, KeyError, TypeError) as error:
            where = f"{self._remote.name!r} got no token from {credentials.token_url}: status {exchange.status}"
            raise ServerFault(f"the tool server {where}") from error
        finally:
            exchange.close()
        self._token = (token, time.monotonic() + max(0.0, seconds - 30))
        return token

    def _failed(self, error: Exception, number: int | None) -> None:
        """Whoever waits for this answer learns why there is none; the others go on."""
        said = self._remote.masked(str(error) or type(error).__name__)
        if number is not None:
            self._hear(failure(number, RpcError(INTERNAL_ERROR, said).body))

    def _refused(self, exchange: Exchange, body: bytes) -> ServerFault:
        hint = {
            401: "; it does not know us: see auth of this server in the settings",
            403: "; it does not let us in: see auth of this server in the settings",
            404: "; is the url right?",
        }.get(exchange.status, "")
        if 300 <= exchange.status < 400:
            hint = f"; it has moved to {exchange.headers.get('location', 'nowhere')[:200]}: correct its url"
        said = f"the tool server {self._remote.name!r} answered with status {exchange.status}{hint}"
        return ServerFault(self._remote.masked(f"{said}. {body[:300].decode(errors='replace')}".strip()))


class HttpLink(_Link):
    """Each message is a request of its own; its answer is the response, or a stream that ends with it."""

    def __init__(self, remote: Remote, hear: Hear, lost: Lost) -> None:
        super().__init__(remote, hear, lost)
        self._session = ""
        self._posts: dict[int, asyncio.Task[None]] = {}  # requests whose answers have not come

    def send(self, message: bytes, number: int | None) -> None:
        if self._crowded():
            return
        post = self._go(self._post(message, number), told=number is None)
        if number is not None:
            self._posts[number] = post
            post.add_done_callback(lambda _: self._posts.pop(number, None))

    def cancel(self, number: int) -> None:
        """In the newer era whoever hangs up has cancelled, and nobody would know which request a message means."""
        if self._version not in MODERN:
            self.send(cancelled(number), None)
        elif post := self._posts.get(number):
            post.cancel()

    async def end(self) -> None:
        if self._session:
            try:
                async with asyncio.timeout(1.0):
                    exchange = await self._client.send("DELETE", await self._own_headers())
                    exchange.close()
            except (*_BROKEN, TimeoutError):
                pass  # it forgets the session by itself
        await super().end()

    async def _own_headers(self, message: bytes = b"") -> dict[str, str]:
        headers = await self._headers()
        if self._session:
            headers |= {"Mcp-Session-Id": self._session}
        if self._version:
            headers |= {"MCP-Protocol-Version": self._version}
        if self._version in MODERN:
            headers |= routing(decode(message), self._marks)
        return headers

    async def _post(self, message: bytes, number: int | None) -> None:
        try:
            exchange = await self._client.send("POST", await self._own_headers(message), message)
            try:
                await self._take(exchange, number)
                if exchange.kind == "text/event-stream":  # what it has not answered by now it never will
                    self._failed(ConnectionResetError("the stream of events ended without an answer"), number)
            finally:
                self._client.give_back(exchange)
        except _BROKEN as error:
            if isinstance(error, Unreachable) and not self._version:  # there is nobody to be asked in another way
                self._lost(ServerFault(self._remote.masked(error.message)))
            self._failed(error, number)
            return
        if number is None and b'"notifications/initialized"' in message:
            self._go(self._listen())

    async def _take(self, exchange: Exchange, number: int | None) -> None:
        if exchange.status == 202:
            await exchange.body()
            return
        self._session = exchange.headers.get("mcp-session-id", self._session)
        if exchange.status == 200 and exchange.kind == "text/event-stream":
            async for _, data in events(exchange.chunks()):
                self._hear(data)
            return
        body = await exchange.body()
        forgotten = exchange.status == 404 and bool(self._session)
        page = number is not None and exchange.kind != "application/json" and isinstance(decode(body), Malformed)
        if exchange.status < 300 and page:
            what = f"the tool server {self._remote.name!r} answered with {exchange.kind[:60] or 'something'}"
            raise ServerFault(self._remote.masked(f"{what}, which is no MCP; is the url right?"))
        if exchange.status < 300 or (not forgotten and _answers(decode(body))):
            self._hear(body)
            return
        refused = self._refused(exchange, body)
        if forgotten:
            self._lost(refused)  # the next call says hello again
        raise refused

    async def _listen(self) -> None:
        """What it tells without being asked. Many servers have no such stream, and say so."""
        try:
            exchange = await self._client.send("GET", await self._own_headers())
            try:
                if exchange.status == 200 and exchange.kind == "text/event-stream":
                    async for _, data in events(exchange.chunks()):
                        self._hear(data)
            finally:
                exchange.close()
        except _BROKEN:
            pass


def _answers(message: Message) -> bool:
    """Whether whoever waits can be told that, although the status is an error."""
    return isinstance(message, Result | Failure) and message.id is not None


class SseLink(_Link):
    """The older kind: one stream for all answers, and an address for questions which it names first."""

    def __init__(self, remote: Remote, hear: Hear, lost: Lost) -> None:
        super().__init__(remote, hear, lost)
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        self._go(self._listen())
        await asyncio.shield(self._address)

    def send(self, message: bytes, number: int | None) -> None:
        if not self._crowded():
            self._go(self._post(message, number), told=number is None)

    def cancel(self, number: int) -> None:
        self.send(cancelled(number), None)

    async def _post(self, message: bytes, number: int | None) -> None:
        try:
            target = await asyncio.shield(self._address)
            exchange = await self._client.send("POST", await self._headers(), message, target)
            try:
                body = await exchange.body()
                if exchange.status >= 300:
                    raise self._refused(exchange, body)
            finally:
                self._client.give_back(exchange)
        except _BROKEN as error:
            self._failed(error, number)

    async def _listen(self) -> None:
        why = ServerFault(f"the tool server {self._remote.name!r} closed its stream")
        try:
            exchange = await self._client.send("GET", await self._headers())
            try:
                if exchange.status != 200 or exchange.kind != "text/event-stream":
                    raise self._refused(exchange, await exchange.body())
                async for kind, data in events(exchange.chunks()):
                    self._heard(kind, data)
            finally:
                exchange.close()
        except _BROKEN as error:
            why = error if isinstance(error, ServerFault) else ServerFault(f"{why.message}: {error}")
        if not self._address.done():
            self._address.set_exception(why)
        self._lost(why)

    def _heard(self, kind: str, data: bytes) -> None:
        if kind != "endpoint":
            self._hear(data)
        elif not self._address.done():
            address = urlsplit(urljoin(self._remote.url, data.decode(errors="replace").strip()))
            if address.netloc != urlsplit(self._remote.url).netloc:
                said = f"the tool server {self._remote.name!r} sends us on to {address.netloc[:100]}, which is not it"
                self._address.set_exception(ServerFault(said))
            else:
                self._address.set_result(address.path + (f"?{address.query}" if address.query else ""))


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, bytes]]:
    """Server-sent events: their kind and their data."""
    kind, data = "message", list[bytes]()
    async for line in _lines(chunks):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            kind = value.decode(errors="replace")
        elif not line:
            if data:
                yield kind, b"\n".join(data)
            kind, data = "message", []


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            pending.append(line)
            yield b"".join(pending).removesuffix(b"\r")
            pending, size = [], 0
        pending.append(rest)
        size += len(rest)
        if size > LONGEST_EVENT:
            raise ServerFault(f"a line of more than {LONGEST_EVENT >> 20} MiB in a stream of events")


async def open_http(remote: Remote, hear: Hear, lost: Lost) -> HttpLink:
    return HttpLink(remote, hear, lost)


async def open_sse(remote: Remote, hear: Hear, lost: Lost) -> SseLink:
    link = SseLink(remote, hear, lost)
    try:
        await link.open()
    except BaseException:
        await link.end()
        raise
    return link
