"""The kernel: commands through the loop, recovery, `remuda ps`, memory.

The raw peer of the durable loop is the least that any program could do for the same promise: the same rows, as many
producers, each waiting until its own append is on the disk, one writer thread that commits what has gathered. It
decides nothing, checks nothing, shows nothing.
"""

import asyncio
import gc
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from bench.figure import Figure, interleaved, median, spread
from remuda.domain.commands import Command, ReportSessionStarted, ReportTurnEnded, ReportUsage, SendMessage, SpawnAgent
from remuda.domain.decide import decide
from remuda.domain.errors import Refused
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import Outcome, Sender, State, Usage
from remuda.runtime.loop import Loop
from remuda.store import Store
from remuda.store.file import open_log
from remuda.store.memory import MemoryStore
from remuda.store.sqlite import SqliteStore

AGENTS = 100
PRODUCERS = 200
COMMANDS = 20_000
TEXT = "Please look at the failing test in the parser and mend it. " * 2


def figures() -> list[Figure]:
    return [*throughput(), *recovery(), *ps(), memory()]


def owe_nothing(_durable: object, _current: object) -> None:
    """The world is not what is measured here."""


# --- commands through the loop ---


def throughput() -> list[Figure]:
    rows = recorded_rows()
    memory, durable, raw = interleaved(
        5,
        lambda: asyncio.run(through(MemoryStore)),
        lambda: asyncio.run(through_sqlite()),
        lambda: asyncio.run(raw_appends(rows)),
    )
    ratios = [ours / theirs for ours, theirs in zip(durable, raw, strict=True)]
    peer = f"raw SQLite appends of the same bytes: {median(raw):,.0f} commands/s"
    return [
        Figure(
            "kernel.commands_in_memory",
            median(memory),
            "commands/s",
            spread(memory),
            peer,
            "≥ 10,000",
            median(memory) >= 10_000,
        ),
        Figure(
            "kernel.commands_durable",
            median(durable),
            "commands/s",
            spread(durable),
            peer,
            "≥ 5,000",
            median(durable) >= 5_000,
        ),
        Figure("kernel.durable_to_raw", median(ratios), "×", spread(ratios), peer, "≥ 0.5 ×", median(ratios) >= 0.5),
    ]


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as folder:
        yield Path(folder)


async def through(make: Callable[[], Store]) -> float:
    """Commands/s of a day's work: every agent is sent messages and ends its turns, all producers at once."""
    store = make()
    loop = Loop(store, State(), owe=owe_nothing, clock=time.time)
    running = asyncio.ensure_future(loop.run())
    for number in range(AGENTS):
        await loop.submit(SpawnAgent("worker", "scripted", f"w-{number}"))
        await loop.submit(ReportSessionStarted(f"w-{number}", 1, "ref"))
    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*(produce(loop, number) for number in range(PRODUCERS)))
    seconds = time.perf_counter() - began
    loop.stop(Refused("done"))
    await running
    await store.close()
    return COMMANDS / seconds


