"""What the tests of agents share: a listener that keeps everything, and bounded waits."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from remuda.agents import Answered, Asked, Launch, ModelCall, Session, Text, Thought, ToolCall, Update, Wire
from remuda.agents.catalog import backend

WITHIN = 20.0  # seconds; generous, because the machine may be busy. Nothing waits that long when it works.
_numbers = itertools.count(1)


class Recorder:
    """A `listen` that keeps what it heard."""

    def __init__(self) -> None:
        self.updates: list[Update] = []

    def __call__(self, update: Update) -> None:
        self.updates.append(update)

    def lines(self, side: str) -> list[str]:
        return [each.line for each in self.updates if isinstance(each, Wire) and each.side == side]

    def text(self) -> str:
        return "".join(each.text for each in self.updates if isinstance(each, Text))

    def thoughts(self) -> str:
        return "".join(each.text for each in self.updates if isinstance(each, Thought))

    def tools(self) -> list[ToolCall]:
        return [each for each in self.updates if isinstance(each, ToolCall)]

    def calls(self) -> list[ModelCall]:
        return [each for each in self.updates if isinstance(each, ModelCall)]


async def allow_all(_asked: Asked) -> Answered:
    return Answered(allow=True)


class Undecided:
    """An `ask` that thinks for ever, and notices when it need not any longer."""

    def __init__(self) -> None:
        self.asked = 0
        self.withdrawn = 0

    async def __call__(self, _asked: Asked) -> Answered:
        self.asked += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.withdrawn += 1
        return Answered(allow=True)


def fresh_mark() -> str:
    return f"test-{os.getpid()}-{next(_numbers)}-end"


def launch_in(folder: Path, **fields: Any) -> Launch:
    return Launch(**{"agent": "ada", "epoch": 1, "backend": "scripted", "cwd": folder, "mark": fresh_mark(), **fields})


def scripted_options(folder: Path, playbook: object = None) -> tuple[tuple[str, str], ...]:
    """Options of the scripted agent that keep its memory, and its playbook if any, in the test's own folder."""
    options = (("memory", str(folder / "memory")),)
    if playbook is None:
        return options
    path = folder / "playbook.json"
    path.write_text(playbook if isinstance(playbook, str) else json.dumps(playbook))
    return (*options, ("playbook", str(path)))


def steps(*each: dict[str, object]) -> str:
    """A prompt that carries its own steps."""
    return f"Please do this.\nplaybook: {json.dumps(each)}"


@asynccontextmanager
async def scripted(folder: Path, heard: Recorder, **fields: Any) -> AsyncIterator[Session]:
    fields.setdefault("options", scripted_options(folder))
    session = await backend("scripted")(launch_in(folder, **fields), heard, allow_all)
    try:
        yield session
    finally:
        await session.end(gentle=False)


def alive(pid: int) -> bool:
    """Whether a process is there and not just a zombie that waits for its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
