"""A gateway that is killed hard while its servers run: they die with it, the next one ends what they left, and those of
another gateway are not touched. The same for one that stands alone and for that of a runtime."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.test_kill import REMUDA, Project
from gateway.serve_kit import write_settings
from gateway.test_serve import child_of, start
from remuda.agents.process import sweep
from remuda.agents.strays import marked
from remuda.gateway.supervised import NAME
from remuda.runtime.place import Place
from waiting import until_true

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

GONE_WITHIN = 5.0  # seconds, for all that a server started


class Tree:
    """What the server `one` of a folder's gateway has started: itself, and somebody in a session of his own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._server, self._left = folder / "served.txt", folder / "left.txt"
        write_settings(folder, {"one": {"starts": str(self._server), "leaves": str(self._left)}})

    @property
    def server(self) -> str:
        return born(self._server)

    @property
    def left(self) -> str:
        return born(self._left)


def born(file: Path) -> str:
    """The last process that a file names and when it began, which no other of that number shares; empty when dead."""
    return living(file.read_text().split()[-1])


def living(pid: str) -> str:
    try:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if said[0] == "Z" else f"{pid} since {said[19]}"


def lives(process: str) -> bool:
    return living(process.split()[0]) == process


@contextmanager
def alone(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`remuda gateway serve`, with its server running."""
    with start(folder) as process:
        try:
            child_of(process)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def supervised(folder: Path) -> Iterator[Project]:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "gateway.toml").rename(folder / "remuda.toml")
    subprocess.run([*REMUDA, "init"], cwd=folder, check=True, capture_output=True)
    project = Project(Place(folder))
    project.start()
    try:
        yield project
    finally:
        project.kill()
        sweep(f"{project.place.mark}/")


def use(project: Project, agent: str) -> None:
    """An agent calls its gateway, which starts the server."""
    call = json.dumps([{"call": {"name": "one__pid", "arguments": {}, "server": NAME}}])
    assert project.post("/v1/agents", f"spawn-{agent}", {"role": "worker", "name": agent, "backend": "scripted"})
    assert project.post(f"/v1/agents/{agent}/messages", f"work-{agent}", {"text": f"playbook: {call}"})


def test_of_a_gateway_alone(tmp_path: Path) -> None:
    tree, other = Tree(tmp_path / "killed"), Tree(tmp_path / "other")
    with alone(tmp_path / "killed") as process, alone(tmp_path / "other"):
        left, kept = tree.left, (other.server, other.left)
        assert left
        assert all(kept)
        process.kill()
        process.wait(10)
        until_true(lambda: not tree.server, GONE_WITHIN)
        assert tree.left == left, "nothing outlived the server: this shows nothing"
        with alone(tmp_path / "killed"):
            assert not lives(left)
            assert (other.server, other.left) == kept, "those of a gateway that lives are its own"
            assert not [mark for _, mark in marked() if mark.startswith(f"gateway/{process.pid}.")]


@pytest.mark.long
@pytest.mark.timeout(180)
def test_of_a_runtime(tmp_path: Path) -> None:
    tree, other = Tree(tmp_path / "killed"), Tree(tmp_path / "other")
    with supervised(tmp_path / "killed") as project, alone(tmp_path / "other"):
        kept = (other.server, other.left)
        use(project, "ada")
        until_true(lambda: (tmp_path / "killed" / "left.txt").exists())
        until_true(lambda: bool(tree.left))
        server, left = tree.server, tree.left
        marks = {mark for _, mark in marked() if mark.startswith(f"{project.place.mark}/") and "/gateway/" in mark}
        assert server
        assert marks
        project.kill()
        until_true(lambda: not tree.server, GONE_WITHIN)
        assert tree.left == left, "nothing outlived the server: this shows nothing"
        project.start()
        assert not lives(left)
        assert marks.isdisjoint(mark for _, mark in marked())
        assert (other.server, other.left) == kept, "those of another gateway are its own"
