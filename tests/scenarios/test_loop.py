"""The loop: nothing is answered, shown or owed before it is durable; nothing kills it but a log that fails."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes import Clock, HeldStore, Owed, breathe, run, within
from remuda.domain.commands import Command, PauseAgent, ReapAgent, SendMessage, SpawnAgent, StartRuntime
from remuda.domain.errors import Conflict, Refused, RemudaError, StoreFailed, UnknownAgent
from remuda.domain.events import AgentSpawned, Event, MessageQueued, StatusChanged
from remuda.domain.state import Sender, State
from remuda.runtime import loop as loop_module
from remuda.runtime.batch import Accepted, Reply
from remuda.runtime.loop import Loop, Watch
from remuda.store import Store
from remuda.store.memory import MemoryStore
from remuda.store.sqlite import SqliteStore
from remuda.watch.obituary import obituary
from waiting import until

FULL = StoreFailed("the disk is full")


def spawn(name: str, parent: str = "") -> SpawnAgent:
    return SpawnAgent("worker", "scripted", name=name, parent=parent)


def letter(to: str, text: str = "hello") -> SendMessage:
    return SendMessage(to, "m1", Sender.USER, "user", text)


class Bench:
    """A loop at work, with its store and what it owes."""

    def __init__(self, store: Store, state: State, watches: Iterable[Watch]) -> None:
        self.owed = Owed()
        self.loop = Loop(store, state, owe=self.owed, clock=Clock(), watches=tuple(watches))
        self.running = asyncio.ensure_future(self.loop.run())


@asynccontextmanager
async def at_work(store: Store, *watches: Watch) -> AsyncIterator[Bench]:
    bench = Bench(store, await store.restore(), watches)
    try:
        yield bench
    finally:
        bench.loop.stop(Refused("the test is over"))
        await asyncio.wait({bench.running})


@pytest.fixture(params=["sqlite", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same log each time."""
    memory = MemoryStore()
    return lambda: SqliteStore(tmp_path / "log.db") if request.param == "sqlite" else memory


def test_a_command_is_answered_shown_and_owed_only_when_it_is_durable() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            reply = bench.loop.submit(spawn("ada"))
            await until(lambda: len(store.held) == 1)
            await breathe()
            assert "ada" in bench.loop.state.agents
            assert not reply.done()
            assert bench.loop.shown.agents == {}
            assert bench.owed.durable == []
            await store.release()
            assert (await within(reply)).seq == 1
            assert bench.loop.shown.agents == bench.loop.state.agents
            assert bench.loop.shown.seq == bench.loop.state.seq
            assert [list(agents) for agents in bench.owed.durable] == [["ada"]]

    run(told())


def test_what_is_shown_stays_behind_with_the_disk_while_the_loop_runs_ahead() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            for name in ("ada", "bob", "cid"):
                bench.loop.submit(spawn(name))
                await breathe()
            assert len(store.held) == 3
            await store.release()
            assert list(bench.loop.shown.agents) == ["ada"]
            await store.release()
            assert list(bench.loop.shown.agents) == ["ada", "bob"]

    run(told())


def test_also_a_refusal_is_told_only_when_what_it_rests_on_is_durable() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            bench.loop.submit(spawn("ada"))
            await breathe()
            refused = bench.loop.submit(spawn("ada"))
            await breathe()
            assert not refused.done()
            await store.release()
            await store.release()
            with pytest.raises(Refused, match="already an agent"):
                await within(refused)

    run(told())


def test_a_failed_append_stops_the_loop_and_tells_everyone_who_waits() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            replies = [bench.loop.submit(spawn("ada"))]
            await breathe()
            replies.append(bench.loop.submit(spawn("bob")))
            await breathe()
            replies.append(bench.loop.submit(spawn("cid")))  # still in the inbox
            await store.fail(FULL)
            replies.append(bench.loop.submit(spawn("dan")))  # too late
            for reply in replies:
                with pytest.raises(StoreFailed, match="the disk is full"):
                    await within(reply)
            with pytest.raises(StoreFailed, match="the disk is full"):
                await within(bench.running)
            assert bench.loop.shown.agents == {}
            assert bench.owed.durable == []

    run(told())


