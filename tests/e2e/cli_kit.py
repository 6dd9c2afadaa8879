"""What the tests of the command line share: the installed command, run as people run it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remuda.cli.call import exchange
from waiting import until_true

REMUDA = Path(sys.executable).parent / "remuda"
WITHIN = 60.0
OURS = ("REMUDA_PROJECT", "REMUDA_TOKEN", "REMUDA_AGENT", "NO_COLOR", "PYTHONPATH")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def fails(self, code: int, *words: str) -> None:
        """It ended with this code and one sentence that has these words."""
        assert self.code == code, self
        assert self.err.startswith("remuda: "), self
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, self


@dataclass(frozen=True)
class Project:
    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str | bytes, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> Ran:
        done = subprocess.run(
            [str(REMUDA), *arguments],
            cwd=cwd or self.root,
            env=environment(**{**self.env, **env}),
            input=stdin,
            capture_output=True,
            timeout=WITHIN,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *arguments: str | bytes, **options: Any) -> str:
        ran = self(*arguments, **options)
        assert ran.code == 0, ran
        return ran.out

    def agent(self, name: str) -> Any:
        return json.loads(self.ok("show", name, "--json"))

    def until_idle(self, name: str, turns: int) -> None:
        """Wait until an agent has ended so many turns and is ready."""
        until_true(lambda: (row := self.seen(name))["turns"] >= turns and row["status"] == "ready")

    def ask(self, path: str) -> Any:
        """What the runtime says, without the command: whoever looks again and again starts no program for each look."""
        status, body = exchange(str(self.root / ".remuda"), "GET", path)
        assert status == 200, body
        return json.loads(body)

    def seen(self, name: str) -> Any:
        """An agent as it is now."""
        return self.ask(f"/v1/agents/{name}")["agent"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **more}


def repository(folder: Path) -> Project:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=environment())
    return Project(folder)


@contextmanager
def running(folder: Path) -> Iterator[Project]:
    project = repository(folder)
    project.ok("up", "-d")
    try:
        yield project
    finally:
        project("down")
