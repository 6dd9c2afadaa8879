"""A command of the user's own, run to its end: acceptance commands, the set-up of a worktree.

It runs as agents do: in a session of its own, with an environment by allow-list, in the sandbox of its role, and it is
ended with everything it started. For what it runs is the agents' work. Its output goes straight to a file, not through
us: nothing of it is lost when we die, and a flood of it does not keep the loop from anything.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from remuda.agents import Launch, Update
from remuda.agents.pipes import describe
from remuda.agents.process import Child
from remuda.domain.errors import EffectFailed, RemudaError

MOST_OUTPUT = 64 * 1024 * 1024  # bytes of the file; a command that writes more has run away
LOOK_EVERY = 0.5  # seconds, at how much it has written

# `$1` is the file; the rest is the command. Nothing of either is read as shell here.
_INTO_FILE = ("/bin/sh", "-c", 'exec >>"$1" 2>&1 </dev/null; shift; exec "$@"', "remuda")


@dataclass(frozen=True, slots=True)
class Ran:
    command: str
    code: int | None  # as in subprocess: negative is a signal; None when nobody knows
    seconds: float
    output: Path
    ended: str = ""  # why Remuda ended it

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.ended

    def __str__(self) -> str:
        how = self.ended or describe(self.code)
        return f"`{self.command}` {how} after {self.seconds:.1f} s"


def by_shell(command: str) -> tuple[str, ...]:
    """For a command line as the user wrote it, in their settings or on their command line. Text that a model wrote
    must never come here."""
    return ("/bin/sh", "-c", command)


async def run_command(argv: Sequence[str], launch: Launch, output: Path, seconds: float, *, shown: str = "") -> Ran:
    """Append what it writes to a file. When it does not end in time, or writes too much, its whole tree is ended."""
    began = monotonic()
    child = await Child.start((*_INTO_FILE, str(output), *argv), launch, _deaf, _deaf)
    why = "was left off"
    try:
        why = await _why_end(child, output, seconds)
    finally:
        ended = await child.end(gentle=bool(why))  # also what it left running
    if ended.left:
        raise EffectFailed(f"`{shown or argv[0]}` could not be ended: {ended.detail}")
    return Ran(shown or " ".join(argv), ended.returncode, monotonic() - began, output, why)


async def _why_end(child: Child, output: Path, seconds: float) -> str:
    """Nothing when it ended by itself."""
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0:
        try:
            async with asyncio.timeout(min(left, LOOK_EVERY)):
                await child.gone()
                return ""
        except TimeoutError:
            pass
        if _size(output) > MOST_OUTPUT:
            return f"wrote more than {MOST_OUTPUT // 1024 // 1024} MB of output and was ended"
    return f"did not end within {seconds:g} s and was ended"


def _size(output: Path) -> int:
    return output.stat().st_size if output.exists() else 0


def tail(output: Path, size: int) -> str:
    """The last of what was written."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - size))
            return file.read().decode(errors="replace").replace("\0", "")
    except FileNotFoundError:
        return ""


def _deaf(_: Update | str | RemudaError) -> None:
    """All that it says goes to the file."""
