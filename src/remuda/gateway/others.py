"""Everything but tools: prompts, resources, completions, logging, and what servers tell without being asked."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.domain.errors import RemudaError
from remuda.gateway.connection import Connection
from remuda.gateway.fleet import Fleet
from remuda.gateway.names import SEPARATOR, server_of, shown_name
from remuda.gateway.passing import plain, take_apart
from remuda.gateway.policy import Allowed
from remuda.gateway.routes import Routes
from remuda.gateway.server import ToolServer
from remuda.gateway.watched import Watched
from remuda.mcp import Client
from remuda.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Notification, Request, RpcError, members, raw, together

log = logging.getLogger("remuda.gateway")

T = TypeVar("T")

RELIST_EVERY = 0.2  # seconds between two lists of a server that changes its tools without end

# method -> where its items stand, and which capability a server must have
LISTS = {
    "prompts/list": ("prompts", "prompts"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "resources"),
}


class _Named(Struct, frozen=True):
    name: str = ""
    uri: str = ""


class _Reference(Struct):
    ref: _Named = _Named()


class Others:
    def __init__(self, fleet: Fleet, clients: Sequence[Client], routes: Routes, allowed: Callable[[], Allowed]) -> None:
        self._fleet, self._clients, self._routes, self._allowed = fleet, clients, routes, allowed
        self._level: Raw | None = None
        self._prompts: dict[str, str] = {}  # as clients see it -> as its server calls it
        self._owners: dict[str, set[str]] = {}  # of each resource
        self._watched = Watched()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stale: set[str] = set()  # servers whose tools are others than those that are known
        self._relisting: set[str] = set()
        self.tools_changed: Callable[[], None] = lambda: None

    async def answer(self, client: Client, request: Request) -> Raw:
        match request.method:
            case "prompts/list" | "resources/list" | "resources/templates/list":
                return await self._list(request.method)
            case "prompts/get":
                return await self._prompt(client, request)
            case "resources/read":
                return await self._resource(request, _uri(request.params))
            case "resources/subscribe":
                await self._subscribe(client, _uri(request.params))
                return raw({})
            case "resources/unsubscribe":
                self._unsubscribe(client, _uri(request.params))
                return raw({})
            case "completion/complete":
                return await self._complete(request)
            case "logging/setLevel":
                return await self._set_level(request.params)
            case method:
                raise RpcError(METHOD_NOT_FOUND, f"there is no {method[:100]} here")

    # --- asked by clients ---

    def _able(self, capability: str) -> list[ToolServer]:
        """Servers that run and can do it. None is started for a list: nobody said that it is wanted."""
        allowed = self._allowed()
        return [
            server
            for name, server in sorted(self._fleet.servers.items())
            if (connection := server.connection) and capability in connection.capabilities and allowed.server(name)
        ]

    async def _list(self, method: str) -> Raw:
        key, capability = LISTS[method]
        able = self._able(capability)
        lists = await asyncio.gather(*(self._items(server, method, key) for server in able))
        items = [item for listed in lists for item in listed]
        return raw({key: items})

    async def _items(self, server: ToolServer, method: str, key: str) -> list[Raw]:
        """A server that cannot tell its own is left out; the others are not disturbed."""
        connection = server.connection
        if connection is None:
            return []
        try:
            async with asyncio.timeout(server.settings.call_seconds):
                items = await connection.list_all(method, key)
        except (RemudaError, RpcError, TimeoutError) as error:
            log.warning("%s: %s failed: %s", server.name, method, error)
            return []
        if method == "prompts/list":
            return [named for item in items if (named := self._renamed(server.name, item)) is not None]
        if method == "resources/list":
            for item in items:
                self._owners.setdefault(_uri(item), set()).add(server.name)
        return items

    def _renamed(self, server: str, item: Raw) -> Raw | None:
        try:
            name = msgspec.json.decode(item, type=_Named).name
            shown = shown_name(server, name)
            self._prompts[shown] = name
            return together({**members(item), "name": raw(shown)})
        except (msgspec.MsgspecError, RpcError):
            return None

    async def _prompt(self, client: Client, request: Request) -> Raw:
        call = take_apart(request.params)
        server = server_of(call.name)
        if not self._allowed().server(server):
            raise RpcError(INVALID_PARAMS, f"there is no prompt {call.name[:100]!r}")
        own = self._prompts.get(call.name) or call.name.partition(SEPARATOR)[2]
        return await self._routes.call(client, request, call, server, own)

    async def _resource(self, request: Request, uri: str) -> Raw:
        def ask(server: ToolServer) -> Awaitable[Raw]:
            return self._fleet.call(server.name, request.method, request.method, plain(request.params))

        return await self._of_its_server(uri, ask)

    async def _of_its_server(self, uri: str, ask: Callable[[ToolServer], Awaitable[T]]) -> T:
        """From the server that lists it. One that nobody lists may come from a template: each is asked in turn."""
        able = self._able("resources")
        owners = [server for server in able if server.name in self._owners.get(uri, ())]
        if len(owners) > 1:
            names = " and ".join(server.name for server in owners)
            raise RpcError(INVALID_PARAMS, f"{uri[:200]} is listed by {names}; nobody can say which one is meant")
        last = RpcError(INVALID_PARAMS, f"no server that runs has the resource {uri[:200]!r}; start it first")
        for server in owners or able:
            try:
                return await ask(server)
            except RpcError as error:
                last = error
        raise last

    # --- resources that are watched ---

    async def watch(self, client: Client, uris: Set[str]) -> Set[str]:
        """Of these a client wants to hear, and of no others. Those of them that a server will tell of."""
        for uri in self._watched.of(client) - uris:
            self._unsubscribe(client, uri)
        for uri in uris - self._watched.of(client):
            try:
                await self._subscribe(client, uri)
            except (RemudaError, RpcError) as error:
                log.info("nobody tells of changes of %s: %s", uri[:200], error)
        return self._watched.of(client)

    async def _subscribe(self, client: Client, uri: str) -> None:
        async def ask(server: ToolServer) -> str:
            connection = server.connection
            if connection is None or not _flag(connection.capabilities, "resources", "subscribe"):
                raise RpcError(METHOD_NOT_FOUND, f"{server.name} does not tell when its resources change")
            await connection.watch(uri, on=True)
            return server.name

        server = "" if uri in self._watched else await self._of_its_server(uri, ask)
        if client in self._clients:  # it may have left in the meantime
            self._watched.add(uri, server, client)
            self._fleet.keep(self._watched.servers())

    def _unsubscribe(self, client: Client, uri: str) -> None:
        """Nobody has to wait until the server knows."""
        server = self._fleet.servers.get(self._watched.drop(uri, client))
        self._fleet.keep(self._watched.servers())
        if server is not None and (connection := server.connection):
            self._go(self._watch_again(connection, [uri], on=False))

    async def _watch_again(self, connection: Connection, uris: Sequence[str], *, on: bool) -> None:
        for uri in uris:
            try:
                await connection.watch(uri, on=on)
            except (RemudaError, RpcError) as error:
                log.info("%s: %s is watched as before: %s", connection.name, uri[:200], error)

    def left(self, client: Client) -> None:
        for uri in self._watched.of(client):
            self._unsubscribe(client, uri)

    async def _complete(self, request: Request) -> Raw:
        try:
            ref = msgspec.json.decode(request.params, type=_Reference).ref
        except msgspec.MsgspecError as error:
            raise RpcError(INVALID_PARAMS, f"the reference cannot be read: {error}") from error
        if ref.uri:
            return await self._resource(request, ref.uri)
        server = server_of(ref.name)
        if not self._allowed().server(server):
            raise RpcError(INVALID_PARAMS, f"there is no prompt {ref.name[:100]!r}")
        own = self._prompts.get(ref.name) or ref.name.partition(SEPARATOR)[2]
        parts = members(plain(request.params))
        parts["ref"] = together({**members(parts["ref"]), "name": raw(own)})
        return await self._fleet.call(server, request.method, request.method, together(parts))

    async def _set_level(self, params: Raw) -> Raw:
        self._level = plain(params)
        for server in self._able("logging"):
            try:
                await server.call("logging/setLevel", self._level)
            except (RemudaError, RpcError) as error:
                log.info("%s: its level of logging stays: %s", server.name, error)
        return raw({})

    def heard(self, client: Client, told: Notification) -> None:  # noqa: ARG002 - all clients are told alike
        if told.method == "notifications/roots/list_changed":
            for server in self._fleet.servers.values():
                if connection := server.connection:
                    connection.tell(told.method, told.params)

    # --- told by servers ---

    def notified(self, server: str, told: Notification) -> None:
        match told.method:
            case "notifications/progress":
                self._routes.progress(server, told)
            case "notifications/tools/list_changed":
                self._stale.add(server)
                if server not in self._relisting:
                    self._relisting.add(server)
                    self._go(self._relist_stale(server))
            case "notifications/resources/updated":
                self._tell(self._watched.told(server, _uri(told.params)), told)
            case "notifications/message":
                self._tell(self._clients, told)
            case "notifications/resources/list_changed" | "notifications/prompts/list_changed":
                self._tell(self._clients, told)
            case method:
                log.debug("%s: %s is nobody's affair", server, method)

    def started(self, server: str) -> None:
        """What was asked for before it ran, or of the one that ran before."""
        connection = self._fleet.servers[server].connection
        if connection is not None and (uris := self._watched.at(server)):
            self._go(self._watch_again(connection, uris, on=True))
        if self._level is not None and connection is not None and "logging" in connection.capabilities:
            self._go(self._level_again(self._fleet.servers[server], self._level))

    async def _level_again(self, server: ToolServer, level: Raw) -> None:
        try:
            await server.call("logging/setLevel", level)
        except (RemudaError, RpcError) as error:
            log.info("%s: its level of logging stays: %s", server.name, error)

    async def _relist_stale(self, name: str) -> None:
        """However often it tells of changes, it is asked once at a time."""
        while name in self._stale:
            self._stale.discard(name)
            await self._relist(name)
            await asyncio.sleep(RELIST_EVERY)
        self._relisting.discard(name)

    async def _relist(self, name: str) -> None:
        """Its tools are others now. If they may not be, it is stopped: the next call tells why."""
        server = self._fleet.servers.get(name)
        if server is None or not server.running:
            return
        try:
            await server.relist()
        except (RemudaError, RpcError) as error:
            log.warning("%s changed its tools and cannot be used: %s", name, error)
            await server.leave()
        self.tools_changed()

    def _tell(self, clients: Iterable[Client], told: Notification) -> None:
        try:
            params = plain(told.params)
        except RpcError:
            return  # no client could read it either
        for client in clients:
            client.notify(told.method, params)

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _uri(params: Raw) -> str:
    try:
        return msgspec.json.decode(params, type=_Named).uri
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _flag(capabilities: Mapping[str, Any], of: str, what: str) -> bool:
    said = capabilities.get(of)
    return isinstance(said, Mapping) and bool(said.get(what))
