"""Real agents on the scripted model: each with a home of its own, dummy keys, and no address but loopback."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.agent_kit import Recorder, allow_all, fresh_mark
from live.native_kit import NATIVE, find_cli
from remuda.agents import Ask, Launch, McpServer, Session
from remuda.agents.catalog import CATALOG, backend
from remuda.agents.strays import marked
from remuda.domain.state import Usage
from remuda.scripted_model import ModelCall, ScriptedModel
from remuda.scripted_model.clients import CLIENTS, Client, pointed

PINGER = McpServer("pinger", (sys.executable, "-I", "-S", str(Path(__file__).parent / "ping_server.py")))
WITHIN = 300.0  # seconds for one story; on an idle machine the longest takes a tenth of it
NAMES = ("claude", "codex", "opencode", "goose", "gemini", "qwen")


@dataclass(frozen=True, slots=True)
class Extra:
    """What a test wants of an agent on top of what points it at the scripted model: failures must come soon."""

    env: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # merged into its settings file


EXTRA: Mapping[str, Extra] = {
    "goose": Extra(env={"GOOSE_PROVIDER_SKIP_BACKOFF": "true"}),
    "gemini": Extra(settings={"general": {"maxAttempts": 2, "enableAutoUpdate": False}}),
}


_PI_MODEL = {
    "id": "scripted",
    "name": "scripted",
    "reasoning": False,
    "input": ["text"],
    "contextWindow": 200_000,
    "maxTokens": 8_192,
    "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0},
}
_PI_PROVIDER = {"baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "dummy", "models": [_PI_MODEL]}

# Those that are pointed at the scripted model in these tests only.
MORE: tuple[Client, ...] = (
    Client(
        name="qwen",
        api="chat",
        argv=(),
        env={"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "scripted"},
        files={
            ".qwen/settings.json": json.dumps(
                {
                    **json.loads(CATALOG["qwen"].files[".qwen/settings.json"]),
                    "model": {"generationConfig": {"maxRetries": 1}},
                }
            )
        },
    ),
    Client(
        name="copilot",
        api="chat",
        argv=(),
        env={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "scripted",
        },
    ),
    Client(
        name="pi",
        api="chat",
        argv=(),
        env={"PI_OFFLINE": "1"},
        files={
            ".pi/agent/models.json": json.dumps({"providers": {"scripted": _PI_PROVIDER}}),
            ".pi/agent/settings.json": json.dumps(
                {"defaultProvider": "scripted", "defaultModel": "scripted", "quietStartup": True}
            ),
        },
    ),
)


def script(*steps: Mapping[str, object]) -> str:
    return f"Please do as the script says. [[model: {json.dumps(steps)}]]"


class Stage:
    """One agent, its home and its workplace, for as many sessions as a story wants."""

    def __init__(self, name: str, folder: Path, model: ScriptedModel) -> None:
        self.name = name
        self.model = model
        self.home = folder / "home"
        self.work = folder / "work"
        self.mark = fresh_mark()
        self._folder = folder
        self._extra = EXTRA.get(name, Extra())
        self._client = pointed(next(each for each in (*CLIENTS, *MORE) if each.name == name), model.url)
        self.work.mkdir(parents=True, exist_ok=True)
        _furnish(self.home, self._client, self._extra)

    def launch(self, **fields: Any) -> Launch:
        if native := NATIVE.get(self.name):
            # Codex shows tool servers only to models that it does not know.
            model = native.plain_model or native.model
            return native.launch(self._folder, self.model.url, mark=self.mark, model=model, **fields)
        places = ("config", "data", "state", "cache")
        env = {
            **self._client.env,
            **self._extra.env,
            **{f"XDG_{each.upper()}_HOME": str(self.home / f".{each}") for each in places},
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(find_cli(CATALOG[self.name].program).parent), os.environ["PATH"])),
        }
        return replace(Launch("ada", 1, self.name, self.work, self.mark, env), **fields)

    @asynccontextmanager
    async def session(self, heard: Recorder, ask: Ask = allow_all, **fields: Any) -> AsyncIterator[Session]:
        session = await backend(self.name)(self.launch(**fields), heard, ask)
        try:
            yield session
        finally:
            await session.end(gentle=True)
            assert self.pids() == []

    def grow_old(self) -> None:
        """Let the conversation be of another minute: gemini loses one that it loads in the minute of its birth."""
        for path in self.home.glob(".gemini/tmp/*/chats/session-*"):
            path.rename(path.with_name(path.name.replace("session-20", "session-19", 1)))

    def command_lines(self) -> list[str]:
        """What everyone on the machine can read of its processes."""
        lines = []
        for pid in self.pids():
            with suppress(OSError):  # it may be gone by now
                lines.append(Path(f"/proc/{pid}/cmdline").read_text())
        return lines

    def pids(self) -> list[int]:
        return [pid for pid, mark in marked() if mark == self.mark]


def _furnish(home: Path, client: Client, extra: Extra) -> None:
    for inside, text in client.files.items():
        path = home / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**json.loads(text), **extra.settings}) if extra.settings else text)


def told(calls: list[ModelCall]) -> Usage:
    """What the model's service told the agent that it used, side calls left out."""
    used = [each.usage for each in calls if each.usage is not None and not each.side]
    return Usage(
        input_tokens=sum(each.fresh for each in used),
        output_tokens=sum(each.output for each in used),
        cache_read_tokens=sum(each.cached for each in used),
    )


def counted(heard: Recorder) -> Usage:
    used = [call.usage for call in heard.calls()]
    return Usage(
        input_tokens=sum(each.input_tokens for each in used),
        output_tokens=sum(each.output_tokens for each in used),
        cache_read_tokens=sum(each.cache_read_tokens for each in used),
    )
