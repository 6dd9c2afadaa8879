"""Wait until the model's service will serve the agent again."""

import asyncio

from remuda.domain.commands import Report, ReportRested
from remuda.domain.effects import Rest
from remuda.effects.world import World

LONGEST_SLEEP = 30.0  # then look at the clock again: it may have been set, or the machine may have slept


async def rest(world: World, effect: Rest) -> Report:
    while (left := effect.until - world.clock()) > 0:  # noqa: ASYNC110 - nobody could set an event: it is about time
        await asyncio.sleep(min(left, LONGEST_SLEEP))
    return ReportRested(effect.agent, effect.epoch)
