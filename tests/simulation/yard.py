"""The world's part in tasks: worktrees, checks and merges that fail, take their time and are done twice; and workers
that report, review, deny, give up, take apart, or say nothing at all."""

from collections.abc import Awaitable, Callable, Iterator
from random import Random

from remuda.domain.commands import Command
from remuda.domain.effects import MergeTask, PrepareWorktree, RemoveWorktree, RunAcceptance, RunTurn, TaskEffect
from remuda.domain.errors import EffectFailed
from remuda.domain.lifecycle import Phase
from remuda.domain.task import Brief, NewTask, Refusal
from remuda.domain.task_commands import (
    DecomposeTask,
    EscalateTask,
    NoteToolUse,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportMerged,
    ReportMergeRefused,
    ReportReviewVerdict,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
    TaskReport,
)
from remuda.domain.tools import Tool
from simulation.disk import Disk

Chance = Callable[[float], bool]
Pass = Callable[[float], Awaitable[None]]
MOST_TASKS = 12


class Yard:
    def __init__(self, dice: Random, disk: Disk, merged: dict[str, str], chance: Chance, passing: Pass) -> None:
        self._dice = dice
        self._disk = disk
        self._merged = merged
        self._chance = chance
        self._passing = passing
        self._busy: set[str] = set()

    # --- what the hands ask for ---

    async def perform(self, effect: TaskEffect) -> TaskReport:
        task = self._disk.state.tasks.get(effect.task)
        assert task is not None, f"{effect} of a task that is not on the disk"
        assert task.attempt >= effect.attempt, f"{effect} of an attempt that is not on the disk"
        assert effect.task not in self._busy, f"two things at a time for {effect.task}: {effect}"
        self._busy.add(effect.task)
        try:
            await self._passing(self._dice.uniform(0, 3))
            if self._chance(0.08):
                raise EffectFailed("no disk")
            return await self._do(effect)
        finally:
            self._busy.discard(effect.task)

    async def _do(self, effect: TaskEffect) -> TaskReport:
        place = (effect.task, effect.attempt)
        match effect:
            case PrepareWorktree():
                return ReportWorktreeReady(*place, f"w/{effect.task}")
            case RunAcceptance():
                return ReportAcceptance(*place, not self._chance(0.2), f"c{effect.attempt}", "log", "red")
            case MergeTask():
                return await self._merge(effect)
            case RemoveWorktree():
                return ReportWorktreeRemoved(*place, "dirty" if self._chance(0.2) else "")

    async def _merge(self, effect: MergeTask) -> TaskReport:
        place = (effect.task, effect.attempt)
        if effect.task not in self._merged and self._chance(0.2):
            return ReportMergeRefused(*place, self._dice.choice(list(Refusal)), "log", "<<<<")
        # It has landed; who merges knows what has landed before, whatever becomes of the report.
        commit = self._merged.setdefault(effect.task, effect.commit)
        await self._passing(self._dice.uniform(0, 2))
        if self._chance(0.1):
            raise EffectFailed("the connection broke")
        return ReportMerged(*place, commit, "main")

    # --- what workers say ---

    def says(self, effect: RunTurn) -> Iterator[Command]:
        """At the end of a turn about a task, as far as the agent can know."""
        agent = self._disk.state.agents[effect.agent]
        place = (effect.agent, effect.epoch)
        if self._chance(0.15):
            return
        if self._chance(0.1):
            yield NoteToolUse(*place, Tool.POST_MESSAGE)
            return
        if agent.phase is Phase.REVIEWING:
            yield ReportReviewVerdict(*place, not self._chance(0.3), "see line 3")
        elif self._chance(0.06):
            yield EscalateTask(*place, "it cannot be done")
        elif self._chance(0.06) and len(self._disk.state.tasks) < MOST_TASKS:
            yield DecomposeTask(*place, (NewTask(Brief("half")), NewTask(Brief("the other half"))))
        else:
            yield ReportImplementationComplete(*place, "done")
        if self._chance(0.1):
            yield ReportImplementationComplete(*place, "done, I say")