@pytest.mark.parametrize("error", [Conflict("somebody else writes here"), OSError("no such device")])
def test_whatever_makes_an_append_fail_it_is_told_as_a_failure_of_the_log(error: Exception) -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            reply = bench.loop.submit(spawn("ada"))
            await breathe()
            await store.fail(error)
            with pytest.raises(StoreFailed, match=f"the log cannot be written: {error}"):
                await within(reply)

    run(told())


def test_what_becomes_durable_after_a_stop_is_not_lost_to_those_who_look() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            reply = bench.loop.submit(spawn("ada"))
            await breathe()
            bench.loop.stop(Refused("enough"))
            with pytest.raises(Refused, match="enough"):
                await within(reply)
            await store.release()
            assert list(bench.loop.shown.agents) == ["ada"]
        assert bench.running.exception() is None

    run(told())


def test_the_same_order_twice_is_done_once(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        store = opened()
        async with at_work(store) as bench:
            both = [bench.loop.submit(spawn(""), order="one") for _ in range(2)]
            first, again = await within(asyncio.gather(*both))
            later = await within(bench.loop.submit(spawn(""), order="one"))
            assert list(bench.loop.state.agents) == ["worker-1"]
            assert isinstance(first.events[0], AgentSpawned)
            assert again == later == Accepted(first.seq, ())
        await store.close()

    run(told())


def test_the_same_order_is_also_known_after_a_restart(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        for restart in range(3):
            store = opened()
            async with at_work(store) as bench:
                accepted = await within(bench.loop.submit(spawn(""), order="one"))
                assert accepted.seq == 1
                assert bool(accepted.events) == (restart == 0)
                assert list(bench.loop.state.agents) == ["worker-1"]
                await store.save_snapshot(bench.loop.state)
            await store.close()

    run(told())


def test_a_repeated_order_is_answered_only_when_the_first_is_durable() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store) as bench:
            bench.loop.submit(spawn("ada"), order="one")
            await breathe()
            again = bench.loop.submit(spawn("ada"), order="one")
            await breathe()
            assert not again.done()
            await store.release()
            await store.release()
            assert (await within(again)).events == ()

    run(told())


def test_the_order_of_submission_is_the_order_of_decision(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        store = opened()
        async with at_work(store) as bench:
            names = [f"agent-{number}" for number in range(700)]
            replies = [bench.loop.submit(spawn(name)) for name in names]
            accepted = await within(asyncio.gather(*replies))
            assert list(bench.loop.state.agents) == names
            assert [each.seq for each in accepted] == sorted(each.seq for each in accepted)
            assert await store.restore() == bench.loop.state
        await store.close()

    run(told())


def test_a_flood_of_commands_leaves_room_for_others() -> None:
    async def told() -> None:
        async with at_work(MemoryStore()) as bench:
            last = [bench.loop.submit(spawn(f"a-{number}")) for number in range(2000)][-1]
            turns = 0
            while not last.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns >= 2000 // loop_module.COMMANDS_AT_ONCE

    run(told())


def test_a_caller_that_has_gone_away_does_not_disturb(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        store = opened()
        async with at_work(store) as bench:
            for command in (spawn("ada"), letter("nobody")):
                bench.loop.submit(command).cancel()
            await within(bench.loop.submit(spawn("bob")))
            assert list(bench.loop.state.agents) == ["ada", "bob"]
        await store.close()

    run(told())


def test_a_refused_command_leaves_nothing_in_the_log(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        store = opened()
        async with at_work(store) as bench:
            with pytest.raises(UnknownAgent):
                await within(bench.loop.submit(letter("nobody"), order="one"))
            assert await store.read(0, 10) == []
            await within(bench.loop.submit(spawn("nobody")))
            # A refusal is no deed: the same order may succeed later.
            assert (await within(bench.loop.submit(letter("nobody"), order="one"))).events
        await store.close()

    run(told())


def test_a_bug_in_a_decision_is_the_callers_answer_and_not_the_loops_end() -> None:
    async def told() -> None:
        async with at_work(MemoryStore()) as bench:
            await within(bench.loop.submit(spawn("ada")))
            with pytest.raises(AttributeError):
                await within(bench.loop.submit(letter("ada", text=None)))  # type: ignore[arg-type]
            await within(bench.loop.submit(letter("ada")))

    run(told())


# --- watches ---


def test_a_reaction_is_kept_in_the_same_append_as_its_cause() -> None:
    async def told() -> None:
        store = HeldStore()
        async with at_work(store, obituary) as bench:
            bench.loop.submit(SpawnAgent("coordinator", "scripted"))
            bench.loop.submit(spawn("ada", parent="coordinator"))
            await breathe()
            await store.release()
            reply = bench.loop.submit(ReapAgent("ada", "it spins"), order="reap")
            await breathe()
            records, _ = store.held[0]
            assert [type(record.event) for record in records] == [StatusChanged, MessageQueued]
            assert {record.cause for record in records} == {"reap"}
            queued = records[1].event
            assert isinstance(queued, MessageQueued)
            assert (queued.agent, queued.message.text) == ("coordinator", "ada is reaped: it spins.")
            await store.release()
            # The caller is answered with what it asked for, not with what followed.
            assert [type(event) for event in (await within(reply)).events] == [StatusChanged]

    run(told())


def test_what_a_reaction_leads_to_is_noticed_too() -> None:
    def gossip(state: State, event: Event) -> Iterable[Command]:
        match event:
            case AgentSpawned(agent="ada"):
                yield spawn("bob")
            case AgentSpawned(agent="bob"):
                yield spawn("cid")

    async def told() -> None:
        async with at_work(MemoryStore(), gossip) as bench:
            await within(bench.loop.submit(spawn("ada")))
            assert list(bench.loop.state.agents) == ["ada", "bob", "cid"]

    run(told())


def _raises(state: State, event: Event) -> Iterable[Command]:
    raise ZeroDivisionError


def _asks_what_is_refused(state: State, event: Event) -> Iterable[Command]:
    yield PauseAgent("nobody")


def _asks_what_breaks_the_decision(state: State, event: Event) -> Iterable[Command]:
    yield letter("ada", text=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("watch", [_raises, _asks_what_is_refused, _asks_what_breaks_the_decision])
def test_a_watch_that_goes_wrong_changes_nothing_and_stops_nobody(watch: Watch) -> None:
    async def told() -> None:
        async with at_work(MemoryStore(), watch, obituary) as bench:
            assert (await within(bench.loop.submit(spawn("ada")))).events
            assert (await within(bench.loop.submit(letter("ada")))).events

    run(told())


# --- snapshots ---


def test_a_snapshot_is_taken_now_and_then(opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SNAPSHOT_EVERY", 10)

    async def told() -> None:
        store = opened()
        saved: list[int] = []
        save = store.save_snapshot

        async def noted(state: State) -> None:
            saved.append(state.seq)
            await save(state)

        store.save_snapshot = noted  # type: ignore[method-assign]
        async with at_work(store) as bench:
            for number in range(20):
                await within(bench.loop.submit(spawn(f"agent-{number}")))
            await until(lambda: len(saved) >= 5)
            assert await store.restore() == bench.loop.state
        await store.close()

    run(told())


def test_a_loop_that_starts_from_a_log_shows_what_is_in_it(opened: Callable[[], Store]) -> None:
    async def told() -> None:
        store = opened()
        async with at_work(store) as bench:
            await within(bench.loop.submit(spawn("ada")))
            before = bench.loop.state
        await store.close()
        store = opened()
        async with at_work(store) as bench:
            assert bench.loop.state == before
            assert bench.loop.shown.agents == before.agents
            await within(bench.loop.submit(StartRuntime("next")))
            assert bench.loop.state.runtime == "next"
        await store.close()

    run(told())


def test_after_a_stop_every_command_is_told_why() -> None:
    async def told() -> None:
        async with at_work(MemoryStore()) as bench:
            waiting: list[Reply] = [bench.loop.submit(spawn("ada"))]
            bench.loop.stop(Refused("the runtime is stopping"))
            bench.loop.stop(Refused("another reason, too late"))
            waiting.append(bench.loop.submit(spawn("bob")))
            for reply in waiting:
                with pytest.raises(RemudaError, match="the runtime is stopping"):
                    await within(reply)
            await within(bench.running)

    run(told())
