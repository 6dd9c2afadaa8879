"""Give an agent a message and see the turn through."""

from remuda.domain.commands import Report, ReportTurnEnded
from remuda.domain.effects import RunTurn
from remuda.domain.errors import AgentFault, EffectFailed
from remuda.domain.state import Message, Sender
from remuda.effects.world import World

AGAIN = (
    "[remuda] This message was given to you before, but that turn was cut off. "
    "Some of the work may be done already: look before you do it again.\n\n"
)


async def run_turn(world: World, effect: RunTurn) -> Report | None:
    live = world.live.get(effect.agent)
    if live is None or live.epoch != effect.epoch or live.session is None:
        raise EffectFailed(f"session {effect.epoch} of {effect.agent} is not running here")
    async with live.in_turn:
        text = prompt_text(effect.message)
        live.turn = effect.turn
        live.say("prompt", effect.message.text, name=effect.message.author)
        try:
            result = await live.session.prompt(text)
        except AgentFault as fault:
            # The process is dead, or talks nonsense and soon will be. Whoever watches it reports its end, once.
            live.fault = str(fault)
            await live.session.end(gentle=False)
            return None
        finally:
            await live.end_turn()
    return ReportTurnEnded(effect.agent, effect.epoch, effect.turn, result.outcome, result.stop_reason, result.error)


def prompt_text(message: Message) -> str:
    """What the agent reads. Mail from others says who wrote it; a user's words come as they are."""
    text = message.text
    if message.sender is not Sender.USER:
        text = f"[from {message.author}] {text}"
    return AGAIN + text if message.attempts else text
