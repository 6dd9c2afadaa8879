"""What these tests share: a script in a prompt, and a seat at each API, taken by its official SDK."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from remuda.scripted_model import ScriptedModel

WITHIN = 30.0  # seconds; generous, because the machine may be busy. Nothing waits that long when it works.
KEY = "sk-secret-of-the-test"
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def script(*steps: object) -> str:
    return f"Please do this.\n[[model: {json.dumps(steps)}]]\nThank you."


def with_model(test: Callable[[ScriptedModel], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(WITHIN), ScriptedModel(**options) as model:
            await test(model)

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of one answer, in words that all four APIs share."""

    text: str = ""
    thoughts: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    stop: str = ""
    tokens: tuple[int, int, int] = (0, 0, 0)  # input without what was cached, cached, output
    pieces: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    status: int | None
    body: Any
    retry_after: str | None = None


class Seat(Protocol):
    """One conversation with the model."""

    async def ask(self, prompt: str, *, stream: bool) -> Seen | Failed: ...

    async def give(self, *results: str, stream: bool) -> Seen | Failed: ...

    async def close(self) -> None: ...


def good(seen: Seen | Failed) -> Seen:
    assert isinstance(seen, Seen), seen
    return seen


def bad(seen: Seen | Failed) -> Failed:
    assert isinstance(seen, Failed), seen
    return seen
