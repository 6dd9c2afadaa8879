"""Remove the worktree of a task that is over, if nothing in it would be lost."""

import asyncio

from remuda.domain.commands import Report
from remuda.domain.effects import RemoveWorktree
from remuda.domain.task_commands import ReportWorktreeRemoved
from remuda.effects.world import World
from remuda.git.keeping import Kept, remove
from remuda.git.repository import open_repository


async def remove_worktree(world: World, effect: RemoveWorktree) -> Report:
    repository = await asyncio.to_thread(open_repository, world.root)
    found = await asyncio.to_thread(remove, repository, effect.task, world.work.precious)
    kept = "; ".join(found.why) if isinstance(found, Kept) else ""
    return ReportWorktreeRemoved(effect.task, effect.attempt, kept)
