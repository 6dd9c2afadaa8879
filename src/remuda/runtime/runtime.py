"""A project that is up: the door through which everyone comes in, and the reads that everyone may make."""

import asyncio
import hmac
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from remuda.agents import Sandbox
from remuda.domain.commands import Command, SendMessage, SpawnAgent
from remuda.domain.decide import COORDINATOR
from remuda.domain.draft import find
from remuda.domain.errors import Refused
from remuda.domain.events import AgentSpawned
from remuda.domain.ledger import UNLIMITED
from remuda.domain.permission import Policy
from remuda.domain.state import Agent, Sender
from remuda.effects.live import Live
from remuda.effects.world import World
from remuda.runtime.batch import Accepted
from remuda.runtime.config import Settings
from remuda.runtime.hands import Hands
from remuda.runtime.ids import new_id
from remuda.runtime.loop import Loop
from remuda.runtime.place import Place
from remuda.store import Store
from remuda.store.transcript import last_lines


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the door: an agent with the token of its session, or else the user whose project it is."""

    sender: Sender
    author: str
    epoch: int = 0  # of the agent's session


# Where agents' programs keep what is theirs, below the user's home.
AGENTS_OWN = (".claude", ".claude.json", ".codex", ".gemini", ".local/share", ".config", ".cache")

USER = Caller(Sender.USER, "user")


@dataclass(frozen=True, slots=True)
class Runtime:
    place: Place
    settings: Settings
    store: Store
    loop: Loop
    hands: Hands
    world: World
    known_backend: Callable[[str], object]  # raises Invalid for one that does not exist
    running: asyncio.Task[None]  # ends when the loop does, with its failure if it has one

    async def submit(self, command: Command, *, order: str = "") -> Accepted:
        return await self.loop.submit(command, order=order)

    async def spawn(self, command: SpawnAgent, *, order: str = "") -> str:
        """A new agent, on the project's own backend where the command names none; its name."""
        accepted = await self.submit(self.complete(command), order=order)
        if not accepted.events:  # this order came before, and its answer was lost
            return str(getattr((await self.store.read(accepted.seq - 1, 1))[0].event, "agent", ""))
        return next(event.agent for event in accepted.events if isinstance(event, AgentSpawned))

    def complete(self, command: SpawnAgent) -> SpawnAgent:
        """With the project's own backend and budget where it names none. What an agent spawns draws on its own."""
        if not command.backend:
            command = replace(command, backend=self.settings.project.backend)
        if command.budget == UNLIMITED and not command.parent:
            command = replace(command, budget=self.settings.budget.limits())
        self.known_backend(command.backend)
        return command

    async def send(self, agent: str, text: str, *, caller: Caller = USER, order: str = "") -> Accepted:
        return await self.submit(SendMessage(agent, order or new_id(), caller.sender, caller.author, text), order=order)

    def who(self, token: str) -> Caller:
        """Identity comes from the token that a session was given, never from what its bearer says."""
        if not token:
            return USER
        live = self.session(token)
        if live is None:
            raise Refused("this token belongs to no session that is alive")
        role = self.loop.shown.agents[live.agent].role
        return Caller(Sender.COORDINATOR if role == COORDINATOR else Sender.AGENT, live.agent, live.epoch)

    def session(self, token: str) -> Live | None:
        """The one that was given this token, while it is alive."""
        live = self.world.live.get(token.partition(".")[0])
        given = token.encode("utf-8", "surrogatepass")
        return live if live is not None and hmac.compare_digest(live.token.encode(), given) else None

    def agent(self, name: str) -> Agent:
        return find(self.loop.shown.agents, name)

    def lines(self, name: str, count: int) -> list[str]:
        """The agent's recent lines: from memory where the session that is alive has said so many, or from its
        transcripts."""
        self.agent(name)
        live = self.world.live.get(name)
        recent = live.ring.last(count) if live is not None else []
        return recent if len(recent) == count else last_lines(self.place.transcripts, name, count)


def policy(place: Place, settings: Settings) -> Callable[[str], Policy]:
    """By role. Remuda's own files are nobody's to change: who could write them could write its own rules."""
    root = place.root.resolve()
    own = (str(root / place.state.name), str(root / place.settings.name))
    return lambda role: replace(settings.policy(role), off_limits=own)


def sandbox(place: Place, settings: Settings) -> Callable[[str], Sandbox | None]:
    """By role. An agent in one may write in the project, and where its program keeps its own sessions and settings."""
    own = tuple(folder for folder in (Path.home() / name for name in AGENTS_OWN) if folder.exists())

    def around(role: str) -> Sandbox | None:
        said = settings.roles.get(role)
        if said is None or not said.sandbox:
            return None
        return Sandbox(said.network, writable=(place.state, *own))

    return around


def environment(place: Place) -> Callable[[str, str], dict[str, str]]:
    """What an agent's process is told of the runtime, so that its `remuda` commands reach it under its own name."""
    commands = str(Path(sys.executable).parent)

    def variables(agent: str, token: str) -> dict[str, str]:
        return {
            "REMUDA_PROJECT": str(place.root),
            "REMUDA_AGENT": agent,
            "REMUDA_TOKEN": token,
            "REMUDA_SCRIPTED_MEMORY": str(place.state / "scripted"),
            "PATH": os.pathsep.join((commands, os.environ.get("PATH", os.defpath))),
        }

    return variables
