"""What performers share: the sessions that are alive in this process, and how to tell the loop what they do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from remuda.agents import Backend, Sandbox
from remuda.domain.commands import Report
from remuda.domain.permission import Policy
from remuda.effects.live import Live
from remuda.store.output import DEFAULT_LINES

DEFAULT_SILENCE = 900.0


@dataclass(slots=True)
class World:
    root: Path
    transcripts: Path
    mark: str  # begins the mark of every child of this project
    backend: Callable[[str], Backend]
    tell: Callable[[Report], None]
    clock: Callable[[], float]
    environment: Callable[[str, str], dict[str, str]]  # (agent, token) -> variables for its process
    policy: Callable[[str], Policy]  # by role
    sandbox: Callable[[str], Sandbox | None]  # by role
    output_lines: int = DEFAULT_LINES
    silence: float = DEFAULT_SILENCE  # seconds in a turn without a sign of life, from tools and people apart
    live: dict[str, Live] = field(default_factory=dict)

    def forget(self, live: Live) -> None:
        if self.live.get(live.agent) is live:
            del self.live[live.agent]

    async def close(self) -> None:
        """End every session, all at once, gently."""
        await asyncio.gather(*(live.end(gentle=True) for live in self.live.values()), return_exceptions=True)
        self.live.clear()
