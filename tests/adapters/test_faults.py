"""Agents that go wrong in every way, through the whole runtime: each ends in the right state, the evidence is kept."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from adapters.agent_kit import alive, steps
from adapters.transcript_kit import read_entries
from remuda.agents import Ask, Launch, Listen, Session, catalog, orphans
from remuda.agents.acp import open_session
from remuda.agents.pipes import LINE_LIMIT
from remuda.agents.strays import marked
from remuda.domain.commands import RetireAgent, SpawnAgent
from remuda.domain.events import Event, SessionEnded, StatusChanged, TurnEnded
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import DEAD, Stage, Status
from remuda.domain.reports import CRASHES_ALLOWED
from remuda.domain.state import Agent, Outcome
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.store.transcript import session_path, wire_path
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

AGENT = Path(__file__).with_name("faulty_agent.py")
MIB = 1024 * 1024
E = TypeVar("E")


class Case:
    """One agent with one fault in one runtime, and what the log says of it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @property
    def status(self) -> Status:
        return self.runtime.agent("ada").status

    async def all(self, kind: type[E]) -> list[E]:
        records = await self.runtime.store.read(0, 100_000)
        return [record.event for record in records if isinstance(record.event, kind)]

    def wire(self, epoch: int = 1) -> str:
        return wire_path(session_path(self.runtime.place.transcripts, "ada", epoch)).read_text()

    def texts(self, kind: str, epoch: int = 1) -> list[str]:
        entries = read_entries(session_path(self.runtime.place.transcripts, "ada", epoch))
        return [entry.text for entry in entries if entry.kind == kind]

    async def first_line(self) -> str:
        """What it says first, once it has."""
        await until(lambda: any("\n" in text for text in self.texts("text")))
        return self.texts("text")[0].strip()

    @property
    def agent(self) -> Agent:
        return self.runtime.agent("ada")

    async def dead(self) -> Event:
        await until(lambda: self.status in DEAD)
        await until(lambda: "ada" not in self.runtime.world.live)
        return (await self.all(StatusChanged))[-1]

    async def retired(self) -> SessionEnded:
        """Dismiss it and see its session end, within the time that a tree may take to die."""
        began = asyncio.get_running_loop().time()
        await self.runtime.submit(RetireAgent("ada"))
        await until(lambda: self.agent.session is not None and self.agent.session.stage is Stage.ENDED)
        assert asyncio.get_running_loop().time() - began < 5.0
        assert self.status is Status.RETIRED
        return (await self.all(SessionEnded))[-1]


@asynccontextmanager
async def case(folder: Path, backend: str, *, prompt: str = "go", options: dict[str, str]) -> AsyncIterator[Case]:
    make_place(folder)
    # A flood of the same words is a loop to the watch that looks for one, and would be cut short.
    (folder / "remuda.toml").write_text("[watch.spin]\nenabled = false\n")
    async with open_runtime(folder) as runtime:
        made = Case(runtime)
        await runtime.spawn(SpawnAgent("worker", backend, "ada", options=tuple(options.items())))
        await runtime.send("ada", prompt)
        yield made
    left = [pid for pid, mark in marked() if mark.startswith(made.runtime.place.mark)]
    assert left == [], "processes of the agent are left after the runtime's end"


