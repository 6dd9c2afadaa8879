"""Real agents, started by hand as a person would, keep records through their own hooks."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from live.kit import script
from live.native_kit import find_cli
from records.kit import IDENTITY, git, repository
from remuda.scripted_model import ScriptedModel
from remuda.scripted_model.clients import CLIENTS, pointed

pytestmark = pytest.mark.live

WITHIN = 240.0
REMUDA = (sys.executable, "-m", "remuda.cli.entry")
# Codex runs no hook that nobody has looked at; for a run without anybody there is a flag.
UNATTENDED: Mapping[str, tuple[str, ...]] = {"codex": ("--dangerously-bypass-hook-trust",)}


COUNTED = ("claude", "codex")  # their transcripts tell the tokens of each call


class Desk:
    """A person's repository and home, with one agent in it."""

    def __init__(self, name: str, folder: Path, model: ScriptedModel) -> None:
        self.name, self.home = name, folder / "home"
        self.home.mkdir()
        self.top = repository(folder / "work", {"readme.txt": "hello\n"})
        self.client = pointed(next(each for each in CLIENTS if each.name == name), model.url)
        for path, text in self.client.files.items():
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_text(text)
        if name == "codex":
            trust = f'[projects."{self.top}"]\ntrust_level = "trusted"\n'
            (self.home / ".codex").mkdir()
            (self.home / ".codex/config.toml").write_text(trust)

    def environment(self) -> dict[str, str]:
        cli = find_cli(self.name)
        kept = {name: os.environ[name] for name in ("TERM", "LANG") if name in os.environ}
        path = os.pathsep.join((str(cli.parent), os.environ["PATH"]))
        return {**kept, **IDENTITY, **self.client.env, "HOME": str(self.home), "PATH": path}

    def remuda(self, *arguments: str) -> str:
        done = subprocess.run(
            [*REMUDA, *arguments], cwd=self.top, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    async def run(self, prompt: str) -> str:
        argv = [prompt if each == "{prompt}" else each for each in self.client.argv]
        at = argv.index("exec") + 1 if "exec" in argv else len(argv)
        argv[at:at] = UNATTENDED.get(self.name, ())
        child = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.top,
            env=self.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(child.communicate(), WITHIN)
        return out.decode(errors="replace")

    def turns(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.remuda("turn", "list", "--json"))["turns"]
        return found


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_an_agent_started_by_hand_keeps_complete_records_that_verify(name: str, tmp_path: Path) -> None:
    find_cli(name)

    async def story() -> None:
        async with ScriptedModel() as model:
            desk = Desk(name, tmp_path, model)
            desk.remuda("hooks", "install", name)
            said = await desk.run(script({"shell": "echo made > made.txt"}, {"say": "Made it."}))
            said += await desk.run(script({"shell": "rm readme.txt"}, {"say": "Gone."}))
            assert (desk.top / "made.txt").read_text() == "made\n", said
            turns = desk.turns()
            assert [(each["turn"], each["status"], each["agent"]) for each in turns] == [
                (1, "completed", name),
                (2, "completed", name),
            ], said
            first, second = (json.loads(desk.remuda("turn", "show", str(number), "--json")) for number in (1, 2))
            outputs = [each["path"] for each in first["outputs"] if not each["path"].startswith(f".{name}")]
            assert outputs == ["made.txt"]
            assert [each["path"] for each in second["deletions"]] == ["readme.txt"]
            assert [each["calls"] for each in first["execution"]["tools"]] == [1], first["execution"]
            assert first["summary"].startswith("Made it.")  # Gemini tells the last word twice
            if name in COUNTED:  # two calls to the model, each as the scripted model counts them
                counted = {"input": 2200, "output": 68, "cacheRead": 200, "cacheCreation": 0}
                assert first["execution"]["tokens"] == counted
                assert first["provenance"]["model"]
            results = json.loads(desk.remuda("turn", "verify", "--all", "--json"))["turns"]
            assert [each["verdict"] for each in results] == ["valid", "valid"]
            assert git(desk.top, "log", "--format=%s") == "first"

    asyncio.run(story())
