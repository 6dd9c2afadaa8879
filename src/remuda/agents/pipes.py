"""The pipes of one child: what the event loop tells about them, turned into lines and one end.

Nothing here waits for anybody. A child that writes faster than its lines are taken in is no longer read until they
are, so its own write blocks and our memory does not grow; and its lines are taken in for a little while at a time,
so that a flood does not keep the loop from everything else.
"""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Literal, cast

from remuda.agents import Ended, Listen, Wire
from remuda.domain.errors import AgentFault, EffectFailed, RemudaError
from remuda.domain.failure import Failure

STDOUT, STDERR = 1, 2
LINE_LIMIT = 16 * 1024 * 1024
STDERR_LINE = 64 * 1024  # stderr is for people: a longer line is logged in pieces
TAIL = 4096
SLICE = 0.002  # seconds to take in lines before everything else on the loop has its turn
SETTLE = 0.03  # seconds between two looks, after the exit, at pipes that someone else holds open
QUIET = 10  # looks without a word until they are given up
AFTERWARDS = 1024 * 1024  # bytes that are read after the exit; the pipes themselves hold much less

# Gets each line of the child's stdout, and at last why there will be no more.
Hear = Callable[[str | RemudaError], None]

_SIDES: dict[int, Literal["agent", "stderr"]] = {STDOUT: "agent", STDERR: "stderr"}


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
    """Those of an agent's program. A program of another kind says what it is, how long its lines may be, and who takes
    them."""

    what = "agent"
    limits: Mapping[int, int] = {STDOUT: LINE_LIMIT, STDERR: STDERR_LINE}

    def __init__(self, listen: Listen, hear: Hear) -> None:
        self.over: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.exited = False
        self.ending = False  # we are ending it, so its exit is no surprise
        self.tail = b""
        self._listen = listen
        self._hear = hear
        self._broken = False
        self._unfinished = {STDOUT: Lines(), STDERR: Lines()}
        self._waiting: deque[tuple[int, bytes]] = deque()  # lines that have come and are not taken in yet
        self._held = False  # nothing is read while lines wait
        self._room = AFTERWARDS
        self._quiet = 0
        self._closed = False
        self._settling: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._quiet = 0
        if self.exited:
            self._room -= len(data)
        if fd == STDERR:
            self.tail = (self.tail + data)[-TAIL:]
        elif self._broken:  # still read, so that the child does not block, but no longer of use
            return
        lines = self._unfinished[fd]
        self._waiting.extend((fd, line) for line in lines.feed(data))
        if lines.pending > self.limits[fd]:
            self._waiting.append((fd, lines.take()))
        if not self._held:
            self._take_in()

    def process_exited(self) -> None:
        self.exited = True
        self._settle()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        self._closed = True
        self._settle()

    def fail(self, fault: RemudaError) -> None:
        """Nothing of use can come any more. Whoever waits for an answer learns why; only the first reason counts."""
        if not self._broken:
            self._broken = True
            self._hear(fault)

    # --- taking in ---

    def _take_in(self) -> None:
        until = monotonic() + SLICE
        while self._waiting and monotonic() < until:
            fd, line = self._waiting.popleft()
            try:
                self._take(fd, line)
            except Exception as error:  # whoever waits for an answer must learn that none can come
                self.fail(EffectFailed(f"a line of the {self.what}'s output could not be taken in: {error!r}"))
        self._hold(bool(self._waiting) or self._room <= 0)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take_in)

    def _take(self, fd: int, line: bytes) -> None:
        if fd == STDERR:
            self._listen(Wire("stderr", line.decode(errors="replace")))
        elif self._broken:
            return
        elif len(line) > self.limits[STDOUT]:
            self._break_at(line)
        else:
            self.take_line(line)

    def take_line(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        self._listen(Wire("agent", text))
        if text.strip():
            self._hear(text)

    def _break_at(self, line: bytes) -> None:
        start = line[:200].decode(errors="replace")
        self._listen(Wire("agent", start))
        limit = self.limits[STDOUT]
        said = f"the {self.what} wrote a line of more than {limit} bytes; it begins: {start}"
        self.fail(AgentFault(said, Failure.MALFORMED))

    def _hold(self, hold: bool) -> None:
        if hold == self._held:
            return
        self._held = hold
        for fd in self.limits:
            pipe = cast("asyncio.ReadTransport | None", self.transport.get_pipe_transport(fd))
            if pipe is None or pipe.is_closing():
                continue
            if hold:
                pipe.pause_reading()
            else:
                pipe.resume_reading()

    # --- the end ---

    def give_up(self) -> None:
        """Whoever ends it can wait no longer for its last lines."""
        if self.exited and not self.over.done():
            self._finish()

    def _settle(self) -> None:
        """The process is gone. It is over when its pipes are read to their end, or nobody waits for it any longer."""
        if self._settling:
            self._settling.cancel()
        if self.over.done():
            return
        if not self._waiting and (self._closed or self._quiet >= QUIET or self._room <= 0):
            self._finish()
            return
        # Looks are counted and not seconds: on a machine that stood still nothing could have been read in them.
        self._quiet += not self._waiting
        self._settling = asyncio.get_running_loop().call_later(SETTLE, self._settle)

    def _finish(self) -> None:
        ended = Ended(code := self.transport.get_returncode(), describe(code), self.stderr_text())
        self.over.set_result(ended)
        self.transport.close()
        by = " (ended by Remuda)" if self.ending else ""
        try:
            self._log_unfinished_lines()
        finally:
            self.fail(AgentFault(f"the {self.what}'s process {ended.detail}{by}{self.evidence()}"))

    def _log_unfinished_lines(self) -> None:
        # Half a line is kept for the transcript but not interpreted: it would hide why the process died.
        for fd, lines in self._unfinished.items():
            if rest := lines.take():
                self._listen(Wire(_SIDES[fd], rest.decode(errors="replace")))

    def stderr_text(self) -> str:
        return self.tail.decode(errors="replace")

    def evidence(self) -> str:
        tail = self.stderr_text().strip()
        return f"; the last it wrote to stderr:\n{tail}" if tail else "; it wrote nothing to stderr"


def describe(returncode: int | None) -> str:
    if returncode is None:
        return "is gone, nobody knows how"
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"
