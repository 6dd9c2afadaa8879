"""What the live tests share: real programs, a scripted model, a home of their own and keys that open nothing."""

import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adapters.agent_kit import Recorder, allow_all, launch_in
from remuda.agents import Ask, Launch, Session
from remuda.agents.catalog import backend
from remuda.scripted_model import ScriptedModel

OF_THE_PROJECT = Path(__file__).parents[2] / ".agents" / "bin"
NOT_TESTED = "NOT TESTED"
BUNDLED: Mapping[str, tuple[str, str]] = {
    "claude": ("claude_agent_sdk", "_bundled/claude"),
    "codex": ("codex_cli_bin", "bin/codex"),
}


def script(*steps: object) -> str:
    """A prompt that tells the model what to do."""
    return f"Please do this. [[model: {json.dumps(steps)}]]"


def find_cli(name: str) -> Path:
    """The real program, of the project's own folder first. Skips loudly where there is none, and fails in CI."""
    places = (os.environ.get("REMUDA_AGENTS_BIN", ""), str(OF_THE_PROJECT), os.environ.get("PATH", ""))
    found = shutil.which(name, path=os.pathsep.join(filter(None, places))) or _in_package(name)
    if found is None:
        why = f"{NOT_TESTED}: the real {name} is not installed; `make agents` installs it (REMUDA_AGENTS_BIN: where to)"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return Path(found)


def _in_package(name: str) -> str | None:
    package, inside = BUNDLED.get(name, ("", ""))
    spec = find_spec(package) if package else None
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return next((str(Path(each) / inside) for each in folders if (Path(each) / inside).exists()), None)


@dataclass(frozen=True, slots=True)
class Native:
    """How to point one of the native programs at the scripted model."""

    name: str
    key: str
    path: str = ""  # of the model's API under its address
    # Codex hides the tools of tool servers from models it knows, and gives the patch tool to those alone.
    model: str = ""
    plain_model: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def launch(self, folder: Path, url: str, **fields: Any) -> Launch:
        cli = find_cli(self.name)
        for each in ("home", "work", "tmp"):
            (folder / each).mkdir(exist_ok=True)
        env = {
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": f"{cli.parent}{os.pathsep}{os.environ['PATH']}",
            self.key: "opens-nothing",
            **fields.pop("env", {}),
        }
        options = {"base_url": url + self.path, "max_retries": "1", **self.options, **fields.pop("options", {})}
        fields.setdefault("model", self.model)
        return launch_in(folder / "work", backend=self.name, env=env, options=tuple(options.items()), **fields)


NATIVE: Mapping[str, Native] = {
    "claude": Native("claude", "ANTHROPIC_API_KEY"),
    "codex": Native("codex", "OPENAI_API_KEY", "/v1", model="gpt-5.5", plain_model="scripted"),
}


@dataclass(slots=True)
class Stage:
    """One live program and the model that it speaks to."""

    native: Native
    folder: Path
    model: ScriptedModel
    heard: Recorder

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @asynccontextmanager
    async def session(self, *, ask: Ask = allow_all, **fields: Any) -> AsyncIterator[Session]:
        """Another session in the same home. Nothing of it stays."""
        launch = self.native.launch(self.folder, self.model.url, **fields)
        session = await backend(self.native.name)(launch, self.heard, ask)
        try:
            yield session
        finally:
            await session.end(gentle=False)

    def used(self) -> list[tuple[int, int, int, int]]:
        """What the model told of each call that it finished: fresh, output, cached, written to the cache."""
        told = [call.usage for call in self.model.calls if call.usage and call.ended == "finished"]
        return [(each.fresh, each.output, each.cached, each.cache_write) for each in told if each.total]


@asynccontextmanager
async def stage(name: str, folder: Path) -> AsyncIterator[Stage]:
    find_cli(name)
    async with ScriptedModel() as model:
        yield Stage(NATIVE[name], folder, model, Recorder())


Story = Callable[[Stage], Awaitable[None]]
