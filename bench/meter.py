"""The meter: what it adds to an answer's first byte and to each chunk, against nothing and against LiteLLM's proxy.

One service streams the same answer to all three ways, in processes of their own: straight, through the meter, through
LiteLLM. The service writes into each chunk when it sent it, so that the way of every single chunk is timed. The meter
is the whole one: the request is read, bounded and reserved in a ledger on the disk, the answer counted and settled.

A call under a budget leaves when its reservation is on the disk, so a flush bounds its first byte from below. It is
measured in the same run: as bare as it can be, and by way of the log, threads and transaction included.
"""

import asyncio
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from bench.figure import Figure, spread
from bench.peers import ROOT, python_of
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import Recorded, RuntimeStarted
from remuda.domain.ledger import Limits
from remuda.meter import Seat
from remuda.meter.apis import APIS
from remuda.meter.books import Books
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.store.sqlite import SqliteStore

ROUNDS = 9
CALLS = 12  # of each way in a round
CHUNKS = 30
EVERY = 0.004  # seconds between two chunks: a fast model
REQUEST = 100_000  # bytes, as of an agent in the middle of its work
PAUSE = 0.005  # seconds: a program looks at an answer before it asks again
FREE = "sk-free"  # of an agent that has no budget
KEY = "sk-" + hashlib.sha256(b"bench").hexdigest()  # it opens nothing, but LiteLLM takes no weak ones
PATIENCE = 120.0  # seconds for LiteLLM to start: its imports take most of a minute here


class Timed(NamedTuple):
    first: float  # ms from the request to the first byte of the answer's body
    chunk: float  # ms on the way, the median of the answer's chunks


def figures() -> list[Figure]:
    python = python_of("meter")
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        folder = Path(name)
        with (
            _process([sys.executable, "-m", "bench.meter", "service"]) as service,
            _process([sys.executable, "-m", "bench.meter", "meter", service, str(folder)]) as meter,
            _litellm(python, service, folder) as litellm,
        ):
            ways = {"direct": (service, KEY), "meter": (meter, KEY), "free": (meter, FREE), "litellm": (litellm, KEY)}
            rounds, flushes = uvloop.run(_measure(ways, folder))
    bare, logged = (median(each) for each in flushes)
    limit = f"one flush of this disk: {bare:.3g} ms bare, {logged:.3g} ms by way of the log"
    return [
        *_figures("first_byte", "meter", 0, rounds, limit),
        *_figures("first_byte_without_a_budget", "free", 0, rounds, "nothing to wait for"),
        *_figures("chunk", "meter", 1, rounds, ""),
    ]


def _figures(name: str, way: str, which: int, rounds: list[dict[str, list[Timed]]], note: str) -> Iterator[Figure]:
    def of(who: str, one: dict[str, list[Timed]]) -> float:
        return median(timed[which] for timed in one[who])

    ours = [of(way, each) - of("direct", each) for each in rounds]
    theirs = [of("litellm", each) - of("direct", each) for each in rounds]
    straight = median([of("direct", each) for each in rounds])
    added, others = median(ours), median(theirs)
    peer = f"straight to the service: {straight:.3g} ms; LiteLLM's proxy adds {others:.3g} ms" + (
        f"; {note}" if note else ""
    )
    yield Figure(f"meter.{name}", added, "ms added, p50", spread(ours), peer, "≤ 1 ms", added <= 1)
    ratios = [b / max(a, 0.001) for a, b in zip(ours, theirs, strict=True)]
    ratio = median(ratios)
    yield Figure(f"meter.{name}_ratio", ratio, "× less", spread(ratios), peer, "≥ 10 × less than LiteLLM", ratio >= 10)


# --- the one that asks ---


async def _measure(
    ways: dict[str, tuple[str, str]], folder: Path
) -> tuple[list[dict[str, list[Timed]]], tuple[list[float], list[float]]]:
    lines = {way: await _Line.open(url, key) for way, (url, key) in ways.items()}
    bare: list[float] = []
    logged: list[float] = []
    async with _flushing(folder) as flush:
        for line in lines.values():
            for _ in range(5):  # what is loaded once, and the connections
                await line.ask()
        rounds = []
        for _ in range(ROUNDS):
            one: dict[str, list[Timed]] = {way: [] for way in lines}
            for _ in range(CALLS):
                for way, line in lines.items():
                    await asyncio.sleep(PAUSE)
                    one[way].append(await line.ask())
                for each, took in zip((bare, logged), await flush(), strict=True):
                    each.append(took)
            rounds.append(one)
    for line in lines.values():
        line.writer.close()
    return rounds, (bare, logged)


@asynccontextmanager
async def _flushing(folder: Path) -> AsyncIterator[Callable[[], Awaitable[tuple[float, float]]]]:
    """What a page takes to the disk, appended to a file by itself and as an event to a log, in ms."""
    store, numbers, turns = SqliteStore(folder / "bare.db"), count(1), count()
    await store.restore()
    page = os.urandom(4096)
    with (folder / "bare").open("wb", buffering=0) as file:

        async def alone() -> None:
            file.write(page)
            os.fdatasync(file.fileno())

        async def logged() -> None:
            await store.append([Recorded(next(numbers), 0.0, "", RuntimeStarted("bench"))])

        async def flush() -> tuple[float, float]:
            took = {}
            # By turns: whoever is first may have to wait for what others have written.
            for way in (alone, logged) if next(turns) % 2 else (logged, alone):
                await asyncio.sleep(PAUSE)
                began = time.perf_counter()
                await way()
                took[way] = (time.perf_counter() - began) * 1000
            return took[alone], took[logged]

        yield flush
    await store.close()


