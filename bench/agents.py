"""Agents: lines through the codec, two hundred live children, what a turn costs over a bare pipe.

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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.figure import Figure, interleaved, median, spread
from remuda.agents import Answered, Asked, Launch, Session, scripted
from remuda.agents.acp import AcpSession
from remuda.agents.catalog import backend
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import TurnEnded
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime

CHILDREN = 200
AT_ONCE = 8  # starts; more of them only wait for each other
LINES = 20_000
TURNS = 40
SCRIPTED = (sys.executable, "-I", "-S", str(Path(scripted.__file__).parent))


def figures() -> list[Figure]:
    return [codec(), *children(), *turn_overhead("scripted", acp_pipe(SCRIPTED))]


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
    pipe = Pipe(await start_pipe((*SCRIPTED, "--memory", str(folder / "memory")), folder))
    await pipe.open(folder)
    return pipe.process


async def end_plain(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    await process.wait()


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- the bare pipe ---


class Pipe:
    """The least that speaks ACP: no supervision, no record, nothing understood but the answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._asked = 0
        self._session = ""

    async def open(self, folder: Path) -> None:
        await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = await self.call("session/new", {"cwd": str(folder), "mcpServers": []})
        self._session = opened["sessionId"]

    async def turn(self, text: str) -> None:
        await self.call("session/prompt", {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]})

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                return message["result"]
        raise EOFError(f"the agent ended in the middle of {method}")


async def start_pipe(argv: Sequence[str], folder: Path) -> asyncio.subprocess.Process:
    pipe = subprocess.PIPE
    return await asyncio.create_subprocess_exec(*argv, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**24)


Turn = Callable[[str], Awaitable[None]]
Bare = Callable[[Path], AbstractAsyncContextManager[Turn]]


def acp_pipe(argv: Sequence[str]) -> Bare:
    """A conversation over a bare pipe with any program that speaks ACP."""

    @asynccontextmanager
    async def bare(folder: Path) -> AsyncIterator[Turn]:
        pipe = Pipe(await start_pipe(argv, folder))
        await pipe.open(folder)
        yield pipe.turn
        await end_plain(pipe.process)

    return bare


# --- a turn ---


def turn_overhead(name: str, bare: Bare, prompt: str = "Good morning.") -> list[Figure]:
    """What our whole stack adds to a turn: from the message at the door to the durable end of the turn, against the
    same prompt to the same program over a bare pipe. `name` is the backend's in the catalog."""
    ours, theirs = uvloop.run(taking_turns(name, bare, prompt))
    added = [(a - b) * 1000 for a, b in zip(ours, theirs, strict=True)]
    peer = (
        f"the same turns over a bare pipe: {median(theirs) * 1000:.2f} ms; through Remuda: {median(ours) * 1000:.2f} ms"
    )
    value = median(added)
    return [Figure(f"agents.turn_overhead_{name}", value, "ms", spread(added), peer, "≤ 30 ms", value <= 30)]


async def taking_turns(name: str, bare: Bare, prompt: str) -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as made:
        folder = Path(made)
        make_place(folder)
        async with open_runtime(folder) as runtime, bare(folder) as bare_turn:
            await runtime.spawn(SpawnAgent("worker", name, "bench"))
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(TURNS + 1):
                ours.append(await seconds(through(runtime, prompt)))
                theirs.append(await seconds(bare_turn(prompt)))
            return ours[1:], theirs[1:]  # the first waits for the session to start


async def seconds(turn: Awaitable[None]) -> float:
    began = time.perf_counter()
    await turn
    return time.perf_counter() - began


async def through(runtime: Runtime, prompt: str) -> None:
    """Send it, and follow the log as any reader of it would until the turn's end stands there."""
    seq = (await runtime.send("bench", prompt)).seq
    while True:
        for record in await runtime.store.read(seq, 100):
            seq = record.seq
            if isinstance(record.event, TurnEnded):
                return
        await asyncio.sleep(0.0005)
