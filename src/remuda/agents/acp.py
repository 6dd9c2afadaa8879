"""A session with an agent that speaks the Agent Client Protocol over its pipes.

Written on msgspec and not on the official SDK, whose import alone takes over a second of CPU: the runtime's
one loop would stand still for it. The tests hold this client and the SDK against each other, both ways.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from remuda.agents import Ask, Ended, Launch, Listen, TurnResult, Update
from remuda.agents.acp_codec import PROTOCOL_VERSION, Reading, openings, permission, permission_asked, session_id
from remuda.agents.jsonrpc import (
    METHOD_NOT_FOUND,
    Id,
    Message,
    Notice,
    Request,
    RpcError,
    RpcResult,
    answer,
    decode,
    failure,
    notice,
    request,
)
from remuda.agents.process import Child
from remuda.domain.errors import AgentFault, Conflict, RemudaError
from remuda.domain.state import Outcome
from remuda.version import __version__

START_TIMEOUT = 30.0


async def open_session(
    argv: Sequence[str], launch: Launch, listen: Listen, ask: Ask, patience: float = START_TIMEOUT
) -> "AcpSession":
    """Start the agent's program and open its conversation: the one to resume if it knows it, or a new one.

    Whether it was resumed shows in `ref`. When it raises, nothing of the agent is left running.
    """
    session = AcpSession(launch, listen, ask)
    await session.start(argv)
    try:
        async with asyncio.timeout(patience):
            await session.open()
    except TimeoutError as error:
        evidence = session.child.evidence()
        await session.end(gentle=False)
        raise AgentFault(f"the agent did not start within {patience:g} s{evidence}") from error
    except BaseException:
        await session.end(gentle=False)
        raise
    return session


class AcpSession:
    child: Child

    def __init__(self, launch: Launch, listen: Listen, ask: Ask) -> None:
        self._ask = ask
        self._asking: set[asyncio.Future[None]] = set()
        self._launch = launch
        self._listen = listen
        self._reading = Reading()
        self._pending: dict[int, asyncio.Future[RpcResult | RpcError]] = {}
        self._asked = 0
        self._fault: RemudaError | None = None
        self._open = False
        self._turn: asyncio.Future[RpcResult | RpcError] | None = None  # until the agent has answered the last prompt
        self._ref = ""
        self._preface = launch.instructions  # goes ahead of the first prompt of a new conversation

    @property
    def ref(self) -> str:
        return self._ref

    async def start(self, argv: Sequence[str]) -> None:
        self.child = await Child.start(argv, self._launch, self._listen, self._hear)

    async def open(self) -> None:
        hello = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            "clientInfo": {"name": "remuda", "title": "Remuda", "version": __version__},
        }
        welcome = self._result_of(await self._call("initialize", hello))
        for method in openings(welcome, self._launch.resume):
            opened = await self._call(method, self._session_params(method))
            if isinstance(opened, RpcResult):
                return self._opened_by(method, opened.result)
            # A conversation that the agent has forgotten is no reason to die: the last way begins a new one.
        self._result_of(opened)
        return None

    async def prompt(self, text: str) -> TurnResult:
        if self._turn:
            raise Conflict("a turn is running in this session; wait for its end or cancel it")
        texts = [self._preface, text] if self._preface else [text]
        self._preface = ""
        blocks = [{"type": "text", "text": each} for each in texts]
        try:
            self._turn = self._request("session/prompt", {"sessionId": self._ref, "prompt": blocks})
            self._turn.add_done_callback(self._rest)
            # Whoever waits may leave; the agent is in its turn all the same, until it answers.
            return self._turn_result(await asyncio.shield(self._turn))
        except RemudaError:
            self._report(self._reading.settle())
            raise

    async def cancel(self) -> None:
        if self._turn:
            self.child.send(notice("session/cancel", {"sessionId": self._ref}))

    async def end(self, *, gentle: bool) -> Ended:
        return await self.child.end(gentle=gentle, cancel=self._stop_turn)

    async def _stop_turn(self) -> None:
        if self._turn:
            await self.cancel()
            await asyncio.wait({self._turn})

    def _rest(self, turn: "asyncio.Future[RpcResult | RpcError]") -> None:
        self._turn = None
        if not turn.cancelled():
            turn.exception()  # it is told to who waits, if anybody still does

    async def gone(self) -> Ended:
        return await self.child.gone()

    def _session_params(self, method: str) -> dict[str, Any]:
        params: dict[str, Any] = {"cwd": str(self._launch.cwd), "mcpServers": []}
        return params if method == "session/new" else {**params, "sessionId": self._launch.resume}

    def _opened_by(self, method: str, result: Raw) -> None:
        self._ref = session_id(result) if method == "session/new" else self._launch.resume
        if not self._ref:
            raise AgentFault("the agent opened a session without an id, so nobody could speak to it")
        self._open = True
        if method != "session/new":
            self._preface = ""  # the conversation has it already
            self._reading.resumed()

    def _turn_result(self, reply: RpcResult | RpcError) -> TurnResult:
        if isinstance(reply, RpcError):
            self._report(self._reading.settle())
            return TurnResult(Outcome.FAILED, "error", reply.message)
        result, calls = self._reading.end_turn(reply.result)
        self._report(calls)
        return result

    async def _call(self, method: str, params: Mapping[str, Any]) -> RpcResult | RpcError:
        return await self._request(method, params)

    def _request(self, method: str, params: Mapping[str, Any]) -> "asyncio.Future[RpcResult | RpcError]":
        """It is sent when this returns: what is sent afterwards, such as a cancel, comes after it."""
        if self._fault:
            raise self._fault
        self._asked += 1
        number = self._asked
        reply: asyncio.Future[RpcResult | RpcError] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda _: self._pending.pop(number))
        self._pending[number] = reply
        self.child.send(request(number, method, params))
        return reply

    def _result_of(self, reply: RpcResult | RpcError) -> Raw:
        if isinstance(reply, RpcError):
            raise AgentFault(f"the agent would not start a session: {reply.message} (code {reply.code})")
        return reply.result

    def _hear(self, heard: str | RemudaError) -> None:
        if isinstance(heard, RemudaError):
            self._break(heard)
        elif not self._fault:  # after a fault the lines are only logged: what they belong to is uncertain
            try:
                self._take(decode(heard))
            except AgentFault as fault:
                self._break(fault)

    def _take(self, message: Message) -> None:
        match message:
            case RpcResult(id=int(number)) | RpcError(id=int(number)):
                self._resolve(number, message)
            case Request(id=sender, method="session/request_permission", params=params):
                self._asking.add(task := asyncio.ensure_future(self._ask_for(sender, params)))
                task.add_done_callback(self._asking.discard)
            case Request(id=sender, method=method):
                self.child.send(failure(sender, METHOD_NOT_FOUND, f"Remuda does not offer {method}"))
            case Notice(method="session/update", params=params) if self._open:
                self._report(self._reading.update(params))
            case Notice(method="session/update", params=params):
                self._reading.replay(params)

    async def _ask_for(self, sender: Id, params: Raw) -> None:
        asked = permission_asked(sender, params)
        answered = await self._ask(asked)
        self.child.send(answer(sender, permission(params, answered.allow)))

    def _resolve(self, number: int, reply: RpcResult | RpcError) -> None:
        waiting = self._pending.get(number)
        if waiting and not waiting.done():
            waiting.set_result(reply)

    def _report(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._listen(update)

    def _break(self, fault: RemudaError) -> None:
        """Nothing more can be understood. Whoever waits, now or later, learns why."""
        self._fault = self._fault or fault
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_exception(fault)
