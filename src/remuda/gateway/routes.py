"""Calls on their way to a server and back: progress, what the server asks of the client, results that are too long."""

import asyncio
import itertools
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from remuda.domain.errors import RemudaError
from remuda.gateway.fleet import Fleet
from remuda.gateway.outputs import Outputs
from remuda.gateway.passing import Call, text_result
from remuda.gateway.rounds import Flight, Round, Rounds
from remuda.mcp import Client, GiveUp, Settle
from remuda.mcp.jsonrpc import METHOD_NOT_FOUND, Notification, Request, RpcError, members, together

# What a server may ask of a client, and what the client must have said that it can.
ASKABLE = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}


class _Progress(msgspec.Struct, rename="camel"):
    progress_token: int | str | None = None


_read_progress = msgspec.json.Decoder(_Progress).decode


class Routes:
    def __init__(self, fleet: Fleet, clients: Sequence[Client]) -> None:
        self._fleet, self._clients = fleet, clients
        self._flights: dict[int, Flight] = {}
        self._numbers = itertools.count(1)
        self._rounds = Rounds()
        self.outputs = Outputs(fleet.configured.state / "output")

    def pass_on(self, flight: Flight, call: Call, tool: str, settle: Settle) -> GiveUp | None:
        """A call of a tool on its way to a server that runs; None when it does not."""
        number = next(self._numbers)

        def landed(answer: Raw | Exception) -> None:
            self._flights.pop(number, None)
            if isinstance(answer, Exception):
                settle(_in_words(flight.server, answer))
            elif self._short(answer):
                settle(answer)
            else:
                keeping = asyncio.create_task(self._keep(answer, flight.server, tool))
                keeping.add_done_callback(lambda kept: settle(_outcome(kept)))

        self._flights[number] = flight
        token = None if call.progress is None else number
        at_server = self._fleet.pass_on(flight.server, tool, call.onward(tool, token), landed)
        if at_server is None:
            del self._flights[number]
            return None

        def give_up() -> None:
            self._flights.pop(number, None)
            at_server()

        return give_up

    async def call(self, client: Client, request: Request, call: Call, server: str, tool: str) -> Raw:
        flight = Flight(server, client, request.id, call.progress)
        if not client.who.modern:
            return await self._at_server(flight, request.method, call, tool)
        going = self._rounds.resume(call.parts)
        if going is None:
            going = Round(flight, self._at_server(flight, request.method, call, tool))
        else:  # it comes back under another number
            going.flight.client, going.flight.request, going.flight.progress = client, request.id, call.progress
        return await self._rounds.next(going)

    async def _at_server(self, flight: Flight, method: str, call: Call, tool: str) -> Raw:
        number = next(self._numbers)
        token = None if call.progress is None else number
        self._flights[number] = flight
        try:
            answer = await self._fleet.call(flight.server, tool, method, call.onward(tool, token))
        except RpcError as error:
            if method != "tools/call":
                raise
            return _refused(flight.server, error)
        finally:
            del self._flights[number]
        return answer if self._short(answer) else await self._keep(answer, flight.server, tool)

    def _short(self, answer: Raw) -> bool:
        return len(answer) <= self._fleet.configured.gateway.output_bytes

    async def _keep(self, answer: Raw, server: str, tool: str) -> Raw:
        return await asyncio.to_thread(self.outputs.keep, answer, f"{server}/{tool}")

    def progress(self, server: str, told: Notification) -> None:
        """To the client whose call it is, under the token that it gave."""
        try:
            token = _read_progress(told.params).progress_token
        except msgspec.MsgspecError:
            return
        flight = self._flights.get(token) if isinstance(token, int) else None
        if flight is not None and flight.server == server and flight.progress is not None:
            parts = {**members(told.params), "progressToken": flight.progress}
            flight.client.notify(told.method, together(parts), about=flight.request)

    def asked(self, server: str, asked: Request) -> Awaitable[Raw]:
        """A server asks: the client of its newest call answers, or else the one that came last."""
        capability = ASKABLE.get(asked.method)
        flight = next((each for each in reversed(self._flights.values()) if each.server == server), None)
        client = flight.client if flight else next(reversed(self._clients), None)
        if capability is None or client is None or capability not in client.who.capabilities:
            raise RpcError(METHOD_NOT_FOUND, f"nobody here can answer {asked.method}")
        if flight is not None and flight.round is not None:
            return flight.round.ask(asked)
        return client.ask(asked.method, asked.params, about=flight.request if flight else None)

    def capabilities(self) -> Mapping[str, Any]:
        """What can be asked of the clients that are here, for a server that is being started."""
        able = [client.who.capabilities for client in self._clients]
        return {name: said[name] for said in able for name in ASKABLE.values() if name in said}


def _refused(server: str, error: RpcError) -> Raw:
    return text_result(f"{server} answered with an error: {error.message}", error=True)


def _in_words(server: str, error: Exception) -> Raw | Exception:
    """The model can do something about an error that it is told as a result; a client could not."""
    if isinstance(error, RpcError):
        return _refused(server, error)
    return text_result(str(error), error=True) if isinstance(error, RemudaError) else error


def _outcome(done: "asyncio.Task[Raw]") -> Raw | Exception:
    if done.cancelled():
        return RemudaError("the gateway was stopped")
    error = done.exception()
    return error if isinstance(error, Exception) else done.result()
