"""Make the worktree of a task, and set it up."""

import asyncio
import logging

from remuda.domain.commands import Report
from remuda.domain.effects import PrepareWorktree
from remuda.domain.errors import Refused
from remuda.domain.task_commands import ReportWorktreeReady
from remuda.effects.acceptance import set_up
from remuda.effects.world import World
from remuda.git.merge import destination
from remuda.git.repository import commit_of, open_repository
from remuda.git.worktree import Worktree, mark_ready, prepare

log = logging.getLogger("remuda.worktrees")


async def prepare_worktree(world: World, effect: PrepareWorktree) -> Report:
    tree = await asyncio.to_thread(_prepare, world, effect)
    for note in tree.notes:
        log.warning("the worktree of %s: %s", effect.task, note)
    if not tree.ready:
        await set_up(world, f"{effect.task}/set-up-{effect.attempt}", tree.cwd)
        await asyncio.to_thread(mark_ready, tree)
    return ReportWorktreeReady(effect.task, effect.attempt, str(tree.cwd.relative_to(world.root)))


def _prepare(world: World, effect: PrepareWorktree) -> Worktree:
    repository = open_repository(world.root)
    if effect.base:
        start = commit_of(repository, f"refs/heads/{effect.base}")
        if not start:
            raise Refused(f"the branch {effect.base}, from which {effect.task} should start, is gone")
    else:
        start = destination(repository, world.work.mode, effect.target or world.work.target).tip
    return prepare(repository, effect.task, start)
