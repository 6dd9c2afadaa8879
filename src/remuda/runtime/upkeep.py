"""From time to time: bury the dead that have no room any more, as the settings say."""

import asyncio
import logging

from remuda.domain.errors import RemudaError
from remuda.domain.trigger_commands import BuryAgent
from remuda.runtime.runtime import Runtime
from remuda.watch.bodies import Room, to_bury

log = logging.getLogger("remuda.upkeep")

EVERY = 60.0  # seconds


async def upkeep(runtime: Runtime, room: Room) -> None:
    """Until it is cancelled. It knows nothing that the state does not: a crash loses nothing of it."""
    while room.limited:
        for name in to_bury(runtime.loop.shown.agents.values(), room, runtime.world.clock()):
            try:
                await runtime.submit(BuryAgent(name, "remuda"))
            except RemudaError as error:  # somebody was faster, or its process is still on its way out
                log.info("%s was not buried: %s", name, error)
        await asyncio.sleep(EVERY)
