"""One supervisor of child processes: whatever starts an agent's program starts it here.

A `Child` leads its own session, sees only the environment it was given, cannot block on a full pipe, and is ended
with everything it started. How that is made sure of is a ladder; each rung holds what slips past the one before:

    cgroup       all that it started, whatever it did to hide              cgroup.py, where one may be made
    subreaper    orphans become our children, so that none is lost         orphans.py, Linux
    group        a session and a process group of its own                  everywhere
    pdeathsig    the kernel kills it when we die, though not its children  where `setpriv` of util-linux is
    mark         a variable in its environment, which all it starts have   strays.py, where /proc is

The loop tells us of the exit itself (`process_exited`); that is why this is a protocol of the loop and not
`create_subprocess_exec`, whose `wait` also waits for the pipes to close. A grandchild left behind may hold
them open for ever.
"""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, cast

from remuda.agents import Ended, Launch, Listen, Wire, cgroup, orphans, strays
from remuda.agents.cgroup import Leaf
from remuda.agents.clearing import Cleared, clear
from remuda.agents.pipes import LINE_LIMIT, TAIL, Hear, Pipes
from remuda.agents.sandbox import sandboxed
from remuda.agents.strays import MARK, PATIENCE
from remuda.domain.errors import AgentFault, EffectFailed
from remuda.domain.failure import Failure

__all__ = ["LINE_LIMIT", "MARK", "TAIL", "Child", "Hear", "environment", "sweep"]

log = logging.getLogger("remuda.process")

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "TZ")
STDIN_LIMIT = 4 * 1024 * 1024  # bytes that may wait for a child which does not read them

Make = Callable[[Listen, Hear], Pipes]

# Seconds. All of them together are less than the five in which a tree must be gone.
CANCEL = 1.0  # from asking it to stop its turn to SIGTERM
GRACE = 1.5  # from SIGTERM to SIGKILL; strays.PATIENCE is for the rest


def environment(declared: Mapping[str, str], mark: str) -> dict[str, str]:
    """All that a child sees: what any program needs, what was declared for it, and the mark."""
    needed = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**needed, **declared, MARK: mark}


def sweep(prefix: str) -> list[int]:
    """End what an earlier runtime left of the marks that start with `prefix`: by cgroup, then by mark. It blocks."""
    by_mark = strays.sweep(prefix)
    return sorted({*by_mark, *cgroup.sweep(prefix)})


