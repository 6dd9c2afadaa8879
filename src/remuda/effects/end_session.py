"""End the process that runs an agent, and all of its children."""

from remuda.domain.commands import Report, ReportSessionEnded
from remuda.domain.effects import EndSession
from remuda.domain.errors import EffectFailed
from remuda.effects.live import describe
from remuda.effects.world import World


async def end_session(world: World, effect: EndSession) -> Report:
    live = world.live.get(effect.agent)
    if live is None or live.epoch != effect.epoch:
        return ReportSessionEnded(effect.agent, effect.epoch, "it was not running")
    ended = await live.end(gentle=effect.gentle)
    if ended.left:  # it is tried again: what is not gone must not be called so
        raise EffectFailed(f"session {effect.epoch} of {effect.agent} {ended.detail}")
    world.live.pop(effect.agent, None)
    return ReportSessionEnded(effect.agent, effect.epoch, describe(ended), ended.returncode)
