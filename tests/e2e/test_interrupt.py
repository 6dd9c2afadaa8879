"""Ctrl-C in a terminal where `remuda run` is at work: what is said, what goes on, and how it ends."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.cli_kit import REMUDA, Project, environment
from e2e.terminal_kit import CTRL_C, Terminal, terminal
from e2e.test_run import REVIEW, play, project, shell, work
from remuda.agents.strays import marked
from remuda.runtime.place import Place, find_holder
from waiting import until_true

__all__ = ["project"]  # the fixture

PAUSED = "paused; `remuda run` goes on with it"


def behind_a_gate(project: Project) -> Path:
    """No agent starts while this file is there."""
    gate, settings = project.root.parent / "gate", project.root / "remuda.toml"
    command = tomllib.loads(settings.read_text())["agents"]["mine"]["command"]
    gated = ["sh", "-c", 'while [ -e "$0" ]; do sleep 0.05; done; exec "$@"', str(gate), *command]
    settings.write_text(f"[agents.mine]\ncommand = {json.dumps(gated)}\n")
    gate.touch()
    return gate


@contextmanager
def run(project: Project, *arguments: str) -> Iterator[Terminal]:
    command = [str(REMUDA), "run", *arguments, "--backend", "mine"]
    with terminal(command, project.root, environment()) as seen:
        yield seen


def is_up(project: Project) -> bool:
    return find_holder(Place(project.root)) is not None


def processes(project: Project) -> list[int]:
    return [pid for pid, mark in marked() if mark.startswith(f"{Place(project.root).mark}/")]


def goes_on(project: Project) -> None:
    """With what was interrupted, to its end."""
    play(project, ("Review the task", [{"run": REVIEW}]), ("Your task is", [work()]))
    assert "All is done." in project.ok("run", "--backend", "mine")


def test_a_run_with_a_runtime_of_its_own_stops_it_and_the_next_one_goes_on(project: Project) -> None:
    play(project, ("Your task is", [{"hang": 600}]))
    with run(project, "Do it") as seen:
        seen.until("t1 goes to worker-1")
        seen.press(CTRL_C)
        assert seen.ended() == 130, seen.shown
    _, _, after = seen.shown.partition("^C\n")
    assert after.split("\n") == [
        "remuda: pausing; again, and this ends without waiting for it",
        "",
        f"remuda: {PAUSED}",
        "",
    ]
    assert not is_up(project)
    assert processes(project) == []
    goes_on(project)


def test_a_run_in_a_runtime_that_is_up_pauses_who_works_for_it_and_nobody_else(project: Project) -> None:
    play(project, ("Your task is", [{"hang": 600}]), ("Stay", [{"hang": 600}]))
    project.ok("up", "-d")
    project.ok("spawn", "gardener", "--name", "ada", "--backend", "mine", "-m", "Stay")
    with run(project, "Do it") as seen:
        seen.until("t1 goes to worker-1")
        until_true(lambda: project.seen("ada")["status"] == "working")
        seen.press(CTRL_C)
        assert seen.ended() == 130, seen.shown
    assert seen.shown.endswith(f"remuda: {PAUSED}\n")
    assert {name: project.seen(name)["status"] for name in ("ada", "worker-1")} == {
        "ada": "working",
        "worker-1": "paused",
    }
    goes_on(project)
    assert project.seen("ada")["status"] == "working"


def test_one_while_a_worker_is_still_starting_pauses_it_before_it_begins(project: Project) -> None:
    gate = behind_a_gate(project)
    play(project, ("Your task is", [{"hang": 600}]))
    project.ok("up", "-d")
    with run(project, "Do it") as seen:
        until_true(lambda: [each["status"] for each in project.ask("/v1/agents")["agents"]] == ["starting"])
        seen.press(CTRL_C)
        seen.until("pausing")
        gate.unlink()
        assert seen.ended() == 130, seen.shown
    assert seen.shown.endswith(f"remuda: {PAUSED}\n")
    assert project.seen("worker-1")["status"] == "paused"
    goes_on(project)


@pytest.mark.parametrize("up_before", [False, True])
def test_a_second_one_leaves_at_once_and_what_was_begun_goes_on_without_it(project: Project, up_before: bool) -> None:
    deaf = shell("trap '' TERM INT; while :; do sleep 1; done")
    play(project, ("Your task is", [deaf]))
    if up_before:
        project.ok("up", "-d")
    with run(project, "Do it") as seen:
        seen.until("t1 goes to worker-1")
        until_true(lambda: project.seen("worker-1")["status"] == "working")
        seen.press(CTRL_C)
        seen.until("pausing")
        seen.press(CTRL_C)
        assert seen.ended() == 130, seen.shown
    assert "Traceback" not in seen.shown
    left = (
        ("`remuda down` stops them all\n", f"remuda: {PAUSED}\n")
        if up_before
        else "stopping by itself; `remuda run` goes on with it\n"
    )
    assert seen.shown.endswith(left)
    if up_before:
        assert is_up(project)
        project.ok("down")
    else:
        until_true(lambda: not is_up(project) and not processes(project))
    goes_on(project)


def test_one_while_the_runtime_is_still_starting_leaves_none_behind(project: Project) -> None:
    project.ok("init")
    with run(project, "Do it") as seen:
        until_true((project.root / ".remuda" / "runtime.log").exists)
        seen.press(CTRL_C)
        assert seen.ended() == 130, seen.shown
    until_true(lambda: not is_up(project) and not runtimes(project))
    assert "Traceback" not in seen.shown


def runtimes(project: Project) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"REMUDA_PROJECT={project.root}\0".encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_text())
        except OSError:
            continue
    return found