class Child:
    """A running program and all that it starts, until `end`."""

    def __init__(self, mark: str, pipes: Pipes, listen: Listen, leaf: Leaf | None) -> None:
        self.pid = pipes.transport.get_pid()
        self._mark = mark
        self._pipes = pipes
        self._listen = listen
        self._leaf = leaf
        self._hurry = asyncio.Event()
        self._ending: asyncio.Task[Ended] | None = None
        orphans.own.pids.add(self.pid)
        pipes.over.add_done_callback(lambda _: orphans.own.pids.discard(self.pid))

    @classmethod
    async def start(
        cls, argv: Sequence[str], launch: Launch, listen: Listen, hear: Hear, made: Make = Pipes
    ) -> "Child":
        env = environment(launch.env, launch.mark)
        if launch.sandbox is not None:
            argv = sandboxed(argv, launch.cwd, network=launch.sandbox.network, writable=launch.sandbox.writable)
        program = shutil.which(argv[0], path=env.get("PATH"))
        if program is None:
            said = f"there is no program {argv[0]!r}; install it or correct PATH"
            raise AgentFault(said, Failure.NOT_INSTALLED)
        argv = (program, *argv[1:])
        leaf, ahead = await asyncio.to_thread(_prepare, launch.mark)
        try:
            with leaf.closed() if leaf else nullcontext():
                pipes = made(listen, hear)
                with orphans.own.start():
                    await _execute(ahead, argv, launch, env, pipes)
                    child = cls(launch.mark, pipes, listen, leaf)
                await child._enter()
        except BaseException:
            if leaf:
                leaf.remove()
            raise
        return child

    async def _enter(self) -> None:
        """Into its cgroup, while the gate is closed. When that cannot be, it does without."""
        if self._leaf is None:
            return
        try:
            await asyncio.to_thread(self._leaf.admit, self.pid)
        except OSError as error:
            log.warning("process %d is not in its cgroup: %s", self.pid, error)
            self._leaf = None
        except BaseException:
            await self.end(gentle=False)
            raise

    def send(self, line: str, *, shown: str = "") -> None:
        """Write one line to its stdin. Does nothing when nobody can read it: the exit is told elsewhere.

        The transcript keeps it as it is `shown`, where it holds what nobody should read there.
        """
        self._listen(Wire("remuda", shown or line))
        self.write(line.encode())

    def write(self, line: bytes) -> None:
        """The same, and nothing is kept of it."""
        stdin = self._stdin()
        if stdin is None or stdin.is_closing():
            return
        waiting = stdin.get_write_buffer_size()
        if waiting > STDIN_LIMIT:
            what = self._pipes.what
            self._pipes.fail(AgentFault(f"the {what} does not read: {waiting} bytes wait for it{self.evidence()}"))
        else:
            stdin.write(line + b"\n")

    @property
    def exited(self) -> bool:
        """Whether the process itself is gone. What it started may still write to its pipes."""
        return self._pipes.exited

    def evidence(self) -> str:
        return self._pipes.evidence()

    async def gone(self) -> Ended:
        """Wait until the process has exited, for whatever reason. What it started may live on: see `end`."""
        return await asyncio.shield(self._pipes.over)

    async def end(
        self, *, gentle: bool, grace: float = GRACE, cancel: Callable[[], Awaitable[object]] | None = None
    ) -> Ended:
        """End the process and everything it started. Idempotent; an ungentle call hurries a gentle one.

        `cancel` asks the program in its own protocol to stop what it does, and returns when it has. What is `left`
        in the result would not die; call again to try again.
        """
        if not gentle:
            self._hurry.set()
        if self._ending is None or _failed(self._ending):
            self._pipes.ending = not self._pipes.exited
            self._ending = asyncio.create_task(self._end(grace, cancel))
        return await asyncio.shield(self._ending)

    async def _end(self, grace: float, cancel: Callable[[], Awaitable[object]] | None) -> Ended:
        if cancel and not self._hurry.is_set() and not self._pipes.exited:
            await self._hurried_or(asyncio.ensure_future(cancel()), CANCEL)
        if not self._hurry.is_set() and not self._pipes.exited:
            if stdin := self._stdin():
                stdin.close()
            self._signal(signal.SIGTERM)
            await self._hurried_or(self._pipes.over, grace)
        return await self._kill()

    async def _kill(self) -> Ended:
        self._signal(signal.SIGKILL)
        waiting = asyncio.wait({self._pipes.over}, timeout=PATIENCE)
        cleared, _ = await asyncio.gather(clear(self._mark, self._leaf), waiting)
        self._pipes.give_up()
        return self._told(cleared)

    def _told(self, cleared: Cleared) -> Ended:
        escaped = [pid for pid, group in cleared.killed.items() if group not in (0, self.pid)]
        left = set(cleared.left)
        if self._pipes.over.done():
            ended = self._pipes.over.result()
        else:
            left.add(self.pid)
            ended = Ended(None, f"process {self.pid} did not die of SIGKILL (yet)", self._pipes.stderr_text())
        detail = f"; killed {len(escaped)} stray processes" if escaped else ""
        detail += f"; still alive: {sorted(left)}" if left else ""
        return replace(ended, detail=ended.detail + detail, left=tuple(sorted(left)))

    async def _hurried_or(self, other: "asyncio.Future[Any]", seconds: float) -> None:
        """Wait for the other, but no longer than that, nor when somebody is in a hurry, nor past the exit."""
        hurried = asyncio.create_task(self._hurry.wait())
        any_of: set[asyncio.Future[Any]] = {self._pipes.over, hurried, other}
        await asyncio.wait(any_of, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if other is not self._pipes.over:
            other.cancel()
            await asyncio.gather(other, return_exceptions=True)  # however the asking went, the next rung follows

    def _signal(self, number: signal.Signals) -> None:
        # Once the leader is reaped its number can go to a stranger, but not while its group has members. So
        # if a process of that number exists now, the group that we would signal is not ours.
        if self._pipes.exited and _exists(self.pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._pipes.transport.get_pipe_transport(0))


async def _execute(
    ahead: Sequence[str], argv: Sequence[str], launch: Launch, env: Mapping[str, str], pipes: Pipes
) -> None:
    loop = asyncio.get_running_loop()
    try:
        await loop.subprocess_exec(lambda: pipes, *ahead, *argv, cwd=launch.cwd, env=env, start_new_session=True)
    except OSError as error:
        raise AgentFault(f"could not start {argv[0]} in {launch.cwd}: {error}") from error


def _prepare(mark: str) -> tuple[Leaf | None, tuple[str, ...]]:
    """A cgroup, where one can be had, and what goes ahead of the program. Looks for programs, so it blocks."""
    setpriv = cgroup.tool("setpriv")
    ahead = (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()
    try:
        leaf = cgroup.make(mark)
    except EffectFailed:  # the other rungs must do; `remuda doctor` tells why
        return None, ahead
    return leaf, (*ahead, *leaf.gate)


def _failed(ending: "asyncio.Task[Ended]") -> bool:
    return ending.done() and (ending.cancelled() or ending.exception() is not None or bool(ending.result().left))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
