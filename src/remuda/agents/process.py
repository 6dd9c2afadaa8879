"""One supervisor of child processes: whatever starts an agent's program starts it here.

A `Child` leads its own session, sees only the environment it was given, cannot block on a full pipe, and is
ended with everything it started. The kernel kills it when we die (where `setpriv` exists); what escapes even
that is found by its mark.

The loop tells us of the exit itself (`process_exited`); that is why this is a protocol of the loop and not
`create_subprocess_exec`, whose `wait` also waits for the pipes to close. A grandchild left behind may hold
them open for ever.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, cast

from remuda.agents import Ended, Launch, Listen, Wire
from remuda.agents.strays import MARK, PATIENCE, Cull, cull, sweep
from remuda.domain.errors import AgentFault, EffectFailed, RemudaError

__all__ = ["MARK", "Child", "Hear", "environment", "sweep"]

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "TZ")
LINE_LIMIT = 16 * 1024 * 1024
STDERR_LINE = 64 * 1024  # stderr is for people: a longer line is logged in pieces
TAIL = 4096
GRACE = 2.0  # seconds from SIGTERM to SIGKILL
SETTLE = 0.3  # seconds to read what is still in the pipes after the exit, when someone else holds them open

# Gets each line of the child's stdout, and at last why there will be no more.
Hear = Callable[[str | RemudaError], None]


def environment(declared: Mapping[str, str], mark: str) -> dict[str, str]:
    """All that a child sees: what any program needs, what was declared for it, and the mark."""
    needed = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**needed, **declared, MARK: mark}


class Lines:
    """Cuts a stream of bytes into lines. `pending` bytes wait for the end of theirs."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.pending = 0

    def feed(self, data: bytes) -> list[bytes]:
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = self.take() + whole[0]
        self._parts.append(rest)
        self.pending += len(rest)
        return whole

    def take(self) -> bytes:
        """What there is of an unfinished line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self.pending = 0
        return rest


class Pipes(asyncio.SubprocessProtocol):
    """What the event loop tells about one process, turned into lines and one end."""

    def __init__(self, listen: Listen, hear: Hear) -> None:
        self.over: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.exited = False
        self.ending = False  # we are ending it, so its exit is no surprise
        self.tail = b""
        self._listen = listen
        self._hear = hear
        self._broken = False
        self._said = Lines()
        self._complained = Lines()
        self._settling: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        try:
            if fd == 1:
                self._take_stdout(data)
            else:
                self._take_stderr(data)
        except Exception as error:  # whoever waits for an answer must learn that none can come
            self._break(EffectFailed(f"a line of the agent's output could not be taken in: {error!r}"))

    def process_exited(self) -> None:
        self.exited = True
        self._settling = asyncio.get_running_loop().call_later(SETTLE, self._settle)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        self._settle()

    def _take_stdout(self, data: bytes) -> None:
        if self._broken:  # still read, so that the child does not block, but no longer of use
            return None
        for line in self._said.feed(data):
            if len(line) > LINE_LIMIT:
                return self._break_at(line)
            text = line.decode(errors="replace")
            self._listen(Wire("agent", text))
            if text.strip() and not self._broken:
                self._hear(text)
        if self._said.pending > LINE_LIMIT:
            self._break_at(self._said.take())
        return None

    def _take_stderr(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-TAIL:]
        for line in self._complained.feed(data):
            self._listen(Wire("stderr", line.decode(errors="replace")))
        if self._complained.pending > STDERR_LINE:
            self._listen(Wire("stderr", self._complained.take().decode(errors="replace")))

    def _break_at(self, line: bytes) -> None:
        start = line[:200].decode(errors="replace")
        self._listen(Wire("agent", start))
        self._break(AgentFault(f"the agent wrote a line of more than {LINE_LIMIT} bytes; it begins: {start}"))

    def _break(self, fault: RemudaError) -> None:
        if not self._broken:
            self._broken = True
            self._hear(fault)

    def _settle(self) -> None:
        """The process is gone and its pipes are read, or nobody waits for them any longer."""
        if self._settling:
            self._settling.cancel()
        if self.over.done():
            return
        ended = Ended(code := self.transport.get_returncode(), describe(code), self.stderr_text())
        self.over.set_result(ended)
        self.transport.close()
        by = " (ended by Remuda)" if self.ending else ""
        try:
            self._log_unfinished_lines()
        finally:
            self._break(AgentFault(f"the agent's process {ended.detail}{by}{self.evidence()}"))

    def _log_unfinished_lines(self) -> None:
        # Half a line is kept for the transcript but not interpreted: it would hide why the process died.
        sides: tuple[tuple[Literal["agent", "stderr"], Lines], ...]
        sides = (("agent", self._said), ("stderr", self._complained))
        for side, lines in sides:
            if rest := lines.take():
                self._listen(Wire(side, rest.decode(errors="replace")))

    def stderr_text(self) -> str:
        return self.tail.decode(errors="replace")

    def evidence(self) -> str:
        tail = self.stderr_text().strip()
        return f"; the last it wrote to stderr:\n{tail}" if tail else "; it wrote nothing to stderr"


class Child:
    """A running program and all that it starts, until `end`."""

    def __init__(self, mark: str, pipes: Pipes, listen: Listen) -> None:
        self.pid = pipes.transport.get_pid()
        self._mark = mark
        self._pipes = pipes
        self._listen = listen
        self._hurry = asyncio.Event()
        self._ending: asyncio.Task[Ended] | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], launch: Launch, listen: Listen, hear: Hear) -> "Child":
        env = environment(launch.env, launch.mark)
        if shutil.which(argv[0], path=env.get("PATH")) is None:
            raise AgentFault(f"there is no program {argv[0]!r}; install it or correct PATH")
        loop = asyncio.get_running_loop()
        try:
            _, pipes = await loop.subprocess_exec(
                lambda: Pipes(listen, hear),
                *_launcher(),
                *argv,
                cwd=launch.cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise AgentFault(f"could not start {argv[0]} in {launch.cwd}: {error}") from error
        return cls(launch.mark, pipes, listen)

    def send(self, line: str) -> None:
        """Write one line to its stdin. Does nothing when nobody can read it: the exit is told elsewhere."""
        self._listen(Wire("remuda", line))
        stdin = self._stdin()
        if stdin and not stdin.is_closing():
            stdin.write(line.encode() + b"\n")

    def evidence(self) -> str:
        return self._pipes.evidence()

    async def gone(self) -> Ended:
        """Wait until the process has exited, for whatever reason. What it started may live on: see `end`."""
        return await asyncio.shield(self._pipes.over)

    async def end(self, *, gentle: bool, grace: float = GRACE) -> Ended:
        """End the process and everything it started. Idempotent; an ungentle call hurries a gentle one."""
        if not gentle:
            self._hurry.set()
        if self._ending is None:
            self._pipes.ending = not self._pipes.exited
            self._ending = asyncio.create_task(self._end(grace))
        return await asyncio.shield(self._ending)

    async def _end(self, grace: float) -> Ended:
        if not self._hurry.is_set() and not self._pipes.exited:
            if stdin := self._stdin():
                stdin.close()
            self._signal(signal.SIGTERM)
            await self._gone_or_hurried(grace)
        self._signal(signal.SIGKILL)
        await asyncio.wait({self._pipes.over}, timeout=PATIENCE)
        strays = await asyncio.to_thread(cull, lambda mark: mark == self._mark)
        if not self._pipes.over.done():
            return Ended(None, f"process {self.pid} did not die of SIGKILL (yet)", self._pipes.stderr_text())
        ended = self._pipes.over.result()
        return replace(ended, detail=ended.detail + _about(strays))

    async def _gone_or_hurried(self, grace: float) -> None:
        hurried = asyncio.create_task(self._hurry.wait())
        either: set[asyncio.Future[Any]] = {self._pipes.over, hurried}
        await asyncio.wait(either, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()

    def _signal(self, number: signal.Signals) -> None:
        # Once the leader is reaped its number can go to a stranger, but not while its group has members. So
        # if a process of that number exists now, the group that we would signal is not ours.
        if self._pipes.exited and _exists(self.pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._pipes.transport.get_pipe_transport(0))


def describe(returncode: int | None) -> str:
    if returncode is None:
        return "is gone, nobody knows how"
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def _about(strays: Cull) -> str:
    killed = f"; killed {len(strays.killed)} stray processes" if strays.killed else ""
    left = f"; still alive: {list(strays.left)}" if strays.left else ""
    return killed + left


def _launcher() -> tuple[str, ...]:
    """Have the kernel kill the child when we die. It does not reach grandchildren; the mark does."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
