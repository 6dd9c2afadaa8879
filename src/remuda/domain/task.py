"""A task: a piece of work, who has it, and how far it has come.

What was asked for stands in its `Brief`, which people may edit; everything else is what came of it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from remuda.domain.lifecycle import TaskStatus, Work


class Kind(StrEnum):
    TASK = "task"
    EPIC = "epic"  # made of other tasks; it is nobody's own work, and is done when they are


class Refusal(StrEnum):
    """Why a merge did not come about, for the worker to set right."""

    CONFLICT = "conflict"  # what was merged before it changed the same lines
    ACCEPTANCE = "acceptance"  # the acceptance commands fail on the merged result
    MOVED = "moved"  # the branch is no longer at the commit that was checked and approved


@dataclass(frozen=True, slots=True)
class Brief:
    """What is asked for."""

    title: str
    description: str = ""
    steps: tuple[str, ...] = ()  # in order
    needs: tuple[str, ...] = ()  # tasks that must be done before
    epic: str = ""  # the task that it is a part of
    priority: int = 2  # 0 is the most urgent, 4 the least
    labels: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # files it is about, as patterns: for choosing who gets it
    accept: tuple[str, ...] = ()  # commands that must succeed before it can be done
    target: str = ""  # the branch that it is to be merged into; empty: as the settings say


@dataclass(frozen=True, slots=True)
class NewTask:
    """One of several that are added together. Others of them may name it in `needs` and `epic` by its key."""

    brief: Brief
    kind: Kind = Kind.TASK
    id: str = ""  # empty: the next free one
    key: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    at: float
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    reviewer: str
    approved: bool
    comments: str
    commit: str  # that it is about


@dataclass(frozen=True, slots=True)
class Check:
    """What came of the acceptance commands, run by the runtime and not by the agent."""

    ok: bool
    commit: str  # that was checked
    evidence: str  # the file with the whole output, from the project's root
    tail: str  # the last of the output, or why nothing was run
    tree: str = ""  # what it holds, as git names it
    files: tuple[str, ...] = ()  # that differ from where it started


@dataclass(frozen=True, slots=True)
class Merge:
    """What came of an approved task: the commit as it is now in the target, and how a person gets at it."""

    commit: str
    target: str
    next_step: str


class Task(NamedTuple):
    id: str
    kind: Kind
    brief: Brief
    created_at: float
    changed_at: float
    by: str = ""  # who asked for it
    status: TaskStatus = TaskStatus.OPEN
    why: str = ""  # the reason of the present status
    holder: str = ""  # the one agent that works on it
    reviewer: str = ""  # the one agent that reviews it
    words: str = ""  # what whoever assigned it had to say
    authors: tuple[str, ...] = ()  # who has reported it complete: none of them may review it
    steps_done: tuple[int, ...] = ()  # numbers of its steps, from 1
    notes: tuple[Note, ...] = ()
    work: Work = Work.NONE
    attempt: int = 0  # counts what was asked of the world; a report of another one is not applied
    branch: str = ""
    base: str = ""  # the branch its own starts from; empty: the target
    folder: str = ""  # of its worktree, from the project's root; empty: there is none yet
    summary: str = ""  # what its holder said when it reported it complete
    check: Check | None = None  # of the last report
    verdict: Verdict | None = None  # on the commit of the last check
    message: str = ""  # for the commit that merges it
    merge: Merge | None = None
    failure: str = ""  # how its last check failed, without what changes by itself
    alike: int = 0  # checks in a row that failed so
    trees: tuple[str, ...] = ()  # that were checked and failed, the last few
    conflicts: int = 0  # merges that came to one
    setbacks: int = 0  # failed checks, denials, refused merges and holders that gave up, since it was last reopened
    kept: str = ""  # why its worktree is still there though it is finished
    ended_at: float = 0.0


def may_review(name: str, task: Task) -> bool:
    """Nobody reviews their own work."""
    return name != task.holder and name not in task.authors


@dataclass(frozen=True, slots=True)
class Staff:
    """How many workers there should be while there is work, and what runs those that are still to be spawned."""

    workers: int = 0  # 0: nobody is spawned for the work
    backend: str = ""
    model: str = ""
    reviewed: bool | None = None  # whether somebody else reviews before a merge; None: as the settings say


BRANCHES = "remuda/"


def branch_of(task: str) -> str:
    return f"{BRANCHES}{task}"
