"""Wait for as long as a verdict may take."""

import asyncio

from remuda.domain.commands import Report
from remuda.domain.effects import AwaitVerdict
from remuda.domain.trigger_commands import ReportVerdictOverdue
from remuda.effects.rest import LONGEST_SLEEP
from remuda.effects.world import World


async def await_verdict(world: World, effect: AwaitVerdict) -> Report:
    while (left := effect.until - world.clock()) > 0:  # noqa: ASYNC110 - nobody could set an event: it is about time
        await asyncio.sleep(min(left, LONGEST_SLEEP))
    return ReportVerdictOverdue(effect.agent, effect.epoch, effect.until)
