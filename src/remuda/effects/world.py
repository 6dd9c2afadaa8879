"""What performers share: the sessions that are alive in this process, and how to tell the loop what they do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from remuda.agents import Backend, McpServer, Sandbox
from remuda.domain.commands import Report
from remuda.domain.effects import StartSession
from remuda.domain.permission import Policy
from remuda.effects.bodies import Yard
from remuda.effects.live import Live
from remuda.effects.places import Places
from remuda.effects.turn_records import TurnRecords
from remuda.effects.work import MergeQueue, WorkRules
from remuda.records.keeping import FOLDER
from remuda.store.output import DEFAULT_LINES

DEFAULT_SILENCE = 900.0


@dataclass(frozen=True, slots=True)
class Loan:
    """What a session is given for as long as it lives: tool servers, variables, options of its backend, and words
    about them for its agent."""

    mcp_servers: tuple[McpServer, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    options: tuple[tuple[str, str], ...] = ()
    instructions: str = ""
    metered: bool = False  # every call that it makes to its model is counted on the way


# Asked for each session that starts, with the token by which its process will be known.
Lend = Callable[[StartSession, str], Loan]


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
    work: WorkRules = field(default_factory=WorkRules)
    merges: MergeQueue = field(default_factory=MergeQueue)
    places: Places = field(default_factory=Places)
    records: TurnRecords | None = None
    lenders: list[Lend] = field(default_factory=list)  # tools, meter, gateway: who serves them here adds itself

    def loan(self, effect: StartSession, token: str) -> Loan:
        loans = [lend(effect, token) for lend in self.lenders]
        return Loan(
            tuple(server for loan in loans for server in loan.mcp_servers),
            {name: value for loan in loans for name, value in loan.env.items()},
            tuple(option for loan in loans for option in loan.options),
            "\n\n".join(loan.instructions for loan in loans if loan.instructions),
            any(loan.metered for loan in loans),
        )

    @property
    def yard(self) -> Yard:
        return Yard(self.root, self.records.keeping.folder if self.records else FOLDER)

    async def free(self, folder: str, agent: str) -> None:
        """Wait until an agent may begin in a folder: see `Places.free`."""
        others = [each for each in self.live.values() if each.folder == folder and each.agent != agent]
        await self.places.free(folder, [each.over for each in others if each.ending])

    def forget(self, live: Live) -> None:
        if self.live.get(live.agent) is live:
            del self.live[live.agent]

    async def close(self) -> None:
        """End every session, all at once, gently."""
        await asyncio.gather(*(live.end(gentle=True) for live in self.live.values()), return_exceptions=True)
        self.live.clear()
        if self.records is not None:
            await self.records.close()