class _Line:
    """A program on one connection that it keeps open."""

    def __init__(self, stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], host: str, key: str) -> None:
        self.reader, self.writer = stream
        text = "Fix the parser: it drops the last token of a line. "
        said = [{"role": "user", "content": text * 20} for _ in range(REQUEST // (len(text) * 20))]
        asked = {"model": "gpt-4.1", "messages": said, "stream": True, "max_tokens": 4096}
        body = json.dumps({**asked, "stream_options": {"include_usage": True}}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._request = head.encode() + body

    @classmethod
    async def open(cls, url: str, key: str) -> "_Line":
        host = url.removeprefix("http://")
        return cls(await asyncio.open_connection(*host.split(":"), limit=1 << 20), host, key)

    async def ask(self) -> Timed:
        began = time.monotonic_ns()
        self.writer.write(self._request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head + await self.reader.read(2000)
        first, ways = 0.0, []
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.reader.readexactly(size + 2)
            now = time.monotonic_ns()
            first = first or (now - began) / 1e6
            if not size:
                break
            ways += [(now - sent) / 1e6 for sent in _stamps(data)]
        assert len(ways) == CHUNKS, f"{len(ways)} chunks came"
        return Timed(first, median(ways))


def _stamps(data: bytes) -> Iterator[int]:
    """When the service sent what is in a chunk: LiteLLM writes the JSON anew, but leaves the words as they are."""
    for part in data.split(b"sent:")[1:]:
        yield int(part.partition(b".")[0])


# --- the service ---


async def _service() -> None:
    def event(delta: dict[str, Any], **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", **more}
        data = b"data: " + json.dumps({"choices": [choice], **whole}).encode() + b"\n\n"
        return b"%x\r\n%s\r\n" % (len(data), data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(length)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for _ in range(CHUNKS):
                    writer.write(event({"role": "assistant", "content": f"sent:{time.monotonic_ns()}. "}))
                    await asyncio.sleep(EVERY)
                usage = {"prompt_tokens": 20_000, "completion_tokens": 60, "total_tokens": 20_060}
                data = json.loads(event({}).split(b"data: ")[1])
                data["choices"][0]["finish_reason"] = "stop"
                last = b"data: " + json.dumps(data).encode() + b"\n\n"
                last += b"data: " + json.dumps({**data, "choices": [], "usage": usage}).encode() + b"\n\n"
                last += b"data: [DONE]\n\n"
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    _say(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await server.serve_forever()


# --- the meter ---


async def _meter(service: str, folder: Path) -> None:
    os.environ["BENCH_KEY"] = KEY
    async with _metered(folder, service) as meter:
        _say(meter.url)
        await asyncio.Event().wait()


@asynccontextmanager
async def _metered(folder: Path, service: str) -> AsyncIterator[Meter]:
    from remuda.agents import prices

    (folder / "remuda.toml").write_text('[project]\nbackend = "scripted"\n')
    make_place(folder)
    async with open_runtime(folder) as runtime:
        agent = await runtime.spawn(SpawnAgent("crew", "scripted", budget=Limits(tokens=10**12, nanousd=10**15)))
        free = await runtime.spawn(SpawnAgent("crew", "scripted"))
        while not {agent, free} <= runtime.world.live.keys():  # noqa: ASYNC110 - processes take some time to start
            await asyncio.sleep(0.01)
        loading = asyncio.ensure_future(prices.load())
        await loading
        seats = {KEY: Seat(agent, runtime.world.live[agent].epoch), FREE: Seat(free, runtime.world.live[free].epoch)}
        upstreams = {api.name: Upstream(service, "BENCH_KEY") for api in APIS}
        meter = Meter(upstreams, Books(runtime, loading), seats.get)
        await meter.open()
        try:
            yield meter
        finally:
            await meter.close()


# --- the peer ---


@contextmanager
def _litellm(python: Path, service: str, folder: Path) -> Iterator[str]:
    config = folder / "litellm.yaml"
    model = {"model": "openai/gpt-4.1", "api_base": f"{service}/v1", "api_key": KEY}
    config.write_text(json.dumps({"model_list": [{"model_name": "gpt-4.1", "litellm_params": model}]}))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}
    env["LITELLM_MASTER_KEY"] = KEY
    command = [str(python.parent / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "litellm.log").open("wb") as log:
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as trying:
                if trying.connect_ex(("127.0.0.1", port)) == 0:
                    break
            alive = child.poll() is None and time.monotonic() < until
            assert alive, (folder / "litellm.log").read_text()[-2000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()


@contextmanager
def _process(command: list[str]) -> Iterator[str]:
    """A process that says its address and then serves until it is killed."""
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        assert url.startswith("http://"), f"{command} did not start"
        yield url
    finally:
        child.kill()
        child.wait()


def _say(url: str) -> None:
    print(url, flush=True)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    uvloop.run(_service() if what == "service" else _meter(rest[0], Path(rest[1])))
