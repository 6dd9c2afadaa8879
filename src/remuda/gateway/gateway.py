"""The gateway: one list of tools in front of many servers, of which only those run that are used.

It is a desk: whatever client comes in by whatever front, its requests are answered here. The gateway's own tools are
answered at once; everything else goes on to the server that it names, and the answer passes back as it came.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import msgspec
from msgspec import Raw

from remuda.domain.errors import RemudaError
from remuda.gateway import metatools, outputs, policy
from remuda.gateway.choice import Candidate, Choose, Tier
from remuda.gateway.clock import Happening
from remuda.gateway.fleet import Fleet
from remuda.gateway.listing import Listed, shown, within
from remuda.gateway.metatools import Active
from remuda.gateway.names import server_of
from remuda.gateway.others import Others
from remuda.gateway.passing import Call, take_apart, text_result, turn_of
from remuda.gateway.profiles import Mode, Profile, profile_of
from remuda.gateway.rounds import Flight
from remuda.gateway.routes import Routes
from remuda.gateway.server import ToolServer
from remuda.gateway.toollist import MOST_LISTED, Tool
from remuda.mcp import Client, GiveUp, Settle
from remuda.mcp.eras import TOOLS_CHANGED, Offer, Who
from remuda.mcp.jsonrpc import Notification, Request, RpcError, members, raw, together
from remuda.version import __version__

log = logging.getLogger("remuda.gateway")

# What is in a list: servers, and how often the tools of each have changed.
State = tuple[tuple[str, int], ...]

BARRIER = 1.0  # seconds that a client gets to ask for the list again before it is told that a server runs
INSTRUCTIONS = (
    "Tools of many servers, started when they are needed. Say what you want to do to resolve_intent; the tools of the "
    "server that it starts are named server__tool and can be called at once."
)


class Gateway:
    def __init__(self, fleet: Fleet, choose: Choose, *, role: str = "") -> None:
        self.fleet, self.role = fleet, role
        # Told what the list costs when it has changed, and what all that is known would.
        self.listing: Callable[[int, int], None] = lambda _tokens, _known: None
        self._choose = choose
        self._allowed_by = fleet.configured
        self._allowed = policy.allowed(fleet.configured.gateway, fleet.configured.servers, role)
        pinned = (name for name, server in sorted(fleet.servers.items()) if server.settings.pinned and server.tools)
        self._listed = Listed(tuple(pinned))  # what is always wanted is listed before it runs
        self._clients: list[Client] = []
        self._asked_again = asyncio.Event()
        self._never_asks: set[str] = set()  # clients that a barrier was held for in vain, by name
        self._steered: set[str] = set()
        self._turn = ""
        self._told: dict[str, State] = {}  # client -> the list that it was told to ask for
        self._seen: dict[str, State] = {}  # client -> the list that it has got
        self._routes = Routes(fleet, self._clients)
        self._others = Others(fleet, self._clients, self._routes, lambda: self.allowed)
        fleet.notified, fleet.asked = self._others.notified, self._routes.asked
        fleet.capabilities, fleet.changed = self._routes.capabilities, self._changed
        fleet.started = self._others.started
        self._others.tools_changed = self._changed

    def tokens_listed(self) -> int:
        """What the tools in the lists of the clients that are here cost, the longest of them."""
        modes = {self._profile(client.who).mode for client in self._clients} or {Mode.STABLE}
        servers = self.fleet.servers
        return max(sum(tools.tokens for name in self._shown(mode) if (tools := servers[name].tools)) for mode in modes)

    @property
    def allowed(self) -> policy.Allowed:
        configured = self.fleet.configured
        if configured is not self._allowed_by:
            self._allowed_by = configured
            self._allowed = policy.allowed(configured.gateway, configured.servers, self.role)
        return self._allowed

    async def close(self) -> None:
        await self.fleet.close()

    def turn_ended(self) -> None:
        """The runtime knows: a prompt has got its reply."""
        self.fleet.counting = "told"
        self.fleet.turn_ended()

    # --- a desk ---

    def joined(self, client: Client) -> None:
        self._clients.append(client)

    def left(self, client: Client) -> None:
        self._clients.remove(client)
        self._others.left(client)

    def offer(self, who: Who) -> Offer:
        changes = {"listChanged": True}
        tools = {} if self._profile(who).mode is Mode.SEARCH else changes
        more = {"prompts": changes, "resources": {"subscribe": True, **changes}, "logging": {}, "completions": {}}
        return Offer("remuda", __version__, {"tools": tools, **more}, INSTRUCTIONS)

    async def watch(self, client: Client, uris: Set[str]) -> Set[str]:
        return await self._others.watch(client, uris)

    def hear(self, client: Client, notification: Notification) -> None:
        self._others.heard(client, notification)

    def pass_on(self, client: Client, request: Request, settle: Settle) -> GiveUp | None:
        """Calls of tools whose server runs: nothing has to be waited for but its answer."""
        if request.method != "tools/call":
            return None
        try:
            call = take_apart(request.params)
        except RpcError:
            return None
        self._see_turn(call)
        name = server_of(call.name)
        tool = self._tool(name, call.name)
        if tool is None:
            return None
        flight = Flight(name, client, request.id, call.progress)
        return self._routes.pass_on(flight, call, tool.name, settle)

    async def answer(self, client: Client, request: Request) -> Raw:
        match request.method:
            case "tools/call":
                return await self._call(client, request)
            case "tools/list":
                return self._list(client.who)
            case _:
                return await self._others.answer(client, request)

    # --- the list ---

    def _profile(self, who: Who) -> Profile:
        profile = profile_of(who, self.fleet.configured.gateway.listing)
        return profile._replace(refreshes=False) if who.name in self._never_asks else profile

    def _list(self, who: Who) -> Raw:
        mode = self._profile(who).mode
        self._seen[who.name] = self._told[who.name] = self._state(mode)
        self._asked_again.set()
        return raw({"tools": [*metatools.DEFINITIONS, *self._definitions(self._shown(mode))]})

    def _state(self, mode: Mode) -> State:
        return tuple((name, self.fleet.servers[name].edition) for name in self._shown(mode))

    def _shown(self, mode: Mode) -> tuple[str, ...]:
        """Servers in the list, as many as the budget takes."""
        allowed, servers = self.allowed, self.fleet.servers
        known = {
            name: tools.tokens
            for name in shown(self._listed, mode, self.fleet.running)
            if name in servers and (tools := servers[name].tools) is not None and allowed.server(name)
        }
        used = {name: use.turn for name, use in self.fleet.clock.uses.items()}
        fitting = within(known, used, self.fleet.configured.gateway.token_budget)
        return tuple(name for name in known if name in fitting)

    def _definitions(self, servers: Sequence[str]) -> list[Mapping[str, Any]]:
        allowed = self.allowed
        listed: list[Mapping[str, Any]] = []
        for name in servers:
            tools = self.fleet.servers[name].tools
            if tools is not None:
                mine = [tool.definition for tool in tools.tools.values() if allowed.tool(name, tool.name)]
                listed += mine[:MOST_LISTED]
        return listed

    def _changed(self) -> None:
        """Who runs has changed. A client whose list is another by that is told, once; nobody else is."""
        for name in self.fleet.running:
            self._listed = self._listed.add(name)
        for name in [name for name in self._listed.servers if name not in self.fleet.servers]:
            self._listed = self._listed.drop(name)
        for client in self._clients:
            who = client.who
            now = self._state(self._profile(who).mode)
            if self._told.get(who.name, now) != now:
                self._told[who.name] = now
                client.notify(TOOLS_CHANGED, raw({}))
        self.listing(self.tokens_listed(), self.fleet.tokens_known())

    async def _barrier(self, who: Who) -> bool:
        """Whether the client has the newest list: what it is told next may then rely on it."""
        profile = self._profile(who)
        try:
            async with asyncio.timeout(BARRIER if profile.refreshes else 0):
                while self._seen.get(who.name) != self._state(profile.mode):
                    self._asked_again.clear()
                    await self._asked_again.wait()
        except TimeoutError:
            if profile.refreshes:
                log.info("%s does not ask for its tools again; it is told them in words", who.name)
                self._never_asks.add(who.name)
            return False
        return True

    # --- calls ---

    async def _call(self, client: Client, request: Request) -> Raw:
        call = take_apart(request.params)
        self._see_turn(call)
        try:
            match call.name:
                case metatools.RESOLVE:
                    return await self._resolve(client, call)
                case metatools.ACTIVATE:
                    return await self._activate(client, call)
                case metatools.CALL:
                    return await self._call_by_name(client, request, call)
                case _:
                    return await self._routed(client, request, call)
        except RemudaError as error:
            return text_result(str(error), error=True)  # the model can do something about it; a client could not

    def _see_turn(self, call: Call) -> None:
        turn = turn_of(call) if call.meta else ""
        if turn and turn != self._turn:
            began, self._turn = bool(self._turn), turn
            self.fleet.counting = "told"
            if began:
                self.fleet.turn_ended()

    async def _routed(self, client: Client, request: Request, call: Call) -> Raw:
        name = server_of(call.name)
        if not name or not self.allowed.server(name):
            return self._unknown(call.name)
        server = self.fleet.servers[name]
        if not server.running and (server.tools is None or call.name not in server.tools.tools):
            await self.fleet.start(name, Happening.LOOK)  # what is kept of it may be old
        tool = self._tool(name, call.name)
        if tool is None:
            return self._unknown(call.name, server)
        return await self._routes.call(client, request, call, name, tool.name)

    def _tool(self, server: str, shown: str) -> Tool | None:
        """As far as it is known, and may be called."""
        known = self.fleet.servers.get(server)
        tool = known.tools.tools.get(shown) if known and known.tools else None
        return tool if tool is not None and self.allowed.tool(server, tool.name) else None

    async def _call_by_name(self, client: Client, request: Request, call: Call) -> Raw:
        try:
            onward = _named_in(call)
        except RpcError as error:
            said = f"{metatools.CALL} needs the name of a tool and its arguments as an object: {error.message}"
            return text_result(said, error=True)
        if onward.name == outputs.READ:
            wanted = msgspec.json.decode(onward.parts["arguments"])
            return await asyncio.to_thread(self._routes.outputs.read, wanted.get("output"), wanted.get("from"))
        if onward.name in metatools.NAMES:
            return text_result(f"{onward.name} is called directly, not through {metatools.CALL}", error=True)
        return await self._routed(client, request, onward)

    def _unknown(self, name: str, server: ToolServer | None = None) -> Raw:
        if server is not None and server.tools is not None:
            if why := server.tools.barred.get(name):
                return text_result(f"{name} cannot be called: {why}", error=True)
            mine = [each.shown for each in server.tools.tools.values() if self.allowed.tool(server.name, each.name)]
            near = ", ".join(mine[:50]) or "none"
            return text_result(f"{server.name} has no tool {name!r}; its tools are: {near}", error=True)
        return text_result(f"there is no tool {name[:100]!r}; {metatools.RESOLVE} finds the right one", error=True)

    # --- intents ---

    async def _resolve(self, client: Client, call: Call) -> Raw:
        query = _argument(call, "query")[: metatools.LONGEST_INTENT]
        if not query.strip():
            self.fleet.missed()
            return text_result(f"say what you want to do: {metatools.RESOLVE} needs a query", error=True)
        candidates = [
            Candidate(name, server.settings, self._known_tools(name))
            for name, server in sorted(self.fleet.servers.items())
            if self.allowed.server(name)
        ]
        choice = self._choose(query, candidates)
        if choice.tier is Tier.CLEAR:
            return await self._start(client, choice.offered[0].server)
        self.fleet.missed()
        return text_result(metatools.told_choice(choice, [each.name for each in candidates]))

    def _known_tools(self, name: str) -> Sequence[Mapping[str, Any]]:
        tools = self.fleet.servers[name].tools
        if tools is None:
            return ()
        allowed = self.allowed
        return [tool.definition for tool in tools.tools.values() if allowed.tool(name, tool.name)]

    async def _activate(self, client: Client, call: Call) -> Raw:
        name = _argument(call, "server").strip()
        if not self.allowed.server(name):
            self.fleet.missed()
            known = ", ".join(each for each in sorted(self.fleet.servers) if self.allowed.server(each)) or "none"
            return text_result(f"there is no tool server {name[:100]!r}; there are: {known}", error=True)
        return await self._start(client, name)

    async def _start(self, client: Client, name: str) -> Raw:
        server = await self.fleet.start(name)
        listed = await self._barrier(client.who)
        assert server.tools is not None
        mine = {k: tool for k, tool in server.tools.tools.items() if self.allowed.tool(name, tool.name)}
        steering = "" if name in self._steered else server.settings.steering.strip()
        self._steered.add(name)
        in_list = listed and name in self._shown(self._profile(client.who).mode)
        return text_result(metatools.told_active(Active(name, server.tools._replace(tools=mine), steering, in_list)))


def _named_in(call: Call) -> Call:
    """The call that is meant by one of `call_tool`."""
    given = members(call.parts.get("arguments", Raw(b"{}")))
    arguments = given.get("arguments", Raw(b"{}"))
    if bytes(arguments).lstrip().startswith(b'"'):  # models like to send an object as text
        arguments = Raw(_text(bytes(arguments)).encode() or b"{}")
    inner = {"name": given.get("name", Raw(b'""')), "arguments": together(members(arguments))}
    if "_meta" in call.parts:
        inner["_meta"] = call.parts["_meta"]
    return take_apart(together(inner))


def _argument(call: Call, key: str) -> str:
    try:
        given = msgspec.json.decode(call.parts.get("arguments", Raw(b"{}")))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RpcError(-32602, f"the arguments cannot be read: {error}") from error
    value = given.get(key, "") if isinstance(given, dict) else ""
    return value if isinstance(value, str) else ""


def _text(quoted: bytes) -> str:
    try:
        return str(msgspec.json.decode(quoted, type=str))
    except msgspec.MsgspecError:
        return ""
