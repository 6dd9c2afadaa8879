"""The hands: what is owed is done, one thing at a time for each agent, once in a runtime's life, and reported."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from domain.drive import WORKER, Project
from domain.owed import whose
from fakes import breathe
from remuda.domain.commands import (
    Command,
    PauseAgent,
    ReapAgent,
    Report,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
    ResumeAgent,
)
from remuda.domain.effects import Effect, EndSession, RunTurn, StartSession
from remuda.domain.errors import EffectFailed, StoreFailed
from remuda.domain.state import Outcome
from remuda.runtime.hands import Hands
from simulation.virtual import run_virtually

Do = Callable[[Effect], Awaitable[Report | None]]


class Bench:
    """A project, hands, and a world that does what the test says."""

    def __init__(self) -> None:
        self.project = Project()
        self.told: list[Command] = []
        self.heard = asyncio.Event()
        self.begun: list[Effect] = []
        self.doing: dict[str, int] = {}
        self.do: Do = self.wait
        self.reports: asyncio.Future[Report | None] = asyncio.get_running_loop().create_future()
        self.accept: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.hands = Hands(self.perform, self.submit)

    async def perform(self, effect: Effect) -> Report | None:
        self.begun.append(effect)
        if not isinstance(effect, StartSession | RunTurn | EndSession):
            return await self.do(effect)
        self.doing[whose(effect)] = self.doing.get(whose(effect), 0) + 1
        assert self.doing[whose(effect)] == 1, f"two things at a time for the process of {whose(effect)}: {self.begun}"
        try:
            return await self.do(effect)
        finally:
            self.doing[whose(effect)] -= 1

    async def submit(self, command: Command) -> object:
        self.told.append(command)
        self.heard.set()
        return await asyncio.shield(self.accept)

    async def wait(self, _: Effect) -> Report | None:
        return await asyncio.shield(self.reports)

    def owe(self) -> None:
        """What the loop says after each durable batch."""
        self.hands.owe(self.project.state, self.project.state)

    async def go_on(self) -> None:
        """As far as the hands get with what is owed now."""
        self.owe()
        await breathe()

    def kinds(self) -> list[type[Effect]]:
        return [type(effect) for effect in self.begun]


def told(story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def on_a_bench() -> None:
        bench = Bench()
        await story(bench)
        await bench.hands.close()

    run_virtually(on_a_bench())


def test_what_is_owed_is_begun_and_its_report_is_told() -> None:
    async def story(bench: Bench) -> None:
        bench.project.spawn()
        await bench.go_on()
        assert bench.kinds() == [StartSession]
        bench.reports.set_result(ReportSessionStarted(WORKER, 1, "ref"))
        await breathe()
        assert bench.told == [ReportSessionStarted(WORKER, 1, "ref")]

    told(story)


def test_what_is_under_way_is_not_begun_again() -> None:
    async def story(bench: Bench) -> None:
        bench.project.spawn()
        for _ in range(3):
            await bench.go_on()
        assert bench.kinds() == [StartSession]

    told(story)


def test_a_turn_is_not_delivered_again_while_its_report_is_on_its_way_to_the_disk() -> None:
    async def story(bench: Bench) -> None:
        bench.project.ready()
        bench.project.send()
        await bench.go_on()
        bench.reports.set_result(ReportTurnEnded(WORKER, 1, 1, Outcome.COMPLETED))
        await breathe()
        assert len(bench.told) == 1
        bench.project.send("one more, while the report waits")
        await bench.go_on()
        assert bench.kinds() == [RunTurn]

    told(story)


def test_an_effect_that_has_nothing_to_report_is_done_all_the_same() -> None:
    async def story(bench: Bench) -> None:
        bench.project.ready()
        bench.project.send()
        bench.owe()
        bench.reports.set_result(None)
        await breathe()
        bench.project.send("its death is not told yet")
        await bench.go_on()
        assert bench.kinds() == [RunTurn]
        assert bench.told == []

    told(story)


def test_the_next_thing_follows_when_the_last_is_done() -> None:
    async def story(bench: Bench) -> None:
        bench.project.spawn()
        bench.project.send()
        bench.owe()
        bench.reports.set_result(None)
        await breathe()
        bench.project.started()
        await bench.go_on()
        assert bench.kinds() == [StartSession, RunTurn]

    told(story)


def test_what_is_no_longer_owed_is_left_off_and_only_then_the_next_thing_begins() -> None:
    async def story(bench: Bench) -> None:
        left = asyncio.get_running_loop().create_future()

        async def lingering(_: Effect) -> Report | None:
            try:
                return await bench.reports
            except asyncio.CancelledError:
                await left
                raise

        bench.do = lingering
        bench.project.ready()
        bench.project.send()
        await bench.go_on()
        bench.project.do(PauseAgent(WORKER))
        await bench.go_on()
        assert bench.kinds() == [RunTurn]
        bench.do = bench.wait
        left.set_result(None)
        await breathe()
        assert bench.kinds() == [RunTurn, EndSession]

    told(story)


def test_however_often_the_mind_is_changed_nothing_begins_beside_what_will_not_leave_off() -> None:
    async def story(bench: Bench) -> None:
        left = asyncio.get_running_loop().create_future()

        async def lingering(_: Effect) -> Report | None:
            while not left.done():
                try:
                    await asyncio.shield(left)
                except asyncio.CancelledError:
                    continue
            return None

        bench.do = lingering
        bench.project.ready()
        bench.project.send()
        await bench.go_on()
        bench.project.do(PauseAgent(WORKER))
        await bench.go_on()
        bench.project.do(ResumeAgent(WORKER))
        bench.project.ended()  # the process is gone before the hands have noticed
        await bench.go_on()
        assert bench.kinds() == [RunTurn]
        left.set_result(None)
        await breathe()
        assert bench.kinds() == [RunTurn, StartSession]

    told(story)


def test_reaping_overtakes_a_gentle_end() -> None:
    async def story(bench: Bench) -> None:
        bench.project.ready()
        bench.project.do(PauseAgent(WORKER))
        await bench.go_on()
        bench.project.do(ReapAgent(WORKER, "it spins"))
        await bench.go_on()
        assert bench.begun == [EndSession(WORKER, 1, gentle=True), EndSession(WORKER, 1, gentle=False)]

    told(story)


def test_what_the_loop_has_already_moved_on_from_is_never_begun() -> None:
    async def story(bench: Bench) -> None:
        bench.project.ready()
        bench.project.send()
        durable = bench.project.branch().state
        bench.project.do(PauseAgent(WORKER))
        bench.hands.owe(durable, bench.project.state)
        await breathe()
        assert bench.begun == []
        await bench.go_on()
        assert bench.kinds() == [EndSession]

    told(story)


def test_each_agent_has_its_own_hand() -> None:
    async def story(bench: Bench) -> None:
        for _ in range(3):
            bench.project.spawn()
        await bench.go_on()
        assert [whose(effect) for effect in bench.begun] == ["worker-1", "worker-2", "worker-3"]

    told(story)


# --- when the world will not ---


def fails(times: int, report: Report | None) -> Do:
    left = times

    async def do(_: Effect) -> Report | None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise EffectFailed("no such program")
        return report

    return do


def test_a_start_that_fails_is_tried_again() -> None:
    async def story(bench: Bench) -> None:
        bench.do = fails(2, ReportSessionStarted(WORKER, 1, "ref"))
        bench.project.spawn()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.kinds() == [StartSession] * 3
        assert bench.told == [ReportSessionStarted(WORKER, 1, "ref")]

    told(story)


def test_a_start_that_keeps_failing_is_given_up_and_told_as_a_failure() -> None:
    async def story(bench: Bench) -> None:
        bench.do = fails(100, None)
        bench.project.spawn()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.kinds() == [StartSession] * 3
        assert bench.told == [ReportSessionFailed(WORKER, 1, "no such program")]

    told(story)


def test_an_end_is_tried_until_it_works() -> None:
    async def story(bench: Bench) -> None:
        bench.do = fails(50, ReportSessionEnded(WORKER, 1, "gone", 0))
        bench.project.ready()
        bench.project.do(PauseAgent(WORKER))
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 3600)
        assert bench.kinds() == [EndSession] * 51
        assert bench.told == [ReportSessionEnded(WORKER, 1, "gone", 0)]

    told(story)


def test_a_turn_that_fails_is_not_tried_again_and_its_process_is_ended_before_that_is_told() -> None:
    async def story(bench: Bench) -> None:
        ended: list[int] = []

        async def do(effect: Effect) -> Report | None:
            if isinstance(effect, RunTurn):
                raise OSError("no space left on device")
            assert isinstance(effect, EndSession)
            ended.append(effect.epoch)
            assert bench.told == []
            return ReportSessionEnded(WORKER, 1, "killed", -9)

        bench.do = do
        bench.project.ready()
        bench.project.send()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.begun[1:] == [EndSession(WORKER, 1, gentle=False)]
        assert ended == [1]
        assert bench.told == [ReportSessionEnded(WORKER, 1, "no space left on device", None)]

    told(story)


def test_an_error_without_words_is_told_by_its_name() -> None:
    async def story(bench: Bench) -> None:
        async def do(_: Effect) -> Report | None:
            raise KeyError

        bench.do = do
        bench.project.spawn()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.told == [ReportSessionFailed(WORKER, 1, "KeyError()")]

    told(story)


@pytest.mark.parametrize("error", [StoreFailed("the disk is full"), RuntimeError("a bug")])
def test_a_report_that_nobody_takes_harms_nobody(error: Exception) -> None:
    async def story(bench: Bench) -> None:
        bench.accept.set_exception(error)
        bench.reports.set_result(ReportSessionStarted(WORKER, 1, "ref"))
        bench.project.spawn()
        await bench.go_on()
        bench.project.started()
        bench.project.send()
        await bench.go_on()
        assert bench.kinds() == [StartSession, RunTurn]

    told(story)


# --- the end ---


def test_closing_leaves_everything_off_and_waits_until_it_has_left_off() -> None:
    async def story(bench: Bench) -> None:
        left: list[str] = []

        async def lingering(effect: Effect) -> Report | None:
            try:
                return await bench.reports
            except asyncio.CancelledError:
                await breathe()
                left.append(whose(effect))
                raise

        bench.do = lingering
        for _ in range(3):
            bench.project.spawn()
        await bench.go_on()
        await bench.hands.close()
        assert sorted(left) == ["worker-1", "worker-2", "worker-3"]

    told(story)


def test_nothing_is_begun_after_closing() -> None:
    """While a runtime ends its processes, commands still come in; what they owe is for the next runtime."""

    async def story(bench: Bench) -> None:
        bench.project.ready()
        bench.owe()
        await bench.hands.close()
        bench.project.send()
        await bench.go_on()
        assert bench.begun == []

    told(story)
