"""SPEAKS: how Remuda talks to the programs that run an agent.

A backend starts one child process and gives back a `Session`. Everything a session learns from its
process leaves through one `listen` call, as an `Update`; everything the process wrote or was told, byte
for byte, leaves as a `Wire` update first, so that the transcript is complete even where we understood nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

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
    options: tuple[tuple[str, str], ...] = ()


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


Update = Wire | Text | Thought | ToolCall | ModelCall
Listen = Callable[[Update], None]


@dataclass(frozen=True, slots=True)
class TurnResult:
    outcome: Outcome  # COMPLETED or FAILED
    stop_reason: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process is gone, and this is how: for `returncode` see subprocess (negative is a signal)."""

    returncode: int | None
    detail: str = ""  # one line for people
    stderr_tail: str = ""


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


Backend = Callable[[Launch, Listen], Awaitable[Session]]
