"""A session with Codex in its own protocol: JSON-RPC with `codex app-server`, one process for one conversation."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw

from remuda.agents import Answered, Ask, Ended, Launch, Listen, TurnResult, Update
from remuda.agents.codex_codec import Opened, Params, Reading, Started, Turn, lenient, permissions_wanted, read
from remuda.agents.exchange import Awaited, Questions, whom_to_ask
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
from remuda.agents.options import Option, options_of
from remuda.agents.process import Child
from remuda.agents.tool_servers import codex_config, environment, own_name
from remuda.domain.errors import AgentFault, Conflict, RemudaError
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from remuda.version import __version__

START_TIMEOUT = 30.0

OPTIONS: Mapping[str, Option] = {
    "permissions": Option(),  # ask, or bypass
    "base_url": Option(),
    "max_retries": Option(),
    "provider": Option(),
    "sandbox": Option(),
    "approval_policy": Option(),
}

# Each of these would have the program call somebody who has no part in the work, and wait for them.
SWITCHES: Mapping[str, object] = {"analytics.enabled": False, "check_for_update_on_startup": False}
OWN_PROVIDER = "remuda"  # a model service that is given by its address alone

# How each kind of question is answered, once it is known whether it may.
ANSWERS: Mapping[str, Callable[[Raw, bool], Mapping[str, Any]]] = {
    "item/commandExecution/requestApproval": lambda _, allow: {"decision": "accept" if allow else "decline"},
    "item/fileChange/requestApproval": lambda _, allow: {"decision": "accept" if allow else "decline"},
    "item/permissions/requestApproval": lambda params, allow: {"permissions": permissions_wanted(params, allow)},
    "mcpServer/elicitation/request": lambda _, allow: (
        {"action": "accept", "content": {}} if allow else {"action": "decline", "content": None}
    ),
}


async def open_session(
    program: Sequence[str], launch: Launch, listen: Listen, ask: Ask, patience: float = START_TIMEOUT
) -> "CodexSession":
    """Start the program and open its conversation: the one to resume or fork if it knows it, or a new one.

    Whether it was resumed shows in `ref`. When it raises, nothing of the agent is left running.
    """
    session = CodexSession(launch, listen, ask)
    await session.start(program)
    try:
        async with asyncio.timeout(patience):
            await session.open()
    except TimeoutError as error:
        evidence = session.child.evidence()
        await session.end(gentle=False)
        raise AgentFault(f"codex did not start within {patience:g} s{evidence}") from error
    except BaseException:
        await session.end(gentle=False)
        raise
    return session


class CodexSession:
    child: Child

    def __init__(self, launch: Launch, listen: Listen, ask: Ask) -> None:
        self._launch = launch
        self._listen = listen
        self._questions = Questions(whom_to_ask(launch.options, ask))
        self._replies: Awaited[RpcResult | RpcError] = Awaited()
        self._reading = Reading()
        self._turn: asyncio.Future[TurnResult] | None = None
        self._starting = 0  # the number under which the turn was asked for; its reply has the turn's id
        self._turn_id = ""
        self._early: dict[str, Turn] = {}  # turns that ended while ours had no id yet: it may be one of them
        self._cancelled = False

    @property
    def ref(self) -> str:
        return self._reading.thread

    async def start(self, program: Sequence[str]) -> None:
        argv, env = command(program, self._launch)
        self.child = await Child.start(argv, replace(self._launch, env=env), self._listen, self._hear)

    async def open(self) -> None:
        client = {"name": "remuda", "title": "Remuda", "version": __version__}
        hello = {"clientInfo": client, "capabilities": {"experimentalApi": True}}
        self._must(await self._call("initialize", hello))
        self.child.send(notice("initialized", {}))
        for method in openings(self._launch):
            opened = await self._call(method, thread(self._launch, method))
            if isinstance(opened, RpcResult):
                return self._opened(read(opened.result, Opened))
            # A conversation that it has forgotten is no reason to die: the last way begins a new one.
        self._must(opened)
        return None

    async def prompt(self, text: str) -> TurnResult:
        if self._turn:
            raise Conflict("a turn is running in this session; wait for its end or cancel it")
        self._turn = turn = asyncio.get_running_loop().create_future()
        turn.add_done_callback(self._rest)
        self._cancelled = False
        try:
            self._replies.send(lambda number: self._start(number, text)).add_done_callback(self._started)
            return await asyncio.shield(turn)  # who waits may leave; codex is in its turn until it says its end
        except RemudaError:
            turn.cancel()
            self._report(self._reading.give_up())
            raise

    def _started(self, reply: "asyncio.Future[RpcResult | RpcError]") -> None:
        if reply.exception() is None and isinstance(refused := reply.result(), RpcError):
            self._end_turn(TurnResult(Outcome.FAILED, "error", refused.message, Failure.MODEL_ERROR))

    def _rest(self, turn: "asyncio.Future[TurnResult]") -> None:
        self._turn = None
        self._turn_id = ""
        self._early.clear()
        if not turn.cancelled():
            turn.exception()  # it is told to who waits, if anybody still does

    async def steer(self, text: str) -> None:
        """Tell the agent something while its turn runs. Raises Conflict when none does."""
        if not self._turn_id:
            raise Conflict("no turn is running in this session; send a prompt instead")
        params = {"threadId": self.ref, "expectedTurnId": self._turn_id, "input": _input(text)}
        reply = await self._call("turn/steer", params)
        if isinstance(reply, RpcError):
            raise Conflict(f"codex would not be steered: {reply.message}")

    async def cancel(self) -> None:
        if self._turn_id and not self._replies.fault:
            self._tell("turn/interrupt", turnId=self._turn_id)
        self._cancelled = self._turn is not None

    async def end(self, *, gentle: bool) -> Ended:
        return await self.child.end(gentle=gentle, cancel=self._stop_turn)

    async def _stop_turn(self) -> None:
        if self._turn:
            await self.cancel()
            await asyncio.wait({self._turn})

    async def gone(self) -> Ended:
        return await self.child.gone()

    def _opened(self, opened: Opened) -> None:
        if not opened.thread.id:
            raise AgentFault("codex opened a conversation without an id, so nobody could speak to it")
        self._reading.thread = opened.thread.id
        self._reading.model = opened.model

    def _start(self, number: int, text: str) -> None:
        self._starting = number
        self.child.send(request(number, "turn/start", {"threadId": self.ref, "input": _input(text)}))

    def _began(self, turn: Turn) -> None:
        if self._turn and not self._turn.done() and not self._turn_id:
            self._turn_id = turn.id
            if turn.id in self._early:
                self._finish(self._early[turn.id])

    def _tell(self, method: str, **params: str) -> None:
        """A request whose reply nobody waits for, and which has no number of ours: the turn's end shows what it did."""
        self.child.send(request(0, method, {"threadId": self.ref, **params}))

    async def _call(self, method: str, params: Mapping[str, Any]) -> RpcResult | RpcError:
        return await self._replies.ask(lambda number: self.child.send(request(number, method, params)))

    def _must(self, reply: RpcResult | RpcError) -> None:
        if isinstance(reply, RpcError):
            raise AgentFault(f"codex would not start a session: {reply.message} (code {reply.code})")

    def _hear(self, heard: str | RemudaError) -> None:
        if isinstance(heard, RemudaError):
            self._break(heard)
        elif not self._replies.fault:  # after a fault the lines are only logged: what they belong to is uncertain
            try:
                self._take(decode(heard))
            except AgentFault as fault:
                self._break(fault)

    def _take(self, message: Message) -> None:
        match message:
            case RpcResult(id=int(number)) | RpcError(id=int(number)):
                if isinstance(message, RpcResult) and number == self._starting:
                    self._began(read(message.result, Started).turn)  # at once: the next line may end it
                self._replies.resolve(number, message)
            case Request(id=sender, method=method, params=params):
                self._answer(sender, method, params)
            case Notice(method="turn/completed", params=params):
                self._completed(read(params, Params))
            case Notice(method=method, params=params) if said := lenient(params, Params):
                self._notice(method, said)

    def _notice(self, method: str, said: Params) -> None:
        if method == "serverRequest/resolved":
            self._questions.withdraw(said.request_id)
        self._report(self._reading.update(method, said))
        if method == "turn/started" and said.thread_id == self.ref and said.turn:
            self._began(said.turn)
            if self._cancelled:  # before it had begun, when codex would not hear of it
                self._tell("turn/interrupt", turnId=said.turn.id)

    def _completed(self, said: Params) -> None:
        if said.thread_id != self.ref or said.turn is None:
            return
        if self._turn_id == said.turn.id:
            self._finish(said.turn)
        elif not self._turn_id:
            self._early[said.turn.id] = said.turn

    def _finish(self, turn: Turn) -> None:
        result, updates = self._reading.end_turn(turn)
        self._report(updates)
        self._questions.withdraw_all()
        if result.failure is Failure.CANCELLED:
            self._tell("thread/backgroundTerminals/clean")  # else an interrupted command runs on
        self._end_turn(result)

    def _end_turn(self, result: TurnResult) -> None:
        if self._turn and not self._turn.done():
            self._turn.set_result(result)

    def _answer(self, sender: Id, method: str, params: Raw) -> None:
        if method not in ANSWERS:
            self.child.send(failure(sender, METHOD_NOT_FOUND, f"Remuda does not offer {method}"))
            return

        def reply(it: Answered) -> None:
            self.child.send(answer(sender, ANSWERS[method](params, it.allow)))

        self._questions.put(sender, self._reading.asked(sender, method, params), reply)

    def _report(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._listen(update)

    def _break(self, fault: RemudaError) -> None:
        self._replies.fail(fault)
        self._questions.withdraw_all()
        if self._turn and not self._turn.done():
            self._turn.set_exception(fault)


def command(program: Sequence[str], launch: Launch) -> tuple[tuple[str, ...], dict[str, str]]:
    """The program's arguments and its declared environment."""
    options_of("codex", OPTIONS, launch.options)
    env = {**environment(launch.mcp_servers, own_name), **launch.env}
    settings = {**SWITCHES, **provider(dict(launch.options))}
    flags = [part for key, value in settings.items() for part in ("-c", f"{key}={_toml(value)}")]
    # Plugins are looked up over the network at every start: seconds, where it can be reached at all.
    return (*program, *flags, "--disable", "plugins", "app-server"), env


def provider(options: Mapping[str, str]) -> Mapping[str, object]:
    """Where the model is: one that the user's settings name, one at an address, or the program's own."""
    if "base_url" not in options:
        return {"model_provider": options["provider"]} if "provider" in options else {}
    mine = f"model_providers.{OWN_PROVIDER}"
    retries = int(options["max_retries"]) if options.get("max_retries", "").isdecimal() else 3
    return {
        "model_provider": OWN_PROVIDER,
        f"{mine}.name": OWN_PROVIDER,
        f"{mine}.base_url": options["base_url"],
        f"{mine}.wire_api": "responses",
        f"{mine}.env_key": "OPENAI_API_KEY",
        f"{mine}.supports_websockets": False,
        f"{mine}.request_max_retries": retries,
        f"{mine}.stream_max_retries": retries,
    }


def openings(launch: Launch) -> tuple[str, ...]:
    """Which methods to try to open the conversation, best first. The last always begins a new one."""
    if not launch.resume:
        return ("thread/start",)
    return ("thread/fork" if launch.fork else "thread/resume", "thread/start")


def thread(launch: Launch, method: str) -> Mapping[str, Any]:
    options = dict(launch.options)
    params: dict[str, Any] = {
        "cwd": str(launch.cwd),
        "sandbox": options.get("sandbox", "workspace-write"),
        "approvalPolicy": options.get("approval_policy", "untrusted"),
    }
    if launch.model:
        params["model"] = launch.model
    if launch.instructions:
        params["developerInstructions"] = launch.instructions
    if launch.mcp_servers:
        params["config"] = {"mcp_servers": codex_config(launch.mcp_servers)}
    if method != "thread/start":
        params |= {"threadId": launch.resume, "excludeTurns": True}
    return params


def _input(text: str) -> Sequence[Mapping[str, str]]:
    return [{"type": "text", "text": text}]


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()  # for text, numbers and truth the two notations are one
