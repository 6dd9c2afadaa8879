"""Start the process that runs an agent."""

import asyncio
import secrets

from remuda.agents import Launch
from remuda.domain.commands import Report, ReportSessionStarted
from remuda.domain.effects import StartSession
from remuda.domain.errors import EffectFailed
from remuda.effects.bodies import begin
from remuda.effects.live import Live
from remuda.effects.questions import Questions
from remuda.effects.steps import Steps
from remuda.effects.world import World
from remuda.git.commit import identity
from remuda.store.output import OutputRing
from remuda.store.transcript import Transcript, session_path


async def start_session(world: World, effect: StartSession) -> Report:
    before = world.live.get(effect.agent)
    if before is not None:
        # Either an older session that nobody ended, or this one from a try whose report was lost. One agent has one
        # process, and to start afresh is always safe: nothing was said in it yet.
        ended = await before.end(gentle=False)
        if ended.left:  # it is tried again: until that one is gone there is no place for another
            raise EffectFailed(f"session {before.epoch} of {effect.agent} is in the way: it {ended.detail}")
        world.forget(before)
    backend = world.backend(effect.backend)
    await world.free(effect.folder, effect.agent)
    path = session_path(world.transcripts, effect.agent, effect.epoch)
    transcript = Transcript(path, OutputRing(world.output_lines))
    live = Live(effect.agent, effect.epoch, transcript=transcript, tell=world.tell, clock=world.clock)
    live.token = f"{effect.agent}.{secrets.token_urlsafe(24)}"
    folder = world.root / effect.folder
    live.folder = effect.folder
    live.steps = Steps(folder, world.tell)
    live.questions = Questions(effect.agent, world.policy(effect.role), [str(folder)], live.put_question)
    loan = world.loan(effect, live.token)
    live.metered = loan.metered
    who = await asyncio.to_thread(identity, folder) if effect.folder else {}  # so that it can commit in its worktree
    launch = Launch(
        agent=effect.agent,
        epoch=effect.epoch,
        backend=effect.backend,
        cwd=folder,
        mark=f"{world.mark}/{effect.agent}/{effect.epoch}",
        env={**who, **world.environment(effect.agent, live.token), **loan.env},
        model=effect.model,
        instructions="\n\n".join(filter(None, (loan.instructions, effect.instructions))),
        resume=effect.resumes,
        mcp_servers=loan.mcp_servers,
        options=(*effect.options, *loan.options),  # what is lent counts: it is how a session is measured and bounded
        sandbox=world.sandbox(effect.role),
    )
    world.live[effect.agent] = live  # from now on its token opens: programs call their tools before they say hello
    finding = asyncio.ensure_future(_find(world, effect))  # while the program comes up
    try:
        session = await backend(launch, live.listen, live.questions.ask)
    except BaseException:
        finding.cancel()
        world.forget(live)
        live.close()
        raise
    live.watch(session, world.forget)
    return ReportSessionStarted(effect.agent, effect.epoch, session.ref, loan.metered, await finding)


async def _find(world: World, effect: StartSession) -> str:
    """What the agent finds where it is to work. It is kept before its first turn, for its body."""
    return await begin(world.yard, world.places, effect.folder, effect.agent) if effect.first else ""