async def produce(loop: Loop, number: int) -> None:
    name = f"w-{number % AGENTS}"
    for count in range(COMMANDS // PRODUCERS):
        await loop.submit(next_command(loop.state, name, f"{number}-{count}"))


def next_command(state: State, name: str, order: str) -> Command:
    """An agent at work ends its turn, every other time after a model call; one at rest gets a message."""
    agent = state.agents[name]
    if agent.turn is None:
        return SendMessage(name, order, Sender.USER, "user", TEXT)
    assert agent.session is not None
    if agent.session.calls < agent.turn.number:
        return ReportUsage(name, 1, agent.turn.number, agent.turn.number, Usage(1200, 34, 100, 0, 1334, 200_000, 5_000))
    return ReportTurnEnded(name, 1, agent.turn.number, Outcome.COMPLETED, "end_turn")


async def through_sqlite() -> float:
    with fresh_folder() as folder:
        return await through(lambda: SqliteStore(folder / "log.db"))


Rows = list[tuple[object, ...]]


def recorded_rows() -> list[Rows]:
    """What the loop writes for this work, a list of rows for each command."""
    with fresh_folder() as folder:
        asyncio.run(through(lambda: SqliteStore(folder / "log.db")))
        db = open_log(folder / "log.db", readonly=True)
        commands: list[Rows] = []
        last: tuple[object, object] | None = None
        for row in db.execute(
            "select seq, at, cause, kind, agent, data from events where seq > ? order by seq", (AGENTS * 5,)
        ):
            key = (row[1], row[4])
            if key != last:
                commands.append([])
            last = key
            commands[-1].append(row)
        db.close()
        return commands


async def raw_appends(commands: list[Rows]) -> float:
    with fresh_folder() as folder:
        db = open_log(folder / "raw.db")
        appender = RawAppender(db)
        began = time.perf_counter()
        share = len(commands) // PRODUCERS
        await asyncio.gather(*(raw_produce(appender, commands[n * share : (n + 1) * share]) for n in range(PRODUCERS)))
        seconds = time.perf_counter() - began
        appender.close()
        return share * PRODUCERS / seconds


async def raw_produce(appender: "RawAppender", commands: list[Rows]) -> None:
    for rows in commands:
        await appender.append(rows)


class RawAppender:
    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[Rows, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def append(self, rows: Rows) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((rows, done))
        return done

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._db.close()

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            group = [job]
            while not self._jobs.empty():
                if (more := self._jobs.get()) is None:
                    return
                group.append(more)
            with self._db:
                self._db.executemany(
                    "insert into events (seq, at, cause, kind, agent, data) values (?, ?, ?, ?, ?, ?)",
                    [row for rows, _ in group for row in rows],
                )
            self._loop.call_soon_threadsafe(_all_done, [done for _, done in group])


def _all_done(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


# --- recovery ---

RECOVERY_AGENTS, RECOVERY_EVENTS = 1_000, 1_000_000
SNAPSHOT_TAIL = 9_999  # the most that a runtime can have written since its last snapshot

READY = """
import asyncio, sys, time
from pathlib import Path
from bench.kernel import owe_nothing
from remuda.domain.commands import StartRuntime
from remuda.runtime.loop import Loop
from remuda.store.sqlite import SqliteStore

async def main():
    began = time.perf_counter()
    store = SqliteStore(Path(sys.argv[1]))
    state = await store.restore()
    restored = time.perf_counter() - began
    loop = Loop(store, state, owe=owe_nothing, clock=time.time)
    running = asyncio.ensure_future(loop.run())
    if sys.argv[2] == "start":
        await loop.submit(StartRuntime("bench"))
    print(time.perf_counter() - began, restored, len(state.agents), state.seq)

asyncio.run(main())
"""


def recovery() -> list[Figure]:
    with fresh_folder() as folder:
        log, old = folder / "log.db", folder / "old.db"
        asyncio.run(write_history(log))
        copy_without_snapshots(log, old)
        with_snapshot, from_zero = [], []
        for number in range(3):
            # Each start adds its own events, so each round takes a fresh copy of the same history.
            copy = folder / f"copy-{number}.db"
            copy.write_bytes(log.read_bytes())
            with_snapshot.append(ready_seconds(copy, "start"))
            from_zero.append(ready_seconds(old, "look"))
    peer = f"replay of all events from zero: {median(from_zero):.1f} s"
    value = median(with_snapshot)
    return [Figure("kernel.recovery", value, "s", spread(with_snapshot), peer, "≤ 3 s", value <= 3)]


def ready_seconds(path: Path, how: str) -> float:
    """A new process, from opening the file until it would take its first command."""
    done = subprocess.run([sys.executable, "-c", READY, str(path), how], capture_output=True, text=True, check=True)
    seconds, _, agents, seq = done.stdout.split()
    assert int(agents) == RECOVERY_AGENTS
    assert int(seq) >= RECOVERY_EVENTS
    return float(seconds)


async def write_history(path: Path) -> None:
    """The days of a thousand agents, decided by the domain and written as the loop writes them."""
    store = SqliteStore(path)
    state, records = State(), []
    for command in history(state):
        for event in decide(state, command, 1e9 + state.seq / 100):
            record = Recorded(state.seq + 1, 1e9 + state.seq / 100, "", event)
            evolve(state, record)
            records.append(record)
        if len(records) >= 5_000 or state.seq >= RECOVERY_EVENTS:
            await store.append(records)
            records = []
            if RECOVERY_EVENTS - SNAPSHOT_TAIL - 5_000 < state.seq <= RECOVERY_EVENTS - SNAPSHOT_TAIL + 10:
                await store.save_snapshot(state)
    await store.close()


def history(state: State) -> Iterator[Command]:
    names = [f"worker-{number}" for number in range(1, RECOVERY_AGENTS + 1)]
    for name in names:
        yield SpawnAgent("worker", "scripted", name)
        yield ReportSessionStarted(name, 1, "ref")
    number = 0
    while state.seq < RECOVERY_EVENTS:
        number += 1
        yield next_command(state, names[number % RECOVERY_AGENTS], str(number))


def copy_without_snapshots(log: Path, copy: Path) -> None:
    copy.write_bytes(log.read_bytes())
    db = open_log(copy)
    db.execute("delete from snapshots")
    db.close()


# --- the command line ---


def ps() -> list[Figure]:
    with fresh_folder() as folder:
        remuda = [str(Path(sys.executable).with_name("remuda"))]
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run([*remuda, "init"], cwd=folder, check=True, capture_output=True)
        asyncio.run(spawn_idle(folder / ".remuda" / "remuda.db", 1_000))
        subprocess.run([*remuda, "up", "-d"], cwd=folder, check=True, capture_output=True)
        try:
            listed = subprocess.run([*remuda, "ps"], cwd=folder, check=True, capture_output=True, text=True).stdout
            assert listed.count("worker-") == 1_000, "ps does not list every agent"
            ours, bare = interleaved(
                25, lambda: wall([*remuda, "ps"], folder), lambda: wall([sys.executable, "-c", "pass"], folder)
            )
        finally:
            subprocess.run([*remuda, "down"], cwd=folder, check=True, capture_output=True)
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    peer = f"python -c pass: {median(bare) * 1000:.1f} ms; ps: {median(ours) * 1000:.1f} ms"
    return [Figure("kernel.ps_to_python", median(ratios), "×", spread(ratios), peer, "≤ 3 ×", median(ratios) <= 3)]


async def spawn_idle(path: Path, count: int) -> None:
    store = SqliteStore(path)
    loop = Loop(store, State(), owe=owe_nothing, clock=time.time)
    running = asyncio.ensure_future(loop.run())
    await give_each_a_turn(loop, count)
    loop.stop(Refused("done"))
    await running
    await store.close()


async def give_each_a_turn(loop: Loop, count: int) -> None:
    for number in range(1, count + 1):
        name = f"worker-{number}"
        await loop.submit(SpawnAgent("worker", "scripted", name))
        await loop.submit(ReportSessionStarted(name, 1, f"session-{number}"))
        for order in range(3):
            await loop.submit(next_command(loop.state, name, f"{number}-{order}"))


def wall(command: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


# --- memory ---

IDLE = """
import asyncio, os, sys, tempfile, time
from pathlib import Path
from bench.kernel import give_each_a_turn, owe_nothing
from remuda.domain.state import State
from remuda.runtime.loop import Loop
from remuda.store.sqlite import SqliteStore

async def main():
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "log.db")
        loop = Loop(store, State(), owe=lambda durable, current: None, clock=time.time)
        running = asyncio.ensure_future(loop.run())
        await give_each_a_turn(loop, int(sys.argv[1]))
        pages = int(open("/proc/self/statm").read().split()[1])
        print(pages * os.sysconf("SC_PAGE_SIZE"))

asyncio.run(main())
"""


def memory() -> Figure:
    """Resident memory of a runtime that knows many agents at rest, against one that knows few."""
    few, many = 100, 5_100
    low, high = interleaved(3, lambda: resident(few), lambda: resident(many))
    each = [(more - less) / (many - few) / 1024 for less, more in zip(low, high, strict=True)]
    peer = f"the same process with {few} agents: {median(low) / 2**20:.0f} MiB"
    return Figure(
        "kernel.memory_per_idle_agent", median(each), "KiB", spread(each), peer, "≤ 20 KiB", median(each) <= 20
    )


def resident(agents: int) -> float:
    done = subprocess.run([sys.executable, "-c", IDLE, str(agents)], capture_output=True, text=True, check=True)
    return float(done.stdout)
