"""Turns: what our whole stack adds to a turn, over the same program driven by a bare pipe with the same prompt.

From the message at the door to the durable end of the turn in the log: mail, turn, transcript, usage and tool calls are
all written on the way. The real programs speak to the scripted model, which runs in a process of its own and is quicker
than any model: each answer takes half a second. Both sides take turns, each in a conversation of its own.

Three figures for each: the difference between the two sides in milliseconds and in percent, which on a machine that has
other things to do is mostly about those; and what passed while the program waited for us, read off the wire of the very
same turns: from the message at the door to the prompt on its stdin, from each of its questions to the answer, and from
its last word to the durable end of the turn.

A program that is not installed (`make agents`) is left out, and it is said.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from bench.agents import SCRIPTED
from bench.bare import AcpPipe, ClaudePipe, CodexPipe, Pipe, start_pipe
from bench.figure import Figure, median, spread
from remuda.agents import Launch, claude, codex
from remuda.agents.catalog import CATALOG, metered, prepare
from remuda.agents.process import environment as whole_environment
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import TurnEnded
from remuda.domain.state import Outcome
from remuda.effects.world import Loan
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.store import follow
from remuda.store.transcript import session_path, wire_path

TURNS = 40
REAL_TURNS = 12
PROGRAMS = Path(__file__).parent.parent / ".agents" / "bin"
BYPASS = ("permissions", "bypass")

MODELS: Mapping[str, str] = {
    "claude": "",
    "codex": "gpt-5.5",
    "opencode": "openai/gpt-5.2",
    "goose": "",
    "gemini": "gemini-2.5-flash",
}
SWITCHES: Mapping[str, Mapping[str, str]] = {"goose": {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted"}}

STEPS = (
    {"slow": 0.01},
    {"say": "I look at the file, then I change it. ", "repeat": 5},
    {"shell": "echo looked"},
    {"say": "Now I write down what I saw in it. ", "repeat": 5},
    {"write": {"path": "notes.txt", "text": "alpha\nbeta\n"}},
    {"say": "It is written, and that was all of it. ", "repeat": 5},
)
WORK = f"Please do this. [[model: {json.dumps(STEPS)}]]"


@dataclass(frozen=True, slots=True)
class Ours:
    seconds: list[float]  # of each turn
    waited: list[float]  # seconds of it in which the program waited for us


Turn = Callable[[str], Awaitable[None]]
Bare = Callable[[Path], AbstractAsyncContextManager[Turn]]
Lent = tuple[Mapping[str, str], tuple[tuple[str, str], ...]]


def figures() -> list[Figure]:
    ours, theirs = uvloop.run(taking_turns("scripted", bare_scripted, "Good morning.", TURNS))
    figures = [in_milliseconds("scripted", ours.seconds, theirs), waited("scripted", ours)]
    with scripted_model() as url:
        for name in MODELS:
            figures += real(name, url)
    return figures


def in_milliseconds(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    added = [(a - b) * 1000 for a, b in zip(ours, theirs, strict=True)]
    peer = (
        f"the same turns over a bare pipe: {median(theirs) * 1000:.1f} ms; through us: {median(ours) * 1000:.1f} ms; "
        f"the quickest of each: {(min(ours) - min(theirs)) * 1000:+.1f} ms"
    )
    value = median(added)
    return Figure(f"agents.turn_added_{name}", value, "ms", spread(added), peer, "≤ 30 ms", value <= 30)


def in_percent(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    added = [(a / b - 1) * 100 for a, b in zip(ours, theirs, strict=True)]
    peer = f"the quickest of each: {(min(ours) / min(theirs) - 1) * 100:+.1f} %"
    value = median(added)
    return Figure(f"agents.turn_share_{name}", value, "%", spread(added), peer, "≤ 5 %", value <= 5)


def waited(name: str, ours: Ours) -> Figure:
    values = [each * 1000 for each in ours.waited]
    shares = [each / whole * 100 for each, whole in zip(ours.waited, ours.seconds, strict=True)]
    peer = f"of turns of {median(ours.seconds) * 1000:.0f} ms; that is {median(shares):.2g} % of them"
    value = median(values)
    ok = value <= 30 and (median(shares) <= 5 or name == "scripted")
    return Figure(f"agents.turn_waits_for_us_{name}", value, "ms", spread(values), peer, "≤ 30 ms and ≤ 5 %", ok)


# --- taking turns ---


async def taking_turns(
    name: str, bare: Bare, prompt: str, turns: int, lent: Lent | None = None
) -> tuple[Ours, list[float]]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        make_place(folder)
        async with open_runtime(folder) as runtime, bare(folder) as bare_turn:
            options: tuple[tuple[str, str], ...] = ()
            if lent:
                options = (BYPASS,)
                runtime.world.lenders.append(lambda _, __: Loan(env=dict(lent[0]), options=lent[1]))
            await runtime.spawn(SpawnAgent("worker", name, "bench", model=MODELS.get(name, ""), options=options))
            ours: list[float] = []
            theirs: list[float] = []
            spans: list[tuple[float, float]] = []
            for number in range(turns + 1):
                sides = ((ours, partial(through, runtime, spans)), (theirs, bare_turn))
                for taken, turn in sides if number % 2 else sides[::-1]:  # what comes second may find it warm
                    taken.append(await seconds(turn(prompt)))
            wire = wire_path(session_path(runtime.place.transcripts, "bench", 1)).read_bytes()
            waits = [waiting(wire, *span) for span in spans]
            return Ours(ours[1:], waits[1:]), theirs[1:]  # the first waits for the session to start


async def seconds(turn: Awaitable[None]) -> float:
    began = time.perf_counter()
    await turn
    return time.perf_counter() - began


def waiting(wire: bytes, began: float, ended: float) -> float:
    """Seconds of a turn in which the program had said all that it had to say for the time being, and we had not."""
    lines = [json.loads(line) for line in wire.splitlines()]
    total, before = 0.0, began
    for line in (each for each in lines if began <= each["at"] <= ended):
        total += line["at"] - before if line["side"] == "remuda" else 0.0
        before = line["at"]
    return total + ended - before


async def through(runtime: Runtime, spans: list[tuple[float, float]], prompt: str) -> None:
    """Send it, and follow the log as any reader of it would until the turn's end stands there."""
    began = time.time()
    sent = await runtime.send("bench", prompt)
    async for record in follow(runtime.store, sent.seq):
        if isinstance(record.event, TurnEnded):
            assert record.event.outcome is Outcome.COMPLETED, record.event
            spans.append((began, time.time()))
            return


