"""A session that does what the test says, in a world of real effects on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from remuda.agents import Ask, Backend, Ended, Launch, Listen, TurnResult
from remuda.domain.commands import Report
from remuda.domain.effects import RunTurn, StartSession
from remuda.domain.permission import Policy, Ruling
from remuda.domain.state import Message, Outcome, Sender
from remuda.effects import perform
from remuda.effects.live import Live
from remuda.effects.world import World

SILENCE = 60.0
DONE = TurnResult(Outcome.COMPLETED, "end_turn")

Script = Callable[["Acted"], Awaitable[TurnResult]]


class Acted:
    """A session whose turns are the test's own coroutines, one after the other."""

    def __init__(self, listen: Listen, ask: Ask, scripts: list[Script]) -> None:
        self.listen, self.ask = listen, ask
        self.ref = "ref"
        self.ends: list[bool] = []  # gently?
        self._scripts = scripts
        self._gone: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    async def prompt(self, text: str) -> TurnResult:  # noqa: ARG002 - the script knows what is wanted
        return await self._scripts.pop(0)(self)

    async def cancel(self) -> None:
        pass

    async def end(self, *, gentle: bool) -> Ended:
        self.ends.append(gentle)
        if not self._gone.done():
            self._gone.set_result(Ended(-9, "killed"))
        return self._gone.result()

    async def gone(self) -> Ended:
        return await asyncio.shield(self._gone)


class Stage:
    """A world with one agent in it, whose session has started."""

    def __init__(self, folder: Path, *scripts: Script) -> None:
        self.told: list[Report] = []
        self.sessions: list[Acted] = []
        self.world = World(
            root=folder,
            transcripts=folder / "transcripts",
            mark="test",
            backend=lambda _: self._backend,
            tell=self.told.append,
            clock=asyncio.get_running_loop().time,
            environment=lambda _agent, _token: {},
            policy=lambda _role: Policy(default=Ruling.ASK),
            sandbox=lambda _role: None,
            silence=SILENCE,
        )
        self._scripts = list(scripts)

    @property
    def _backend(self) -> Backend:
        async def begin(_: Launch, listen: Listen, ask: Ask) -> Acted:
            self.sessions.append(Acted(listen, ask, self._scripts))
            return self.sessions[-1]

        return begin

    async def start(self) -> None:
        await perform(self.world, StartSession("ada", 1, "acted", "worker", "", "", (), ""))

    async def turn(self, number: int = 1) -> Report | None:
        message = Message(f"m{number}", Sender.USER, "user", "do it", 0.0)
        return await perform(self.world, RunTurn("ada", 1, number, message))

    @property
    def live(self) -> Live:
        return self.world.live["ada"]

    def reports(self, kind: type[Report]) -> list[Report]:
        return [each for each in self.told if isinstance(each, kind)]
