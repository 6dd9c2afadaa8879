"""How tasks are worked on, checked and merged in this project, and those that wait for their merge."""

import asyncio
from dataclasses import dataclass, field

from remuda.domain.effects import MergeTask
from remuda.domain.task_commands import TaskReport
from remuda.git.keeping import PRECIOUS
from remuda.git.merge import Mode
from remuda.git.rebase import History

SECONDS = 900.0
SETTINGS = "remuda.toml"  # has commands in it, so no agent may bring a change of it to be merged


@dataclass(frozen=True, slots=True)
class WorkRules:
    mode: Mode = "branch-only"
    history: History = "rebase"
    target: str = ""  # empty: the branch that the user is on
    seconds: float = SECONDS  # for each acceptance command
    env: tuple[str, ...] = ()  # names of variables that may pass to acceptance commands and set-up
    set_up: tuple[str, ...] = ()  # run in each new worktree
    set_up_seconds: float = SECONDS
    precious: tuple[str, ...] = PRECIOUS  # ignored files that keep a worktree


@dataclass(slots=True)
class Waiting:
    """A task that waits for its merge, until it has a report."""

    effect: MergeTask
    report: TaskReport | None = None


@dataclass(slots=True)
class MergeQueue:
    """In the order in which they came. Whoever holds the lock merges for all who wait; there is one merge at a time."""

    waiting: list[Waiting] = field(default_factory=list)
    one: asyncio.Lock = field(default_factory=asyncio.Lock)
