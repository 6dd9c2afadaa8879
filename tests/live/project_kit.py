"""A project with real agents in it whose calls go through the meter to the scripted model."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from live.kit import WITHIN
from live.native_kit import find_cli
from remuda.agents.catalog import CATALOG
from remuda.agents.find import furnish
from remuda.domain.lifecycle import Status
from remuda.meter.serve import serve_meter
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.scripted_model import ScriptedModel
from waiting import until

REAL = "the-real-key-of-the-user"
MODELS: Mapping[str, str] = {
    "claude": "",
    "codex": "gpt-5.5",
    "opencode": "anthropic/claude-sonnet-4-5",
    "goose": "",
    "gemini": "gemini-2.5-flash",
}
BYPASS = (("permissions", "bypass"),)
OPTIONS = {"codex": (*BYPASS, ("sandbox", "danger-full-access"))}
APIS = ("anthropic", "openai-responses", "openai-chat", "gemini")


class Place:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self._patch = monkeypatch
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        for name in list(os.environ):
            if name.startswith("XDG_"):
                monkeypatch.delenv(name)
        folders = [str(find_cli(name).parent) for name in names]
        self.set(HOME=str(self.home), PATH=os.pathsep.join((*folders, os.environ["PATH"])), METER_KEY=REAL)
        self.set(GOOSE_PROVIDER="openai", GOOSE_MODEL="scripted", GOOSE_MODE="auto", GOOSE_DISABLE_KEYRING="1")
        furnish(self.home, CATALOG["gemini"].files)

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)

    @asynccontextmanager
    async def up(self, model: ScriptedModel, settings: str = "") -> AsyncIterator[Runtime]:
        services = (f'[meter.upstreams.{api}]\nurl = "{model.url}"\nkey = "METER_KEY"\n' for api in APIS)
        (self.work / "remuda.toml").write_text(settings + "".join(services))
        make_place(self.work)
        async with asyncio.timeout(WITHIN), open_runtime(self.work, (serve_meter,)) as runtime:
            yield runtime


async def until_paused(runtime: Runtime, *names: str) -> None:
    await until(lambda: all(runtime.agent(name).status is Status.PAUSED for name in names), WITHIN)
