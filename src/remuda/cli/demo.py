"""`remuda demo`: a coordinator and two workers do a small piece of work, and the runtime is killed in the middle.

Everything is real but the models: real processes, a real repository, real commands, a real SIGKILL. The agents are
scripted, so the demo needs no key, no network and no luck.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click

from remuda.cli.demo_report import progress, report
from remuda.cli.demo_work import GOAL, PLAYBOOKS, REPOSITORY
from remuda.domain.errors import StoreFailed
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.lifecycle import Status
from remuda.domain.state import State
from remuda.runtime.place import Place
from remuda.store.file import open_log
from remuda.store.sqlite import read_records

PATIENCE = 50.0  # seconds for the whole of it; it takes about six
LOOK_EVERY = 0.05
PLAYBOOK_FOLDER = ".remuda/demo"
REMUDA = (sys.executable, "-m", "remuda.cli.entry")


class DemoFailed(click.ClickException):
    exit_code = 1


@dataclass(slots=True)
class Demo:
    """What is known of the demo so far: it reads the log as anyone may, also while no runtime is up."""

    place: Place
    began: float = field(default_factory=time.monotonic)
    state: State = field(default_factory=State)
    seen: list[Recorded] = field(default_factory=list)
    runtime: subprocess.Popen[bytes] | None = None

    def say(self, line: str) -> None:
        click.echo(f"{time.monotonic() - self.began:5.1f} s  {line}")

    def type(self, *arguments: str) -> None:
        """Do what a user would, and show it typed."""
        self.say(click.style(f"$ remuda {shlex.join(arguments)}", bold=True))
        done = subprocess.run([*REMUDA, *arguments], cwd=self.place.root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DemoFailed(f"`remuda {arguments[0]}` failed: {done.stderr.strip()}")

    def up(self) -> None:
        self.say(click.style("$ remuda up", bold=True))
        with self.place.log.open("ab") as log:
            self.runtime = subprocess.Popen([*REMUDA, "up"], cwd=self.place.root, stdout=log, stderr=log)
        starts = self.state.runtime
        self.watch_until(lambda state: state.runtime != starts and self.place.socket.exists())

    def kill(self) -> None:
        assert self.runtime is not None
        self.runtime.kill()
        self.runtime.wait()
        self.say(click.style("the runtime is killed with SIGKILL, in the middle of two turns", fg="red", bold=True))

    def watch_until(self, happened: Callable[[State], bool]) -> None:
        """Show what the log says, as it comes, until something is the case."""
        while not happened(self.state):
            if time.monotonic() - self.began > PATIENCE:
                raise DemoFailed(f"not done after {PATIENCE:.0f} s; see {self.place.log}")
            if self.runtime is not None and self.runtime.poll() is not None:
                raise DemoFailed(f"the runtime ended by itself; see {self.place.log}")
            time.sleep(LOOK_EVERY)
            for record in self._news():
                self.seen.append(record)
                evolve(self.state, record)
                line = progress(record)
                if line:
                    self.say(line)

    def _news(self) -> list[Recorded]:
        try:
            db = open_log(self.place.database, readonly=True)
        except StoreFailed:
            return []  # the runtime is only just making it
        try:
            return list(read_records(db, self.state.seq))
        finally:
            db.close()


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Where to make the demo's repository (default: a new temporary folder).",
)
def demo(folder: Path | None) -> None:
    """Show Remuda at work: scripted agents, a hard kill in the middle, nothing lost."""
    root = folder or Path(tempfile.mkdtemp(prefix="remuda-demo-"))
    click.echo("Remuda demo: one coordinator, two workers, one hard kill. The agents are scripted, not models.\n")
    show = Demo(Place(make_repository(root)))
    show.type("init")
    write_playbooks(show.place)
    try:
        show.up()
        for name in PLAYBOOKS:
            role, parent = ("coordinator", ()) if name == "coordinator" else ("worker", ("--parent", "coordinator"))
            show.type("spawn", role, "--name", name, *parent, "--option", f"playbook={PLAYBOOK_FOLDER}/{name}.json")
        show.type("send", "coordinator", GOAL)
        show.watch_until(both_workers_are_in_the_middle(root))
        show.kill()
        show.up()
        show.watch_until(all_is_done(root))
        show.type("down")
    finally:
        if show.runtime is not None and show.runtime.poll() is None:
            show.runtime.terminate()
            show.runtime.wait(timeout=15)
    click.echo()
    for line in report(show.state, show.seen, last_commit(root), root):
        click.echo(line)


def make_repository(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in REPOSITORY.items():
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    # Written into this repository alone, so that the demo's commits need nothing of the user's git settings.
    git(root, "config", "user.name", "Remuda demo")
    git(root, "config", "user.email", "demo@localhost")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "A small library that is polite")
    return root


def write_playbooks(place: Place) -> None:
    folder = place.root / PLAYBOOK_FOLDER
    folder.mkdir()
    for name, playbook in PLAYBOOKS.items():
        (folder / f"{name}.json").write_text(json.dumps(playbook, indent=2))


def both_workers_are_in_the_middle(root: Path) -> Callable[[State], bool]:
    def check(state: State) -> bool:
        written = (root / "farewell.py").exists() and (root / "test_farewell.py").exists()
        statuses = {name: agent.status for name, agent in state.agents.items()}
        middle = {"coordinator": Status.READY, "worker-1": Status.WORKING, "worker-2": Status.WORKING}
        return written and statuses == middle

    return check


def all_is_done(root: Path) -> Callable[[State], bool]:
    def check(state: State) -> bool:
        at_rest = all(agent.status is Status.READY and not agent.queue for agent in state.agents.values())
        return at_rest and "farewell" in last_commit(root)

    return check


def last_commit(root: Path) -> str:
    return git(root, "log", "--oneline", "-1")


def git(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
    except FileNotFoundError as error:
        raise DemoFailed("git is not installed, and the demo makes a repository; install git") from error
    except subprocess.CalledProcessError as error:
        raise DemoFailed(f"git {arguments[0]} failed: {error.stderr.strip()}") from error
    return done.stdout.strip()
