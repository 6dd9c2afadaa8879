"""Performers of work in a real repository, without a runtime around them."""

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.git_kit import commit, make_repository, sh
from remuda.agents import Backend
from remuda.domain.commands import Report
from remuda.domain.effects import MergeTask, PrepareWorktree, RemoveWorktree, RunAcceptance
from remuda.domain.permission import Policy
from remuda.effects.merge_task import merge_task
from remuda.effects.prepare_worktree import prepare_worktree
from remuda.effects.remove_worktree import remove_worktree
from remuda.effects.run_acceptance import run_acceptance
from remuda.effects.work import WorkRules
from remuda.effects.world import World


def world_in(root: Path, **rules: Any) -> World:
    def no_backend(_: str) -> Backend:
        raise AssertionError("no agent runs here")

    return World(
        root=root,
        transcripts=root / ".remuda" / "transcripts",
        mark=uuid.uuid4().hex[:12],
        backend=no_backend,
        tell=lambda _: None,
        clock=lambda: 0.0,
        environment=lambda _agent, _token: {},
        policy=lambda _: Policy(),
        sandbox=lambda _: None,
        work=WorkRules(**rules),
    )


@dataclass
class Shop:
    """A repository with workers at work in it."""

    root: Path
    rules: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.root / ".git").exists():
            make_repository(self.root)
        self.world = world_in(self.root, **self.rules)

    def path(self, task: str) -> Path:
        return self.root / ".remuda" / "worktrees" / task

    def tip(self, name: str) -> str:
        return sh(self.root, "git", "rev-parse", name)

    async def begin(self, task: str, *, base: str = "", target: str = "") -> Path:
        await prepare_worktree(self.world, PrepareWorktree(task, 1, f"remuda/{task}", base, target))
        return self.path(task)

    async def work(self, task: str, **files: str) -> str:
        """A commit of a worker's on the task's branch."""
        folder = self.path(task) if self.path(task).exists() else await self.begin(task)
        return commit(folder, f"Work on {task}", **files)

    async def check(self, task: str, *commands: str) -> Report:
        place = (f".remuda/worktrees/{task}", f"remuda/{task}", "", "")
        return await run_acceptance(self.world, RunAcceptance(task, 2, *place, commands, "A title"))

    def merging(self, task: str, *commands: str, target: str = "", tip: str = "") -> MergeTask:
        branch = f"remuda/{task}"
        place = (f".remuda/worktrees/{task}", branch)
        return MergeTask(task, 3, *place, tip or self.tip(branch), target, commands, f"Merge {task}\n\nTask: {task}")

    async def merge(self, task: str, *commands: str, target: str = "", tip: str = "") -> Report:
        return await merge_task(self.world, self.merging(task, *commands, target=target, tip=tip))

    async def clear(self, task: str, *, merged: bool = False) -> Report:
        effect = RemoveWorktree(task, 4, f".remuda/worktrees/{task}", f"remuda/{task}", merged)
        return await remove_worktree(self.world, effect)
