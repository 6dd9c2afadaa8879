"""A tool server that is a program of ours: one message a line, in a process group and a cgroup of its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from remuda.agents import Launch, Listen
from remuda.agents.pipes import STDERR, STDERR_LINE, STDOUT, Hear, Pipes
from remuda.agents.process import Child
from remuda.domain.errors import AgentFault, RemudaError
from remuda.gateway import link
from remuda.gateway.faults import ServerFault
from remuda.mcp.outbox import Outbox
from remuda.mcp.routing import Marks

LONGEST_LINE = 64 << 20  # bytes; a longer message is no message, and its server is started anew
GRACE = 1.0  # seconds from SIGTERM to SIGKILL


class Program(NamedTuple):
    name: str  # of the server
    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    mark: str  # unique to this start
    masked: Callable[[str], str]  # takes secrets out of whatever is said of it


class ServerPipes(Pipes):
    what = "tool server"
    limits = {STDOUT: LONGEST_LINE, STDERR: STDERR_LINE}  # noqa: RUF012 - never changed

    def __init__(self, listen: Listen, hear: Hear, take: link.Hear) -> None:
        super().__init__(listen, hear)
        self._take_message = take

    def take_line(self, line: bytes) -> None:
        self._take_message(line)


class StdioLink:
    def __init__(self, child: Child, program: Program) -> None:
        self._child, self._program = child, program
        self._outbox = Outbox(lambda lines: child.write(lines.removesuffix(b"\n")))

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, message: bytes, number: int | None) -> None:  # noqa: ARG002 - answers come on the same pipe
        self._outbox.put(message)

    def cancel(self, number: int) -> None:
        self.send(link.cancelled(number), None)

    def speak(self, version: str) -> None:
        """Every message says for itself what has to be said."""

    def know(self, marks: Marks) -> None:
        """A pipe has no headers."""

    async def flush(self) -> None:
        """A pipe keeps the order."""

    def evidence(self) -> str:
        return self._program.masked(self._child.evidence())

    async def end(self) -> None:
        await self._child.end(gentle=True, grace=GRACE)


async def open_stdio(program: Program, hear: link.Hear, lost: link.Lost) -> StdioLink:
    def fail(heard: str | RemudaError) -> None:
        assert isinstance(heard, RemudaError)  # lines are taken elsewhere
        lost(ServerFault(program.masked(f"{program.name!r}: {heard.message}")))

    launch = Launch("gateway", 0, program.name, program.cwd, program.mark, dict(program.env))
    try:
        child = await Child.start(
            program.argv, launch, lambda _: None, fail, lambda listen, fail: ServerPipes(listen, fail, hear)
        )
    except AgentFault as error:
        raise ServerFault(program.masked(f"the tool server {program.name!r} cannot be started: {error}")) from error
    return StdioLink(child, program)
