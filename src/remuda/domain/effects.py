"""What is owed to the world. Plain data with all that is needed to do it, here or on another host.

An effect may be performed more than once (a crash between doing and reporting); its `key` names the result, and
performers make sure that one key has one result.
"""

from dataclasses import dataclass
from typing import assert_never

from remuda.domain.body import Begun
from remuda.domain.state import Message


@dataclass(frozen=True, slots=True)
class StartSession:
    agent: str
    epoch: int
    backend: str
    role: str
    model: str
    instructions: str
    options: tuple[tuple[str, str], ...]
    resumes: str
    folder: str = ""  # where it works, from the project's root; empty: the root itself
    first: bool = True  # in this place: what it finds there must be known when it is gone


@dataclass(frozen=True, slots=True)
class RunTurn:
    agent: str
    epoch: int
    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class EndSession:
    agent: str
    epoch: int
    gentle: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait, and say when it is over."""

    agent: str
    epoch: int
    until: float


@dataclass(frozen=True, slots=True)
class GiveAnswer:
    """Tell the session that asks what was decided."""

    agent: str
    epoch: int
    question_id: str
    asking: int
    allow: bool
    why: str


@dataclass(frozen=True, slots=True)
class PrepareWorktree:
    """A worktree on the task's branch. If both are there already they are taken as they are: work may be in them."""

    task: str
    attempt: int
    branch: str
    base: str  # the branch that a new one starts from; empty: the target
    target: str  # empty: as the settings say


@dataclass(frozen=True, slots=True)
class RunAcceptance:
    """Run the commands in the worktree, after seeing that the work is committed: what is not, is committed first. The
    commands are the user's own words."""

    task: str
    attempt: int
    folder: str
    branch: str
    base: str
    target: str
    commands: tuple[str, ...]
    title: str = ""  # of the commit, where the agent left work uncommitted


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merge this commit and no other: it is the one that was checked and approved."""

    task: str
    attempt: int
    folder: str
    branch: str
    commit: str
    target: str
    commands: tuple[str, ...]  # that must succeed on the merged result too
    message: str


@dataclass(frozen=True, slots=True)
class RemoveWorktree:
    """Remove it if nothing in it would be lost. `folder` is empty where it may never have been."""

    task: str
    attempt: int
    folder: str
    branch: str
    merged: bool = False  # then nobody needs the branch any more; else it stays


@dataclass(frozen=True, slots=True)
class AwaitVerdict:
    """Wait, and say when the time for a verdict is over."""

    agent: str
    epoch: int
    until: float


@dataclass(frozen=True, slots=True)
class KeepWork:
    """Keep what an agent without a process has made, as it is now: whatever comes later is not its own."""

    agent: str
    epoch: int  # of its last session
    begun: Begun | None  # None: it never began


@dataclass(frozen=True, slots=True)
class RemoveBody:
    """Remove what a buried agent has left: its transcripts and what was kept of its work. Its story is in the log."""

    agent: str
    epoch: int


AgentEffect = StartSession | RunTurn | EndSession | Rest | GiveAnswer | AwaitVerdict | KeepWork | RemoveBody
TaskEffect = PrepareWorktree | RunAcceptance | MergeTask | RemoveWorktree
Effect = AgentEffect | TaskEffect

Key = tuple[str, str, int, int | float | str]


def key(effect: Effect) -> Key:
    """To end a session at once is another thing than to end it gently: the one must be able to overtake the other."""
    match effect:
        case StartSession() | KeepWork() | RemoveBody():
            part: int | float | str = 0
        case RunTurn():
            part = effect.turn
        case EndSession():
            part = int(effect.gentle)
        case Rest() | AwaitVerdict():
            part = effect.until
        case GiveAnswer():
            part = f"{effect.question_id} {effect.asking}"
        case PrepareWorktree() | RunAcceptance() | MergeTask() | RemoveWorktree():
            return type(effect).__name__, effect.task, effect.attempt, 0
        case _:
            assert_never(effect)
    return type(effect).__name__, effect.agent, effect.epoch, part
