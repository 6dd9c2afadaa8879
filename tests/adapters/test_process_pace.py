"""A child that floods or does not listen costs bounded memory, and the loop keeps its pace."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from adapters.agent_kit import WITHIN, Recorder, fresh_mark, launch_in
from remuda.agents import Update
from remuda.agents.clearing import clear
from remuda.agents.pipes import SLICE
from remuda.agents.process import STDIN_LIMIT, Child, sweep
from remuda.agents.strays import MARK
from remuda.domain.errors import AgentFault, RemudaError
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

Run = Callable[[Coroutine[Any, Any, Any]], Any]
both_loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


@both_loops
def test_a_flood_that_is_taken_in_slowly_keeps_nobody_else_from_the_loop(tmp_path: Path, run: Run) -> None:
    async def story() -> tuple[int, int]:
        taken = at_once = longest = 0

        def slow(_: Update) -> None:
            nonlocal taken, at_once, longest
            taken, at_once = taken + 1, at_once + 1
            longest = max(longest, at_once)
            busy(0.0002)

        async def somebody_else() -> None:
            nonlocal at_once
            while True:
                await asyncio.sleep(0)
                at_once = 0

        code = "import os\nfor _ in range(20): os.write(1, (b'x' * 99 + b'\\n') * 100)"
        other = asyncio.create_task(somebody_else())
        child = await Child.start(python(code), launch_in(tmp_path), slow, lambda _: None)
        async with asyncio.timeout(WITHIN):
            await child.gone()
        await child.end(gentle=False)
        other.cancel()
        return taken, longest

    taken, longest = run(story())
    assert taken == 2000
    assert longest <= 2 * SLICE / 0.0002


@both_loops
def test_a_child_that_writes_faster_than_we_take_waits(tmp_path: Path, run: Run) -> None:
    """What the child could write is what we took, what the kernel holds, and one read: it does not pile up here.

    How much the kernel holds differs between systems; a child that is not held back is soon many megabytes ahead.
    """

    async def story() -> tuple[int, int]:
        taken = 0

        def slow(_: Update) -> None:
            nonlocal taken
            taken += 100
            busy(0.0005)

        counter = tmp_path / "written"
        code = (
            "import os\n"
            f"count = os.open({str(counter)!r}, os.O_RDWR | os.O_CREAT)\n"
            "written = 0\n"
            "while True:\n"
            "    written += os.write(1, (b'x' * 99 + b'\\n') * 100)\n"
            "    os.pwrite(count, b'%d' % written, 0)\n"
        )
        child = await Child.start(python(code), launch_in(tmp_path), slow, lambda _: None)
        await until(lambda: taken > 300_000)
        written = int(counter.read_bytes())
        ahead = written - taken
        await child.end(gentle=False)
        return written, ahead

    written, ahead = run(story())
    assert written > 300_000
    assert ahead < 1_000_000


@both_loops
def test_lines_that_wait_at_the_exit_are_not_lost(tmp_path: Path, run: Run) -> None:
    async def story() -> list[str]:
        heard = Recorder()

        def slow(update: Update) -> None:
            heard(update)
            busy(0.0005)

        code = "import os; [os.write(1, b'%d\\n' % n) for n in range(1000)]; os.write(2, b'last words\\n')"
        child = await Child.start(python(code), launch_in(tmp_path), slow, lambda _: None)
        await child.gone()
        assert heard.lines("stderr") == ["last words"]
        await child.end(gentle=False)
        return heard.lines("agent")

    assert run(story()) == [str(n) for n in range(1000)]


@both_loops
def test_one_who_goes_on_writing_after_the_exit_does_not_hold_it_up(tmp_path: Path, run: Run) -> None:
    noise = "trap '' PIPE; while :; do echo noise; done 2>/dev/null"
    code = f"import os, subprocess; subprocess.Popen(['sh', '-c', {noise!r}], start_new_session=True); os._exit(4)"

    async def story() -> int | None:
        child = await Child.start(python(code), launch_in(tmp_path), lambda _: None, lambda _: None)
        async with asyncio.timeout(WITHIN):
            ended = await child.gone()
            assert "killed 1 stray" in (await child.end(gentle=False)).detail
        return ended.returncode

    assert run(story()) == 4


@both_loops
def test_a_child_that_does_not_read_is_a_fault_and_not_our_memory(tmp_path: Path, run: Run) -> None:
    async def story() -> list[RemudaError]:
        faults: list[RemudaError] = []

        def hear(heard: str | RemudaError) -> None:
            if isinstance(heard, RemudaError):
                faults.append(heard)

        child = await Child.start(["sleep", "600"], launch_in(tmp_path), lambda _: None, hear)
        for _ in range(2 * STDIN_LIMIT // 100_000):
            child.send("y" * 100_000)
        stdin = child._stdin()
        assert stdin is not None
        assert STDIN_LIMIT < stdin.get_write_buffer_size() < STDIN_LIMIT + 200_000
        await child.end(gentle=False)
        return faults

    (fault,) = run(story())
    assert isinstance(fault, AgentFault)
    assert "does not read" in fault.message


@pytest.mark.long
def test_a_look_at_a_thousand_processes_does_not_stop_the_loop() -> None:
    mark = fresh_mark()
    crowd = "import subprocess\nfor _ in range(1000): subprocess.Popen(['sleep', '600'])"
    subprocess.run(python(crowd), env={MARK: mark, "PATH": os.environ["PATH"]}, check=True)

    async def story() -> tuple[list[float], int]:
        gaps = [await heartbeat(clear(fresh_mark(), None)) for _ in range(5)]
        return gaps, len((await clear(mark, None)).killed)

    try:
        gaps, killed = uvloop.run(story())
    finally:
        sweep(mark)
    assert killed == 1000
    assert min(gaps) < 0.05, f"seconds without a turn: {gaps}"  # the least disturbed by others on the machine


async def heartbeat(work: Coroutine[Any, Any, object]) -> float:
    working = asyncio.create_task(work)
    longest, before = 0.0, time.monotonic()
    while not working.done():
        await asyncio.sleep(0.0005)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    return longest
