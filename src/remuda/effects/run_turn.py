"""Give an agent a message and see the turn through."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from remuda.agents import Session, TurnResult
from remuda.agents.activity import Activity, activity, busy
from remuda.domain.commands import Report, ReportTurnEnded
from remuda.domain.effects import RunTurn
from remuda.domain.errors import AgentFault, EffectFailed
from remuda.domain.failure import Failure
from remuda.domain.state import Message, Outcome, Sender
from remuda.effects.live import Live
from remuda.effects.turn_records import NOT_RECORDED, record
from remuda.effects.world import World

AGAIN = (
    "[remuda] This message was given to you before, but that turn was cut off. "
    "Some of the work may be done already: look before you do it again.\n\n"
)


async def run_turn(world: World, effect: RunTurn) -> Report | None:
    live = world.live.get(effect.agent)
    if live is None or live.epoch != effect.epoch or live.session is None:
        raise EffectFailed(f"session {effect.epoch} of {effect.agent} is not running here")
    await world.free(live.folder, effect.agent)
    async with live.in_turn:
        live.begin_turn(effect.turn)
        live.say("prompt", effect.message.text, name=effect.message.author)
        try:
            result = await _recorded(world, live, live.session, effect)
        except AgentFault as fault:
            # The process is dead, or silent, or talks nonsense. Whoever watches it reports its end, once.
            live.fault = str(fault), fault.failure
            await live.session.end(gentle=False)
            return None
        finally:
            live.recorder = None
            await live.end_turn()
        live.leave_no_question()
    return ReportTurnEnded(
        effect.agent,
        effect.epoch,
        effect.turn,
        result.outcome,
        result.stop_reason,
        result.error,
        result.failure,
        result.retry_after,
    )


async def _recorded(world: World, live: Live, session: Session, effect: RunTurn) -> TurnResult:
    """The turn, with what is written down before and after it."""
    try:
        recording = await record(world.records, effect, world.root / live.folder)
    except EffectFailed as error:
        return TurnResult(Outcome.FAILED, NOT_RECORDED, error.message)

    async def prompt(text: str) -> TurnResult:
        look = partial(asyncio.to_thread, activity, f"{world.mark}/{effect.agent}/{effect.epoch}")
        return await _until_silent(live, session.prompt(text), world.silence, look)

    if recording is None:
        return await prompt(prompt_text(effect.message))
    live.recorder = recording.hear
    try:
        result, checks = await recording.check(await prompt(prompt_text(effect.message)), prompt)
    except AgentFault as fault:
        await recording.end("failed", str(fault))
        raise
    except asyncio.CancelledError:
        recording.cut("the turn was ended from outside")
        raise
    await recording.end("completed" if result.outcome is Outcome.COMPLETED else "failed", result.error, **checks)
    return result


async def _until_silent(
    live: Live, prompting: Coroutine[Any, Any, TurnResult], longest: float, look: Callable[[], Awaitable[Activity]]
) -> TurnResult:
    """The turn's result, or a fault when the agent has given no sign of life for too long: it has said nothing, and in
    the second half of that time its processes have done nothing worth the name."""
    prompt = asyncio.ensure_future(prompting)
    now, half = asyncio.get_running_loop().time, longest / 2
    before: Activity | None = None  # at half time
    try:
        while not prompt.done():
            quiet = now() - live.heard_at
            if quiet < half or live.waits:
                before, wait = None, half - quiet if quiet < half else half
            elif before is None:
                before, wait = await look(), longest - quiet
            elif quiet < longest:
                wait = longest - quiet
            elif busy(before, await look(), half):
                live.busy()
                continue
            else:
                raise AgentFault(f"it has said and done nothing for {longest:g} s{live.evidence()}", Failure.SILENT)
            await asyncio.wait({prompt}, timeout=wait)
        return prompt.result()
    finally:
        prompt.cancel()


def prompt_text(message: Message) -> str:
    """What the agent reads. Mail from others says who wrote it; a user's words come as they are."""
    text = message.text
    if message.sender is not Sender.USER:
        text = f"[from {message.author}] {text}"
    return AGAIN + text if message.attempts else text
