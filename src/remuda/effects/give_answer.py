"""Give a session the answer that it waits for."""

from remuda.domain.commands import Report, ReportAnswerGiven
from remuda.domain.effects import GiveAnswer
from remuda.effects.world import World


async def give_answer(world: World, effect: GiveAnswer) -> Report | None:
    live = world.live.get(effect.agent)
    if live is None or live.epoch != effect.epoch:
        return None  # the session that asked is gone; the next one asks again
    live.give_answer(effect.question_id, allow=effect.allow, why=effect.why)
    return ReportAnswerGiven(effect.agent, effect.epoch, effect.question_id, effect.asking)