@pytest.fixture(autouse=True)
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more backend, beside those of the catalog."""
    known = catalog.backends

    async def start(launch: Launch, listen: Listen, ask: Ask) -> Session:
        argv = (sys.executable, "-I", "-S", str(AGENT), dict(launch.options)["fault"])
        return await open_session(argv, launch, listen, ask)

    monkeypatch.setattr(catalog, "backends", lambda rows: lambda name: start if name == "faulty" else known(rows)(name))


def tell(folder: Path, fault: str, story: Callable[[Case], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with case(folder, "faulty", options={"fault": fault}) as made, asyncio.timeout(60):
            await story(made)

    uvloop.run(whole())


# --- the stream is not what it should be ---


@pytest.mark.parametrize(
    ("fault", "evidence", "failure", "kept"),
    [
        ("garbage", "Segmentation fault", Failure.MALFORMED, "Segmentation fault (core dumped)"),
        ("long_line", f"a line of more than {LINE_LIMIT} bytes; it begins: LLL", Failure.MALFORMED, "LLLL"),
        ("half_line", "exited with code 0", Failure.CRASHED, '{\\"jsonrpc\\": \\"2.0\\", \\"id\\": 3, \\"resu'),
    ],
)
def test_a_broken_stream_loses_the_turn_and_after_some_tries_the_agent(
    tmp_path: Path, fault: str, evidence: str, failure: Failure, kept: str
) -> None:
    async def story(case: Case) -> None:
        before = peak_memory(reset=True)
        last = await case.dead()
        assert isinstance(last, StatusChanged)
        assert last.now is Status.FAILED
        assert evidence in last.why
        ended = await case.all(SessionEnded)
        assert [each.crashed for each in ended] == [True] * CRASHES_ALLOWED
        assert all(evidence in each.detail for each in ended)
        assert {each.failure for each in ended} == {failure}
        assert {turn.outcome for turn in await case.all(TurnEnded)} == {Outcome.LOST}
        assert all(kept in case.wire(epoch) for epoch in range(1, CRASHES_ALLOWED + 1))
        assert peak_memory() - before < 100 * MIB  # three lines of 50 MB would be more

    tell(tmp_path, fault, story)


def test_garbage_instead_of_a_hello_fails_the_start_with_the_evidence(tmp_path: Path) -> None:
    async def story(case: Case) -> None:
        last = await case.dead()
        assert isinstance(last, StatusChanged)
        assert last.now is Status.FAILED
        assert "Segmentation fault (core dumped)" in last.why
        assert "Segmentation fault (core dumped)" in case.wire()
        assert [each.failure for each in await case.all(SessionEnded)] == [Failure.MALFORMED]

    tell(tmp_path, "garbage_at_once", story)


def test_what_is_said_after_the_exit_is_kept_and_who_said_it_is_ended(tmp_path: Path) -> None:
    async def story(case: Case) -> None:
        stayed = int(await case.first_line())
        await until(lambda: case.status in DEAD)
        first = (await case.all(SessionEnded))[0]
        assert (first.returncode, first.crashed, first.failure) == (3, True, Failure.CRASHED)
        assert "said by one who stayed" in case.wire()
        assert not alive(stayed)

    tell(tmp_path, "output_after_exit", story)


# --- it will not go ---


@pytest.mark.parametrize("fault", ["deaf", "double_fork"])
def test_one_that_will_not_go_is_gone_in_five_seconds(tmp_path: Path, fault: str) -> None:
    async def story(case: Case) -> None:
        stubborn = int(await case.first_line())
        assert alive(stubborn)
        ended = await case.retired()
        assert not ended.crashed
        assert not alive(stubborn)
        assert [turn.outcome for turn in await case.all(TurnEnded)] == [Outcome.INTERRUPTED]

    tell(tmp_path, fault, story)


def test_its_zombies_are_laid_to_rest(tmp_path: Path) -> None:
    async def story(case: Case) -> None:
        zombies = [int(each) for each in (await case.first_line()).split()]
        await until(lambda: case.status is Status.READY)
        await case.retired()
        await until(lambda: all(orphans.state_of(pid) is None for pid in zombies))
        assert [turn.outcome for turn in await case.all(TurnEnded)] == [Outcome.COMPLETED]

    tell(tmp_path, "zombies", story)


# --- too much ---


def test_a_flood_on_stderr_is_kept_and_hurts_nobody(tmp_path: Path) -> None:
    async def story(case: Case) -> None:
        before = peak_memory(reset=True)
        await completed(case)
        # What is said on stderr comes by a way of its own, and may be heard after the end of the turn.
        await until(lambda: len(case.texts("stderr")) == 50_000)
        assert peak_memory() - before < 50 * MIB

    tell(tmp_path, "stderr_flood", story)


@pytest.mark.parametrize(("fault", "pieces"), [("flood", 20_000), ("endless_line", 20_000)])
def test_a_flood_of_lines_is_all_kept_while_the_loop_keeps_its_pace(tmp_path: Path, fault: str, pieces: int) -> None:
    async def story(case: Case) -> None:
        before = peak_memory(reset=True)
        beating = asyncio.create_task(heartbeat())
        await completed(case)
        beating.cancel()
        (longest,) = await asyncio.gather(beating)
        assert len(case.texts("text")) == pieces
        assert longest < 0.1, "seconds of work that nobody else could come between"
        assert peak_memory() - before < 50 * MIB

    tell(tmp_path, fault, story)


async def completed(case: Case) -> None:
    await until(lambda: case.agent.turns > 0)
    turns = await case.all(TurnEnded)
    assert [turn.outcome for turn in turns] == [Outcome.COMPLETED]


async def heartbeat() -> float:
    """The most that the loop's thread worked between two turns of somebody who wants one each millisecond. Work and
    not time, because other programs on the machine are none of our loop's doing."""
    longest, before = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.thread_time() - before), time.thread_time()
    except asyncio.CancelledError:
        return longest


def peak_memory(*, reset: bool = False) -> int:
    """Bytes: the most that this process has had in memory since the last reset."""
    if reset:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


# --- the clock ---


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0], ids=["a day ahead", "a day back"])
def test_a_jump_of_the_clock_moves_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    shift = 0.0
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    prompt = steps({"say": "begun\n"}, {"hang": 0.5}, {"say": "done\n"})

    async def story() -> None:
        nonlocal shift
        options = {"memory": str(tmp_path / "memory")}
        async with case(tmp_path, "scripted", prompt=prompt, options=options) as made, asyncio.timeout(30):
            await made.first_line()
            shift = jump
            await completed(made)
            await made.runtime.send("ada", steps({"say": "working\n"}, {"hang": True}))
            await until(lambda: "working\n" in made.texts("text"))
            shift = -jump
            assert not (await made.retired()).crashed
        assert abs(time.time() - real()) > 80_000

    uvloop.run(story())
