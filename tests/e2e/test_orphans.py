"""The runtime is killed hard while agents have tool servers and escapees running; the next one leaves none of them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.test_kill import REMUDA, Project
from remuda.agents import cgroup
from remuda.agents.orphans import state_of
from remuda.agents.process import sweep
from remuda.agents.strays import marked
from remuda.runtime.place import Place
from waiting import until_true

KILLS = 20
AGENTS = ("ada", "ben")

# A tool server as agents start them: in their group, on a pipe. This one heeds neither its end nor a signal.
TOOL_SERVER = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()) + "\\n")
for line in sys.stdin: pass
while True: time.sleep(600)
"""


def escapee(file: str) -> list[str]:
    return ["sh", "-c", f"echo $$ > {file}; exec sleep 600"]


def work(agent: str) -> str:
    """Leaves one behind in a session of its own, one that forgot even its environment, and waits on a tool server."""
    steps: list[dict[str, object]] = [{"spawn": escapee(f"escaped.{agent}.pid")}]
    if not cgroup.why_not():  # without a cgroup nobody could know whose it is
        steps.append({"spawn": ["env", "-i", *escapee(f"vanished.{agent}.pid")]})
    steps.append({"run": [sys.executable, "-I", "-S", "-c", TOOL_SERVER, f"served.{agent}.pid"]})
    return f"playbook: {json.dumps(steps)}"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*REMUDA, "init"], cwd=tmp_path, check=True, capture_output=True)
    made = Project(Place(tmp_path))
    yield made
    if made.runtime is not None and made.runtime.poll() is None:
        made.kill()
    sweep(f"{made.place.mark}/")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_twenty_hard_kills_of_the_runtime_leave_no_process_of_an_earlier_life(project: Project) -> None:
    project.start()
    for name in AGENTS:
        assert project.post("/v1/agents", f"spawn-{name}", {"role": "worker", "name": name})
        assert project.post(f"/v1/agents/{name}/messages", f"work-{name}", {"text": work(name)})
    expected = len(AGENTS) * (2 if cgroup.why_not() else 3)
    for _ in range(KILLS):
        until_true(lambda: len(written(project)) == expected)
        before = [born(pid) for pid in take(project)]
        assert len(set(before)) == expected
        marks = {mark for _, mark in of_project(project)}
        project.kill()
        assert any(born(pid) == (pid, at) for pid, at in before), "nothing outlived the runtime: this shows nothing"
        project.start()
        assert [pid for pid, at in before if born(pid) == (pid, at)] == []
        assert marks.isdisjoint(mark for _, mark in of_project(project))
        assert not marks.intersection(cgroups(project))
        until_true(lambda: zombies_of(project) == [])
    down = subprocess.run([*REMUDA, "down"], cwd=project.place.root, check=False, capture_output=True, text=True)
    assert down.returncode == 0, down.stderr
    assert (of_project(project), cgroups(project)) == ([], set())


def written(project: Project) -> list[Path]:
    return [path for path in project.place.root.glob("*.pid") if path.read_text().endswith("\n")]


def take(project: Project) -> list[int]:
    """The processes that have told their numbers; those of the next life will tell anew."""
    pids = []
    for path in written(project):
        pids.append(int(path.read_text()))
        path.unlink()
    return pids


def born(pid: int) -> tuple[int, str]:
    """The process and when it began, which no other of that number shares; nothing and "" when it is not alive."""
    state = state_of(pid)
    if state is None or state[0] == "Z":
        return 0, ""
    try:
        return pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return 0, ""


def of_project(project: Project) -> list[tuple[int, str]]:
    return [(pid, mark) for pid, mark in marked() if mark.startswith(f"{project.place.mark}/")]


def cgroups(project: Project) -> set[str]:
    """The marks of the sessions that have a cgroup."""
    base = cgroup.base()
    names = [each.name for each in base.iterdir() if each.is_dir()] if isinstance(base, Path) else []
    start = f"{cgroup.PREFIX}{project.place.mark}%2F"
    return {name.removeprefix(cgroup.PREFIX).replace("%2F", "/") for name in names if name.startswith(start)}


def zombies_of(project: Project) -> list[int]:
    assert project.runtime is not None
    found = []
    for task in Path(f"/proc/{project.runtime.pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            state = state_of(int(child))
            if state is not None and state[0] == "Z":
                found.append(int(child))
    return found
