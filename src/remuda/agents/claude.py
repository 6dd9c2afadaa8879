"""A session with Claude Code in its own protocol: stream-json both ways, one process for the whole conversation."""

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import msgspec

from remuda.agents import Ask, Asked, Ended, Launch, Listen, TurnResult, Update
from remuda.agents.claude_codec import Reading
from remuda.agents.claude_wire import (
    ControlCancel,
    ControlRequest,
    ControlResponse,
    Known,
    Lifecycle,
    Reply,
    Result,
    System,
    control,
    decode,
    not_served,
    prompt,
    tool_answer,
)
from remuda.agents.endpoint import merged
from remuda.agents.exchange import Awaited, Questions, whom_to_ask
from remuda.agents.options import Option, options_of
from remuda.agents.process import Child
from remuda.agents.programs import Program, find
from remuda.agents.tool_servers import alias, claude_config, environment
from remuda.domain.errors import AgentFault, Conflict, Invalid, RemudaError
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome

START_TIMEOUT = 30.0
PROGRAM = Program("claude", "claude_agent_sdk", "_bundled/claude", "pip install claude-agent-sdk")
FORGOTTEN = "No conversation found"

OPTIONS: Mapping[str, Option] = {
    "permissions": Option(),  # ask, or bypass
    "base_url": Option(env="ANTHROPIC_BASE_URL"),
    "max_retries": Option(env="CLAUDE_CODE_MAX_RETRIES"),
    "permission_mode": Option(flag="--permission-mode"),
    "allowed_tools": Option(flag="--allowedTools"),
    "settings": Option(),  # JSON, or the path of a file of it
}

# Each of these would have the program do something that nobody sees or that no turn accounts for.
SWITCHES: Mapping[str, str] = {
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",  # of its own ten; Remuda tries again itself, and shows it
    "ENABLE_TOOL_SEARCH": "false",  # else the tools of tool servers stay hidden until they are searched for
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # else work goes on, and turns begin, after the turn's end
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # else a stream that was cut is asked for and paid for again
}
# Nobody sits at a terminal to fill in a form, worktrees are Remuda's, and turns begin with a message only.
NOT_OFFERED = "AskUserQuestion,EnterPlanMode,EnterWorktree,ExitWorktree,ScheduleWakeup"


async def open_session(launch: Launch, listen: Listen, ask: Ask, patience: float = START_TIMEOUT) -> "ClaudeSession":
    """Start the program with the conversation to go on with, or, if it has forgotten that, with a new one.

    Whether it was resumed shows in `ref`. When it raises, nothing of the agent is left running.
    """
    for resume in (launch.resume, "") if launch.resume else ("",):
        session = ClaudeSession(replace(launch, resume=resume), listen, ask)
        try:
            async with asyncio.timeout(patience):
                await session.open()
            return session
        except TimeoutError as error:
            raise AgentFault(f"claude did not start within {patience:g} s{await session.discard()}") from error
        except AgentFault:
            await session.discard()
            if not (resume and session.forgotten):
                raise
        except BaseException:
            await session.discard()
            raise
    raise AssertionError("the last attempt returns or raises")


