"""Remove the worktree of a task that is over, if nothing in it would be lost, and put its branch away once merged."""

import asyncio

from remuda.domain.commands import Report
from remuda.domain.effects import RemoveWorktree
from remuda.domain.task_commands import ReportWorktreeRemoved
from remuda.effects.world import World
from remuda.git.keeping import Kept, Removed, put_branch_away, remove
from remuda.git.repository import open_repository


async def remove_worktree(world: World, effect: RemoveWorktree) -> Report:
    repository = await asyncio.to_thread(open_repository, world.root)
    found = await asyncio.to_thread(remove, repository, effect.task, world.work.precious)
    if effect.merged and isinstance(found, Removed):
        await asyncio.to_thread(put_branch_away, repository, effect.task)
    kept = "; ".join(found.why) if isinstance(found, Kept) else ""
    return ReportWorktreeRemoved(effect.task, effect.attempt, kept)
