"""Remove what a buried agent has left: its transcripts, and what was kept of its work."""

import asyncio
import shutil
from pathlib import Path

from remuda.domain.commands import Report
from remuda.domain.effects import RemoveBody
from remuda.domain.trigger_commands import ReportBodyRemoved
from remuda.effects.bodies import forget
from remuda.effects.world import World


async def remove_body(world: World, effect: RemoveBody) -> Report:
    await asyncio.to_thread(forget, world.root, effect.agent)
    files = await asyncio.to_thread(_remove, world.transcripts / effect.agent)
    return ReportBodyRemoved(effect.agent, effect.epoch, files)


def _remove(folder: Path) -> int:
    if folder.is_symlink() or not folder.is_dir():  # it never said anything, or all of it is gone already
        return 0
    files = sum(each.is_file() for each in folder.rglob("*"))
    shutil.rmtree(folder)
    return files
