"""Puts a runtime together. The only file that names concrete adapters."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from remuda.agents import catalog, orphans, process
from remuda.agents.catalog import Custom, Row
from remuda.domain.commands import Command, Report, StartRuntime, StopRuntime
from remuda.domain.errors import Invalid, Refused
from remuda.domain.state import State
from remuda.domain.task import Staff
from remuda.effects import perform
from remuda.effects.turn_records import TurnRecords
from remuda.effects.world import World
from remuda.records.keeping import OFF
from remuda.runtime.batch import Reply
from remuda.runtime.config import RoleSettings, Settings, load_settings
from remuda.runtime.hands import Hands
from remuda.runtime.ids import new_id
from remuda.runtime.loop import Loop, Watch
from remuda.runtime.place import Hold, Place, check_log, find_place, make_place
from remuda.runtime.runtime import Runtime, environment, policy, sandbox
from remuda.runtime.upkeep import upkeep
from remuda.store import Store
from remuda.store.sqlite import SqliteStore
from remuda.watch.briefing import briefing
from remuda.watch.budget import budget, trigger
from remuda.watch.changeset import changeset
from remuda.watch.coordinator import Rules, coordinator
from remuda.watch.gang import gang
from remuda.watch.idle import idle
from remuda.watch.obituary import obituary
from remuda.watch.question import question
from remuda.watch.spin import spin
from remuda.watch.stall import stall
from remuda.watch.verdict import Patience, verdict

log = logging.getLogger("remuda")

WATCHES = (obituary, budget, trigger, question, briefing)


# What is served to agents beside the loop (tools, a meter), from before the first session starts until after the last.
Beside = Callable[[Runtime], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def open_runtime(folder: Path, beside: Sequence[Beside] = ()) -> AsyncIterator[Runtime]:
    """The runtime of the project that a folder belongs to, until the block is left. Conflict when it has one."""
    place = make_place(find_place(folder).root)
    with Hold(place), orphans.adopting():
        swept = await asyncio.to_thread(process.sweep, f"{place.mark}/")
        if swept:
            log.warning("ended %d processes that an earlier runtime left behind", len(swept))
        check_log(place)
        store = SqliteStore(place.database)
        try:
            runtime = assemble(place, store, await store.restore())
            if runtime.world.records is not None:
                runtime.world.records.start()
            async with AsyncExitStack() as stack:
                for each in beside:
                    await stack.enter_async_context(each(runtime))
                instance = new_id()
                await runtime.submit(StartRuntime(instance))
                runtime.hands.owe(runtime.loop.state, runtime.loop.state)
                keeping_room = asyncio.ensure_future(upkeep(runtime, runtime.settings.bodies.room))
                try:
                    yield runtime
                finally:
                    keeping_room.cancel()
                    await _stop(runtime, instance)
        finally:
            await store.close()


def rows(settings: Settings) -> Mapping[str, Row]:
    """Every program that can run an agent in this project: those we know, and the user's own."""
    for name, own in settings.agents.items():
        if not own.command and name not in catalog.CATALOG:
            raise Invalid(f"the setting agents.{name} needs a command: Remuda knows no program of that name")
    return catalog.with_custom({name: Custom(own.command, own.env, own.title) for name, own in settings.agents.items()})


def assemble(place: Place, store: Store, state: State) -> Runtime:
    """Wire the parts together and set the loop going."""
    settings = load_settings(place.settings)
    backend = catalog.backends(rows(settings))

    def submit(command: Command) -> Reply:
        return loop.submit(command)

    def tell(report: Report) -> None:
        submit(report).add_done_callback(_note_failure)

    world = World(
        root=place.root,
        transcripts=place.transcripts,
        mark=place.mark,
        backend=backend,
        tell=tell,
        clock=time.time,
        environment=environment(place),
        policy=policy(place, settings),
        sandbox=sandbox(place, settings),
        silence=settings.turns.silence_seconds,
        output_lines=settings.output.lines,
        work=settings.work,
        records=turn_records(place, settings),
    )
    hands = Hands(lambda effect: perform(world, effect), submit)
    loop = Loop(store, state, owe=hands.owe, clock=time.time, watches=watches(settings))
    running = asyncio.ensure_future(loop.run())
    return Runtime(place, settings, store, loop, hands, world, backend, running)


def watches(settings: Settings) -> tuple[Watch, ...]:
    tasks, every = settings.tasks, (*WATCHES, *_notice(settings))
    if tasks.coordinator == "none":
        return every
    routes = tuple(each.route() for each in settings.routing)
    budget = settings.budget.limits()
    rules = Rules(tasks.review == "other", routes, Staff(tasks.workers), settings.project.backend, budget)
    return (*every, coordinator(rules))


def _notice(settings: Settings) -> tuple[Watch, ...]:
    """What stops agents, asks what is to become of them, and lets go of those that are done."""
    said = settings.watch

    def patience(role: str) -> Patience:
        return said.patience(settings.roles.get(role, RoleSettings()).verdict)

    return (
        *((spin(said.limits),) if said.spin.enabled else ()),
        stall(said.stall.silences),
        changeset(said.wrong),
        gang(said.wayward),
        verdict(patience),
        *((idle,) if said.idle else ()),
    )


def turn_records(place: Place, settings: Settings) -> TurnRecords | None:
    turns = settings.turns
    if turns.records == OFF:
        return None
    key = place.root / Path(turns.signing_key).expanduser() if turns.signing_key else None
    return TurnRecords(place.root, place.mark, turns.keeping(), turns.checks(), key, os.getpid())


def _note_failure(reply: Reply) -> None:
    if not reply.cancelled() and reply.exception() is not None:
        log.info("a report was not taken: %s", reply.exception())


async def _stop(runtime: Runtime, instance: str) -> None:
    """End every process first, then say so in the log: a clean stop is known from a death by its last event."""
    await runtime.hands.close()
    await runtime.world.close()
    if not runtime.running.done():
        await runtime.submit(StopRuntime(instance))
        await runtime.store.save_snapshot(runtime.loop.state)
    runtime.loop.stop(Refused("the runtime is stopping; `remuda up` starts it again"))
    await asyncio.wait({runtime.running})
