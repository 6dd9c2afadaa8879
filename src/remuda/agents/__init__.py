"""SPEAKS: how Remuda talks to the programs that run an agent.

A backend starts one child process and gives back a `Session`. Everything a session learns from its
process leaves through one `listen` call, as an `Update`; everything the process wrote or was told, byte
for byte, leaves as a `Wire` update first, so that the transcript is complete even where we understood nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from remuda.domain.failure import Failure
from remuda.domain.state import Outcome, Usage


@dataclass(frozen=True, slots=True)
class Launch:
    """All that is needed to start one session of one agent, here or on another host."""

    agent: str
    epoch: int
    backend: str
    cwd: Path
    mark: str  # unique to this session; set in the child's environment so that strays can be found
    env: dict[str, str] = field(default_factory=dict)  # declared variables only; never the parent's whole environment
    model: str = ""
    instructions: str = ""
    resume: str = ""  # the backend's own id of the conversation to go on with; empty starts a new one
    fork: bool = False  # go on from it in a copy, and leave the original as it is
    mcp_servers: tuple["McpServer", ...] = ()
    sandbox: "Sandbox | None" = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Around the program: it may write in its working folder and in these, and nowhere else."""

    network: bool = True
    writable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class McpServer:
    """A tool server for the agent to use: a program to start, or an address to call."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    optional: bool = False  # left out where the agent's program cannot use it; any other must be had


@dataclass(frozen=True, slots=True)
class Wire:
    """One line as it crossed the pipe. `side` tells who wrote it."""

    side: Literal["agent", "remuda", "stderr"]
    line: str


@dataclass(frozen=True, slots=True)
class Text:
    """Part of what the agent says; chunks join to lines at the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the agent used. Sent when it starts and again, with the same id, when its status changes."""

    id: str
    name: str
    status: Literal["started", "completed", "failed"]
    arguments: str = ""  # JSON
    result: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Usage of one call to the model, in the session's own order: `number` counts from 1 in each session."""

    number: int
    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """The program's call to the model failed and it tries again by itself: no output for a while is no silence."""

    attempt: int
    failure: Failure
    detail: str = ""
    seconds: float = 0.0  # until it tries


Update = Wire | Text | Thought | ToolCall | ModelCall | Retry
Listen = Callable[[Update], None]


@dataclass(frozen=True, slots=True)
class TurnResult:
    outcome: Outcome  # COMPLETED or FAILED
    stop_reason: str
    error: str = ""
    failure: Failure | None = None
    retry_after: float | None = None  # seconds, where the model's service said so


@dataclass(frozen=True, slots=True)
class Ended:
    """The process is gone, and this is how: for `returncode` see subprocess (negative is a signal)."""

    returncode: int | None
    detail: str = ""  # one line for people
    stderr_tail: str = ""
    left: tuple[int, ...] = ()  # processes of it that would not die


class Session(Protocol):
    """One live conversation with one child process."""

    @property
    def ref(self) -> str:
        """The backend's id of the conversation, to resume by later."""

    async def prompt(self, text: str) -> TurnResult:
        """Send one prompt and wait for the end of the turn. Raises AgentFault when the process dies first."""

    async def cancel(self) -> None:
        """Ask the agent to stop its turn. Returns at once; `prompt` returns when it has."""

    async def end(self, *, gentle: bool) -> Ended:
        """End the whole process tree, at once or after asking first. Idempotent."""

    async def gone(self) -> Ended:
        """Wait until the process is gone, for whatever reason."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent wants to use a tool and asks first."""

    id: str  # unique within the session
    tool: str
    arguments: str = ""  # JSON
    paths: tuple[str, ...] = ()  # files it names, as far as the backend can tell
    title: str = ""  # in the agent's words


@dataclass(frozen=True, slots=True)
class Answered:
    allow: bool
    why: str = ""


# Whoever starts a session answers its questions. It may take hours; the turn waits.
Ask = Callable[[Asked], Awaitable[Answered]]

Backend = Callable[[Launch, Listen, Ask], Awaitable[Session]]
