"""What the scripted agent remembers: one file for each conversation, so that a killed agent can go on with it.

Each line is one thing that happened, written before the agent acts on it.
"""

from __future__ import annotations

import json
import os

from remuda.agents.scripted.tool_servers import ToolServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Json = Any


class Conversation:
    def __init__(self, path: str, cwd: str) -> None:
        self.id = os.path.basename(path).removesuffix(".jsonl")
        self.cwd = cwd
        self.spent = 0.0  # dollars, by this process
        self.servers: dict[str, ToolServer] = {}
        self._path = path

    def use(self, servers: list[Json]) -> None:
        self.servers = {each["name"]: ToolServer(each) for each in servers}

    def remember(self, what: str, value: Json) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({what: value}) + "\n")

    def history(self) -> Iterator[tuple[str, Json]]:
        """In order: ("prompt", text), ("reply", text), ("used", number of a playbook's entry)."""
        with open(self._path, encoding="utf-8") as file:
            for line in file:
                yield from json.loads(line).items()

    def all(self, what: str) -> list[Json]:
        return [value for kind, value in self.history() if kind == what]


def begin(memory: str, cwd: str) -> Conversation:
    os.makedirs(memory, mode=0o700, exist_ok=True)
    path = os.path.join(memory, f"scripted-{os.urandom(8).hex()}.jsonl")
    open(path, "x", encoding="utf-8").close()
    return Conversation(path, cwd)


def find(memory: str, name: str, cwd: str) -> Conversation | None:
    path = os.path.join(memory, os.path.basename(name) + ".jsonl")  # no way out of the memory's directory
    return Conversation(path, cwd) if os.path.isfile(path) else None
