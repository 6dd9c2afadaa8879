"""What the tests share that kill a runtime around what it has to do: a project, its log, and orders that are kept."""

import json
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from adapters.git_kit import make_repository
from e2e.cli_kit import environment
from e2e.test_kill import REMUDA, Project
from remuda.agents.process import sweep
from remuda.agents.strays import marked
from remuda.domain.lifecycle import Status
from remuda.domain.state import Agent
from remuda.runtime.place import Place

E = TypeVar("E")


class Hunted(Project):
    """A project whose runtime is killed now and then."""

    def order(self, path: str, **body: Any) -> None:
        assert self.post(path, f"order-{zlib.crc32(f'{path} {body}'.encode())}", body), path

    def spawn(self, name: str, role: str = "crew") -> None:
        self.order("/v1/agents", role=role, name=name)

    def send(self, name: str, *steps: object, words: str = "") -> None:
        self.order(f"/v1/agents/{name}/messages", text=f"{words}\nplaybook: {json.dumps(steps)}")

    def agent(self, name: str) -> Agent:
        self.read()
        return self.state.agents[name]

    def is_status(self, name: str, status: Status) -> Callable[[], bool]:
        return lambda: name in self._known() and self.agent(name).status is status

    def _known(self) -> dict[str, Agent]:
        self.read()
        return self.state.agents

    def grown_to(self, seq: int) -> Callable[[], bool]:
        def check() -> bool:
            self.read()
            return self.state.seq >= seq

        return check

    def of(self, kind: type[E], name: str) -> list[E]:
        self.read()
        events = (record.event for record in self.log)
        return [event for event in events if isinstance(event, kind) and getattr(event, "agent", "") == name]

    def killed_and_started(self) -> None:
        self.kill()
        self.start()

    def says(self, *arguments: str) -> Any:
        argv = [*REMUDA, *arguments, "--json"]
        done = subprocess.run(argv, cwd=self.place.root, check=True, capture_output=True, env=environment())
        return json.loads(done.stdout)

    def processes(self) -> list[int]:
        return [pid for pid, mark in marked() if mark.startswith(f"{self.place.mark}/")]


@contextmanager
def hunted(folder: Path, settings: str = "") -> Iterator[Hunted]:
    root = make_repository(folder / "project")
    subprocess.run([*REMUDA, "init"], cwd=root, check=True, capture_output=True, env=environment())
    (root / "remuda.toml").write_text(settings)
    with (root / ".git" / "info" / "exclude").open("a") as ours:
        ours.write("runtime.txt\n")
    project = Hunted(Place(root))
    project.start()
    try:
        yield project
    finally:
        if project.runtime is not None and project.runtime.poll() is None:
            project.kill()
        sweep(f"{project.place.mark}/")


__all__ = ["Hunted", "hunted"]
