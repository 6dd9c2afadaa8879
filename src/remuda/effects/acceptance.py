"""Commands of the user's own, run on the work of agents: acceptance commands, and the set-up of a worktree.

Acceptance commands are the user's words, from `--accept`, from a task that the user wrote or from the settings. They
are run by a shell, as the user expects; nothing that a model wrote is ever run so.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from remuda.agents import Launch
from remuda.agents.command import Ran, by_shell, run_command, tail
from remuda.domain.errors import EffectFailed
from remuda.effects.world import World

ROLE = "worker"  # whose sandbox holds: what is run is the work of workers
FOLDER = "acceptance"
LONGEST_TEXT = 1500  # characters of evidence in a report, which goes to the worker; the file has all


@dataclass(frozen=True, slots=True)
class Accepted:
    ran: tuple[Ran, ...]
    evidence: Path

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.ran)

    @property
    def text(self) -> str:
        """For whoever has to set it right: which one failed, and the last of what it said."""
        if not self.ran:
            return "there are no acceptance commands"
        last = str(self.ran[-1])[-LONGEST_TEXT // 3 :]
        return f"{last}\n\n{tail(self.evidence, LONGEST_TEXT - len(last) - 2)}"


async def accept(world: World, name: str, folder: Path, commands: Sequence[str]) -> Accepted:
    """Run them one after the other in that folder, up to the first that fails. Done again it begins anew."""
    output = await asyncio.to_thread(begin_file, world, name)
    ran: list[Ran] = []
    for number, command in enumerate(commands):
        await asyncio.to_thread(_append, output, f"$ {command}\n")
        launch = _launch(world, f"{name}/{number}", folder, output.parent)
        one = await run_command(by_shell(command), launch, output, world.work.seconds, shown=command)
        ran.append(one)
        if not one.ok:
            break
    return Accepted(tuple(ran), output)


async def set_up(world: World, name: str, folder: Path) -> None:
    """Make a new worktree fit to work in, as the settings say."""
    if not world.work.set_up:
        return
    output = await asyncio.to_thread(begin_file, world, name)
    launch = _launch(world, name, folder, output.parent)
    ran = await run_command(world.work.set_up, launch, output, world.work.set_up_seconds)
    if not ran.ok:
        last = await asyncio.to_thread(tail, output, LONGEST_TEXT)
        raise EffectFailed(f"the set-up of the worktree failed: {ran}; correct worktrees.set_up in remuda.toml: {last}")


def _launch(world: World, name: str, folder: Path, writes: Path) -> Launch:
    """As for a worker, but with none of the variables by which an agent is known."""
    around = world.sandbox(ROLE)
    return Launch(
        agent=name.partition("/")[0],
        epoch=0,
        backend="",
        cwd=folder,
        mark=f"{world.mark}/.work/{name}",
        env={each: os.environ[each] for each in world.work.env if each in os.environ},
        sandbox=around and replace(around, writable=(writes,)),
    )


def begin_file(world: World, name: str) -> Path:
    path = world.root / ".remuda" / FOLDER / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(b"")
    path.chmod(0o600)
    return path


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
