"""A session with an agent that speaks the Agent Client Protocol over its pipes.

Written on msgspec and not on the official SDK, whose import alone takes over a second of CPU: the runtime's
one loop would stand still for it. The tests hold this client and the SDK against each other, both ways.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Raw

from remuda.agents import Ask, Ended, Launch, Listen, TurnResult, Update
from remuda.agents.acp_codec import (
    CANCELLED,
    PROTOCOL_VERSION,
    Opened,
    Welcome,
    opened,
    openings,
    permission,
    permission_asked,
    tool_servers,
    welcome,
    without_secrets,
)
from remuda.agents.acp_reading import Reading
from remuda.agents.books import Page
from remuda.agents.exchange import Awaited, Questions
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
from remuda.agents.quirks import PLAIN, Quirks
from remuda.domain.errors import AgentFault, Conflict, RemudaError
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from remuda.version import __version__

START_TIMEOUT = 30.0
LOOK_EVERY = 1.0  # seconds between looks into the books of an agent that has some, while a turn runs
QUIET = 0.3  # seconds without an update after which a replay is over

Reply = RpcResult | RpcError


async def open_session(
    argv: Sequence[str],
    launch: Launch,
    listen: Listen,
    ask: Ask,
    patience: float = START_TIMEOUT,
    quirks: Quirks = PLAIN,
) -> "AcpSession":
    """Start the agent's program and open its conversation: the one to resume if it knows it, or a new one.

    Whether it was resumed shows in `ref`. When it raises, nothing of the agent is left running.
    """
    if launch.resume and quirks.before_resume:
        await asyncio.to_thread(quirks.before_resume, launch)
    session = AcpSession(launch, listen, ask, quirks)
    await session.start(argv)
    try:
        async with asyncio.timeout(patience):
            await session.open()
    except TimeoutError as error:
        evidence = session.child.evidence()
        await session.end(gentle=False)
        raise AgentFault(f"the agent did not start within {patience:g} s{evidence}", Failure.SILENT) from error
    except BaseException:
        await session.end(gentle=False)
        raise
    return session


class AcpSession:
    child: Child

    def __init__(self, launch: Launch, listen: Listen, ask: Ask, quirks: Quirks = PLAIN) -> None:
        self._launch = launch
        self._listen = listen
        self._quirks = quirks
        self._books = quirks.books(launch) if quirks.books else None
        self._reading = Reading(quirks)
        self._replies: Awaited[Reply] = Awaited()
        self._questions = Questions(ask)
        self._heard = 0  # updates so far
        self._attempt = 0  # the retry that was told of last
        self._open = False
        self._turn: asyncio.Future[Reply] | None = None  # until the agent has answered the last prompt
        self._cancelled = False
        self._ref = ""
        self._preface = launch.instructions  # goes ahead of the first prompt of a new conversation

    @property
    def ref(self) -> str:
        return self._ref

    async def start(self, argv: Sequence[str]) -> None:
        launch = self._launch
        if self._books:
            argv = (*argv, *self._books.arguments)
            launch = replace(launch, env={**launch.env, **self._books.env})
        self.child = await Child.start(argv, launch, self._listen, self._hear)

    async def open(self) -> None:
        abilities: dict[str, Any] = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        if self._quirks.hello:
            abilities["_meta"] = self._quirks.hello
        hello = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": abilities,
            "clientInfo": {"name": "remuda", "title": "Remuda", "version": __version__},
        }
        can = welcome(self._result_of(await self._call("initialize", hello)))
        for method in openings(can, self._launch, self._quirks):
            reply = await self._call(method, self._session_params(method, can))
            if isinstance(reply, RpcResult):
                return await self._opened_by(method, opened(reply.result))
            # A conversation that the agent has forgotten is no reason to die: the last way begins a new one.
        self._result_of(reply)
        return None

    async def prompt(self, text: str) -> TurnResult:
        if self._turn:
            raise Conflict("a turn is running in this session; wait for its end or cancel it")
        texts = [self._preface, text] if self._preface else [text]
        self._preface = ""
        blocks = [{"type": "text", "text": each} for each in texts]
        self._cancelled = False
        self._reading.begin_turn()
        try:
            self._turn = turn = self._request("session/prompt", {"sessionId": self._ref, "prompt": blocks})
            turn.add_done_callback(self._rest)
            reply = await self._attended(turn)
            return self._turn_result(reply, await self._balance())
        except RemudaError:
            self._report(self._reading.settle())
            raise

    async def cancel(self) -> None:
        if self._turn:
            self._cancelled = True
            self.child.send(notice("session/cancel", {"sessionId": self._ref}))
            for sender in self._questions.withdraw_all():  # the protocol wants an answer to each all the same
                self.child.send(answer(sender, CANCELLED))

    async def end(self, *, gentle: bool) -> Ended:
        return await self.child.end(gentle=gentle, cancel=self._stop_turn)

    async def _stop_turn(self) -> None:
        if self._turn:
            await self.cancel()
            await asyncio.wait({self._turn})

    def _rest(self, turn: "asyncio.Future[Reply]") -> None:
        self._turn = None
        self._questions.withdraw_all()
        if not turn.cancelled():
            turn.exception()  # it is told to who waits, if anybody still does

    async def gone(self) -> Ended:
        return await self.child.gone()

    def _session_params(self, method: str, can: Welcome) -> dict[str, Any]:
        servers = tool_servers(self._launch.mcp_servers, can)
        params: dict[str, Any] = {"cwd": str(self._launch.cwd), "mcpServers": servers}
        return params if method == "session/new" else {**params, "sessionId": self._launch.resume}

    async def _opened_by(self, method: str, said: Opened) -> None:
        goes_on = method in ("session/resume", "session/load")
        self._ref = self._launch.resume if goes_on else said.session_id
        if not self._ref:
            raise AgentFault("the agent opened a session without an id, so nobody could speak to it", Failure.MALFORMED)
        if method == "session/load" and self._quirks.replays_late:
            await self._quiet()
        self._open = True
        self._reading.tally.model = said.model
        if method != "session/new":
            self._preface = ""  # the conversation has it already
            self._reading.resumed()
            if self._books:
                self._reading.booked((await self._books.page(self._ref, frozenset())).calls, count=False)
        await self._choose_mode(said)
        await self._choose_model(said)

    async def _quiet(self) -> None:
        """Wait until nothing more is told. What comes before is history, and must not pass for what it says next."""
        heard = -1
        while heard != self._heard:
            heard = self._heard
            await asyncio.sleep(QUIET)

    async def _choose_mode(self, said: Opened) -> None:
        """Have it ask before it uses a tool, unless it was started to ask nothing."""
        bypass = dict(self._launch.options).get("permissions") == "bypass"
        mode = self._quirks.bypass_mode if bypass else self._quirks.ask_mode
        if mode and mode != said.mode:
            self._result_of(
                await self._call("session/set_mode", {"sessionId": self._ref, "modeId": mode}),
                f"the agent would not go into its mode {mode!r}",
            )

    async def _choose_model(self, said: Opened) -> None:
        model = self._launch.model
        if not model or model == said.model:
            return
        choice = said.choice_of_model(self._ref, model)
        if choice is None:
            raise AgentFault(
                f"{self._launch.backend} does not let others choose its model; set {model!r} in its own settings",
                Failure.REFUSED,
            )
        self._result_of(await self._call(*choice), f"the agent would not take the model {model!r}")
        self._reading.tally.model = model

    async def _attended(self, turn: "asyncio.Future[Reply]") -> Reply:
        """Wait for the answer; meanwhile look into the agent's books, if it has some, for what it does not say.

        Whoever waits may leave; the agent is in its turn all the same, until it answers.
        """
        if self._books is None:
            return await asyncio.shield(turn)
        heard = self._heard
        while not (await asyncio.wait({turn}, timeout=LOOK_EVERY))[0]:
            if heard == self._heard:
                await self._look_for_retry()
            else:
                await self._balance()
            heard = self._heard
        return turn.result()

    async def _look_for_retry(self) -> None:
        retry = await self._books.retry(self._ref) if self._books else None
        if retry and retry.attempt != self._attempt:
            self._listen(retry)
        self._attempt = retry.attempt if retry else 0

    async def _balance(self) -> Page:
        """Count what stands in the agent's books and was not counted yet."""
        if self._books is None:
            return Page()
        page = await self._books.page(self._ref, self._reading.tally.kept)
        self._report(self._reading.booked(page.calls))
        return page

    def _turn_result(self, reply: Reply, page: Page) -> TurnResult:
        if isinstance(reply, RpcError):
            self._report(self._reading.settle())
            return _better_known(self._reading.failed(reply, cancelled=self._cancelled), page)
        result, calls = self._reading.end_turn(reply.result, cancelled=self._cancelled)
        self._report(calls)
        return _better_known(result, page)

    async def _call(self, method: str, params: Mapping[str, Any]) -> Reply:
        return await self._request(method, params)

    def _request(self, method: str, params: Mapping[str, Any]) -> "asyncio.Future[Reply]":
        def send(number: int) -> None:
            shown = request(number, method, without_secrets(params)) if "mcpServers" in params else ""
            self.child.send(request(number, method, params), shown=shown)

        return self._replies.send(send)

    def _result_of(self, reply: Reply, why: str = "the agent would not start a session") -> Raw:
        if isinstance(reply, RpcError):
            kind = self._reading.failed(reply).failure
            raise AgentFault(f"{why}: {reply.message} (code {reply.code})", kind or Failure.CRASHED)
        return reply.result

    def _hear(self, heard: str | RemudaError) -> None:
        if isinstance(heard, RemudaError):
            self._break(heard)
        elif not self._replies.fault:  # after a fault the lines are only logged: what they belong to is uncertain
            try:
                self._take(decode(heard))
            except AgentFault as fault:
                if not self._has_exited():  # else one it left behind spoke, and its exit is the reason that counts
                    self._break(fault)

    def _has_exited(self) -> bool:
        child: Child | None = getattr(self, "child", None)  # it may speak before we were told that it has started
        return child is not None and child.exited

    def _take(self, message: Message) -> None:
        match message:
            case RpcResult(id=int(number)) | RpcError(id=int(number)):
                self._replies.resolve(number, message)
            case Request(id=sender, method="session/request_permission", params=params):
                self._report(self._reading.asked(params))
                self._ask(sender, params)
            case Request(id=sender, method=method):
                self.child.send(failure(sender, METHOD_NOT_FOUND, f"Remuda does not offer {method}"))
            case Notice(method="session/update" | self._quirks.notices, params=params):
                self._heard += 1
                if self._open:
                    self._report(self._reading.update(params))
                else:
                    self._reading.replay(params)

    def _ask(self, sender: Id, params: Raw) -> None:
        asked = permission_asked(sender, params)
        asked = replace(asked, tool=self._reading.name_of(asked.id) or asked.tool)
        self._questions.put(sender, asked, lambda it: self.child.send(answer(sender, permission(params, it.allow))))

    def _report(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._listen(update)

    def _break(self, fault: RemudaError) -> None:
        """Nothing more can be understood. Whoever waits, now or later, learns why."""
        self._replies.fail(fault)
        self._questions.withdraw_all()


def _better_known(result: TurnResult, page: Page) -> TurnResult:
    """The books tell a failure's cause where the protocol only tells that there was one."""
    if result.outcome is Outcome.COMPLETED or result.failure is Failure.CANCELLED or page.cause is None:
        return result
    error = result.error if page.error in result.error else page.error
    return replace(result, error=error, failure=page.cause.failure, retry_after=page.cause.retry_after)