@asynccontextmanager
async def bare_scripted(folder: Path) -> AsyncIterator[Turn]:
    pipe = AcpPipe(await start_pipe(SCRIPTED, folder))
    await pipe.open(folder)
    yield pipe.turn
    await end(pipe)


async def end(pipe: Pipe) -> None:
    pipe.process.terminate()
    await pipe.process.wait()


# --- real programs ---


@contextmanager
def scripted_model() -> Iterator[str]:
    """The model's address. In a process of its own, so that its work is nobody's here."""
    argv = [sys.executable, "-m", "remuda.cli.entry", "dev", "model", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def real(name: str, url: str) -> list[Figure]:
    """In a process of its own, with a home of its own: nothing of the user's is read or written."""
    if not (PROGRAMS / name).exists():
        print(f"turns: {name} is not installed and is left out; `make agents` installs it", file=sys.stderr)
        return []
    code = f"from bench.agents_turns import measure; measure({name!r}, {url!r})"
    with tempfile.TemporaryDirectory(prefix="remuda-bench-home-", ignore_cleanup_errors=True) as home:
        kept = {key: os.environ[key] for key in ("LANG", "TMPDIR") if key in os.environ}
        path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
        env = {**kept, "HOME": home, "PATH": path}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (seconds, waits), theirs = json.loads(done.stdout)
    ours = Ours(seconds, waits)
    return [in_milliseconds(name, seconds, theirs), in_percent(name, seconds, theirs), waited(name, ours)]


def measure(name: str, url: str) -> None:
    env, options = metered(CATALOG[name], url, "bench")
    lent = ({**env, **SWITCHES.get(name, {}), "HOME": os.environ["HOME"]}, options)
    turns = taking_turns(name, lambda folder: bare_program(name, folder, lent), WORK, REAL_TURNS, lent)
    ours, theirs = uvloop.run(turns)
    sys.stdout.write(json.dumps([[ours.seconds, ours.waited], theirs]))


@asynccontextmanager
async def bare_program(name: str, folder: Path, lent: Lent) -> AsyncIterator[Turn]:
    """The same program, with the arguments and the environment that Remuda gives it."""
    options = (BYPASS, *lent[1])
    launch = Launch("bare", 1, name, folder, "bench-bare", dict(lent[0]), MODELS[name], options=options)
    ready, program = prepare(row := CATALOG[name], launch)
    pipe: ClaudePipe | CodexPipe | AcpPipe
    match name:
        case "claude":
            argv, env = claude.command(program, ready, ready.resume)
            pipe = ClaudePipe(await start_pipe(argv, folder, whole_environment(env, launch.mark)))
        case "codex":
            argv, env = codex.command(program, ready)
            pipe = CodexPipe(await start_pipe(argv, folder, whole_environment(env, launch.mark)))
            await pipe.open(codex.thread(ready, "thread/start"))
        case _:
            pipe = AcpPipe(await start_pipe(program, folder, whole_environment(ready.env, launch.mark)))
            await pipe.open(folder, row.quirks.bypass_mode)
    try:
        yield pipe.turn
    finally:
        await end(pipe)
