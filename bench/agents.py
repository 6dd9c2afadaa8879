"""Agents: lines through the codec, two hundred live children.

The children run in a process of their own for each round, so that memory and threads are of this one thing. The peer
is what anybody would write first: asyncio's `create_subprocess_exec`, and `terminate` and `wait` at the end. It starts
the same programs and says the same hello to them; it promises nothing about what they leave behind.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench.bare import AcpPipe, start_pipe
from bench.figure import Figure, interleaved, median, spread
from remuda.agents import Answered, Asked, Launch, Session, scripted
from remuda.agents.acp import AcpSession
from remuda.agents.catalog import backend

CHILDREN = 200
AT_ONCE = 8  # starts; more of them only wait for each other
LINES = 20_000
SCRIPTED = (sys.executable, "-I", "-S", str(Path(scripted.__file__).parent))


def figures() -> list[Figure]:
    from bench import agents_turns  # which takes the scripted agent from here

    return [codec(), *children(), *agents_turns.figures()]


# --- lines ---


def codec() -> Figure:
    """What a session does with each line: understand it and tell of it. The peer only parses."""
    lines = [json.dumps(each) for each in conversation()] * (LINES // 10)
    ours, bare = interleaved(7, lambda: heard_per_second(lines), lambda: parsed_per_second(lines))
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    peer = f"json.loads of the same lines: {median(bare):,.0f} lines/s; {median(ratios):.2f} × of it"
    value = median(ours)
    return Figure("agents.codec", value, "lines/s", spread(ours), peer, "≥ 0.5 × json.loads", median(ratios) >= 0.5)


def conversation() -> list[dict[str, Any]]:
    """Ten lines as an agent writes them in the middle of a turn: mostly text, a tool call, a bit of usage."""
    text = {"type": "text", "text": "The parser drops the last token of a line; I will look at how it is fed."}
    updates: list[dict[str, Any]] = [{"sessionUpdate": "agent_message_chunk", "content": text} for _ in range(7)]
    call = {"toolCallId": "call-1", "name": "run", "title": "git status", "kind": "execute"}
    updates.append({"sessionUpdate": "tool_call", **call, "status": "in_progress", "rawInput": {"command": ["git"]}})
    result = [{"type": "content", "content": {"type": "text", "text": "M src/parser.py\n" * 10}}]
    updates.append(
        {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed", "content": result}
    )
    updates.append({"sessionUpdate": "usage_update", "used": 1200, "size": 200_000})
    return [{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": u}} for u in updates]


def heard_per_second(lines: Sequence[str]) -> float:
    count = 0

    def listen(_: object) -> None:
        nonlocal count
        count += 1

    session = AcpSession(launch(Path(), "bench-codec"), listen, allow)
    session._open = True
    began = time.perf_counter()
    for line in lines:
        session._hear(line)
    seconds = time.perf_counter() - began
    assert count >= len(lines) * 8 // 10
    return len(lines) / seconds


def parsed_per_second(lines: Sequence[str]) -> float:
    began = time.perf_counter()
    for line in lines:
        json.loads(line)
    return len(lines) / (time.perf_counter() - began)


async def allow(_: Asked) -> Answered:
    return Answered(allow=True)


def launch(folder: Path, mark: str) -> Launch:
    return Launch("bench", 1, "scripted", folder, mark, options=(("memory", str(folder / "memory")),))


# --- two hundred children ---


def children() -> list[Figure]:
    ours: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    for _ in range(3):
        ours.append(in_own_process("ours"))
        plain.append(in_own_process("plain"))

    def figure(what: str, unit: str, goal: str, ok: Callable[[float], bool]) -> Figure:
        values, peers = ([each[what] for each in side] for side in (ours, plain))
        peer = f"plain asyncio: {median(peers):.3g} {unit}"
        return Figure(f"agents.{what}", median(values), unit, spread(values), peer, goal, ok(median(values)))

    return [
        figure("start_200", "s", "≤ 1.5 × plain", lambda it: it <= 1.5 * median([each["start_200"] for each in plain])),
        figure("threads_of_200", "threads", "≤ 10", lambda it: it <= 10),
        figure("memory_per_child", "KiB", "≤ 100 KiB", lambda it: it <= 100),
        figure("kill_200", "s", "≤ 2 s", lambda it: it <= 2),
        figure("stop_200", "s", "≤ 2 s", lambda it: it <= 2),
        figure("work_at_once_in_kill_200", "ms", "≤ 50 ms", lambda it: it <= 50),
    ]


def in_own_process(side: str) -> dict[str, float]:
    code = f"from bench.agents import live_{side}; live_{side}()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def live_ours() -> None:
    uvloop.run(live(open_ours, lambda each: each.end(gentle=False), lambda each: each.end(gentle=True)))


def live_plain() -> None:
    asyncio.run(live(open_plain, end_plain, end_plain))


Open = Callable[[Path, int], Awaitable[Any]]
End = Callable[[Any], Awaitable[object]]


async def live(start: Open, kill: End, stop: End) -> None:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        folder = Path(name)
        await kill(await start(folder, CHILDREN))  # whatever is made or loaded once
        empty = resident()
        began = time.perf_counter()
        sessions = await start_all(start, folder)
        measured = {"start_200": time.perf_counter() - began}
        gc.collect()
        measured["threads_of_200"] = threading.active_count()
        measured["memory_per_child"] = (resident() - empty) / CHILDREN / 1024
        measured["kill_200"], measured["work_at_once_in_kill_200"] = await timed(kill, sessions)
        measured["stop_200"], _ = await timed(stop, await start_all(start, folder))
    sys.stdout.write(json.dumps(measured))


async def start_all(start: Open, folder: Path) -> list[Any]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Any:
        async with room:
            return await start(folder, number)

    return await asyncio.gather(*(one(number) for number in range(CHILDREN)))


async def timed(end: End, sessions: Sequence[Any]) -> tuple[float, float]:
    """Seconds until all are gone, and the most work in ms that the loop did without giving others a turn. Work and not
    time: two hundred dying programs keep the processors busy, whoever killed them."""
    began = time.perf_counter()
    ending = asyncio.gather(*(end(each) for each in sessions))
    longest, before = 0.0, time.thread_time()
    while not ending.done():
        await asyncio.sleep(0.001)
        longest, before = max(longest, time.thread_time() - before), time.thread_time()
    return time.perf_counter() - began, longest * 1000


async def open_ours(folder: Path, number: int) -> Session:
    return await backend("scripted")(launch(folder, f"bench-{os.getpid()}/{number}"), lambda _: None, allow)


async def open_plain(folder: Path, _: int) -> asyncio.subprocess.Process:
    pipe = AcpPipe(await start_pipe((*SCRIPTED, "--memory", str(folder / "memory")), folder))
    await pipe.open(folder)
    return pipe.process


async def end_plain(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    await process.wait()


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