class ClaudeSession:
    def __init__(self, launch: Launch, listen: Listen, ask: Ask) -> None:
        self.forgotten = False
        self._child: Child | None = None
        self._launch = launch
        self._listen = listen
        self._questions = Questions(whom_to_ask(launch.options, ask))
        self._replies: Awaited[Reply] = Awaited()
        self._reading = Reading(resumed=bool(launch.resume))
        self._goes_on = bool(launch.resume) and not launch.fork
        self._ref = launch.resume if self._goes_on else str(uuid.uuid4())
        self._turn: asyncio.Future[TurnResult] | None = None
        self._asked = ""  # the uuid of the prompt that runs

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def child(self) -> Child:
        assert self._child is not None, "the session was not opened"
        return self._child

    async def open(self) -> None:
        argv, env = command(self._launch, self._ref)
        self._child = await Child.start(argv, replace(self._launch, env=env), self._listen, self._hear)
        reply = await self._control("initialize")
        if reply.subtype != "success":
            raise AgentFault(f"claude would not start a session: {reply.error or 'it did not say why'}")

    async def prompt(self, text: str) -> TurnResult:
        if self._turn:
            raise Conflict("a turn is running in this session; wait for its end or cancel it")
        if self._replies.fault:
            raise self._replies.fault
        self._asked = str(uuid.uuid4())
        self._turn = asyncio.get_running_loop().create_future()
        try:
            self.child.send(prompt(text, self._asked))
            return await self._turn
        except RemudaError:
            self._report(self._reading.give_up())
            raise
        finally:
            self._turn = None
            self._asked = ""

    async def cancel(self) -> None:
        if self._turn and not self._replies.fault:
            self.child.send(control(0, "interrupt"))  # nobody waits for the reply: the turn's end is the answer

    async def end(self, *, gentle: bool) -> Ended:
        return await self.child.end(gentle=gentle)

    async def gone(self) -> Ended:
        return await self.child.gone()

    async def discard(self) -> str:
        """End a session that could not be opened; gives what the program had to say."""
        if self._child is None:
            return ""
        await self._child.end(gentle=False)
        return self._child.evidence()

    async def _control(self, subtype: str) -> Reply:
        return await self._replies.ask(lambda number: self.child.send(control(number, subtype)))

    def _hear(self, heard: str | RemudaError) -> None:
        if isinstance(heard, RemudaError):
            self._break(heard)
        elif not self._replies.fault:  # after a fault the lines are only logged: what they belong to is uncertain
            try:
                self._take(decode(heard))
            except AgentFault as fault:
                self._break(fault)

    def _take(self, line: Known | None) -> None:
        match line:
            case None:
                pass
            case Result():
                self._end_turn(line)
            case ControlRequest(request_id=key):
                self._answer(key, line)
            case ControlCancel(request_id=key):
                self._questions.withdraw(key)
            case ControlResponse(response=reply):
                if reply.request_id.isdecimal():
                    self._replies.resolve(int(reply.request_id), reply)
            case Lifecycle(command_uuid=self._asked, state="cancelled" | "discarded" | "refused"):
                self._finish(TurnResult(Outcome.FAILED, "cancelled", "the turn was cancelled", Failure.CANCELLED))
            case System(subtype="init", session_id=ref):
                self._meet(ref or self._ref)
            case _:
                self._report(self._reading.update(line))

    def _end_turn(self, result: Result) -> None:
        self.forgotten = any(FORGOTTEN in error for error in result.errors or ())
        turn, updates = self._reading.end_turn(result, time.time())
        self._report(updates)
        # A turn that the program began by itself has an origin. It was heard and counted; it answers nobody.
        if self._asked in (result.user_message_uuids or ()) or result.origin is None:
            self._finish(turn)

    def _finish(self, turn: TurnResult) -> None:
        self._questions.withdraw_all()
        if self._turn and not self._turn.done():
            self._turn.set_result(turn)

    def _answer(self, key: str, question: ControlRequest) -> None:
        if question.request.subtype != "can_use_tool":
            self.child.send(not_served(question))
            return
        self._questions.put(key, asked_of(question), lambda it: self.child.send(tool_answer(question, it)))

    def _meet(self, ref: str) -> None:
        """The program says at the start of each turn which conversation it is in."""
        if self._goes_on and ref != self._ref:
            raise AgentFault(f"claude was asked to go on with conversation {self._ref} and began {ref} instead")
        self._goes_on = False  # from now on it may begin a fresh one, as its own /clear does
        self._ref = ref

    def _report(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._listen(update)

    def _break(self, fault: RemudaError) -> None:
        self._replies.fail(fault)
        self._questions.withdraw_all()
        if self._turn and not self._turn.done():
            self._turn.set_exception(fault)


def command(launch: Launch, ref: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The program's arguments and its declared environment."""
    flags, declared = options_of("claude", OPTIONS, launch.options)
    env = {**SWITCHES, **environment(launch.mcp_servers, alias), **declared, **launch.env}
    argv = [find(PROGRAM, env), "-p", "--verbose", "--output-format", "stream-json", "--input-format", "stream-json"]
    argv += ["--include-partial-messages", "--permission-prompt-tool", "stdio", "--disallowedTools", NOT_OFFERED]
    argv += ["--resume", launch.resume] if launch.resume else []
    argv += ["--fork-session"] if launch.resume and launch.fork else []
    argv += ["--session-id", ref] if ref != launch.resume else []
    argv += ["--model", launch.model] if launch.model else []
    argv += [f"--append-system-prompt={launch.instructions}"] if launch.instructions else []
    if launch.mcp_servers:
        argv += ["--mcp-config", msgspec.json.encode(claude_config(launch.mcp_servers)).decode()]
    if settings := settings_of(launch.options):
        argv += ["--settings", settings]
    argv += ["--strict-mcp-config"]  # the user's own tool servers are not the agent's, unless they were declared
    return (*argv, *flags), env


def settings_of(options: Iterable[tuple[str, str]]) -> str:
    """The program takes its settings once. Given more than once they become one, and what is given later counts."""
    given = [value for name, value in options if name == "settings"]
    return reduce(merged, map(_json, given)) if len(given) > 1 else "".join(given)


def _json(settings: str) -> str:
    if settings.lstrip().startswith("{"):
        return settings
    try:
        return Path(settings).read_text()
    except OSError as error:
        raise Invalid(f"the settings {settings} cannot be read: {error.strerror}; give JSON or a file of it") from error


def asked_of(question: ControlRequest) -> Asked:
    asked = question.request
    named = _paths(bytes(asked.input))
    paths = (asked.blocked_path, *named) if asked.blocked_path and asked.blocked_path not in named else named
    return Asked(
        id=asked.tool_use_id or question.request_id,
        tool=asked.tool_name,
        arguments=bytes(asked.input).decode(errors="replace"),
        paths=tuple(path for path in paths if path),
        title=asked.description or "",
    )


def _paths(given: bytes) -> tuple[str, ...]:
    """Files that the tool's input names. What a shell command touches cannot be told from its text."""
    try:
        fields = msgspec.json.decode(given, type=dict[str, object])
    except msgspec.DecodeError:
        return ()
    keys = ("file_path", "notebook_path", "path")
    return tuple(str(fields[key]) for key in keys if isinstance(fields.get(key), str))
