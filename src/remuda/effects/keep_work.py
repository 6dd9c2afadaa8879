"""Keep what an agent has left, now that it has no process."""

import asyncio
from pathlib import Path

from remuda.domain.commands import Report
from remuda.domain.effects import KeepWork
from remuda.domain.trigger_commands import ReportWorkKept
from remuda.effects.bodies import keep
from remuda.effects.world import World


async def keep_work(world: World, effect: KeepWork) -> Report:
    with world.places.being_kept(effect.begun.folder if effect.begun else ""):
        commit, note = await keep(world.yard, world.places, effect, world.clock())
    size = await asyncio.to_thread(_size, world.transcripts / effect.agent)
    return ReportWorkKept(effect.agent, effect.epoch, commit, note, size)


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.glob("*") if each.is_file())
