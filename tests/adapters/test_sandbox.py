"""The sandbox, with real programs in it."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder, alive, fresh_mark, launch_in
from remuda.agents.process import Child
from remuda.agents.sandbox import sandboxed, why_not
from waiting import until

HERE = why_not()
needs_bwrap = pytest.mark.skipif(bool(HERE), reason=f"NO SANDBOX, IT IS UNTESTED: {HERE} (`make sandbox` may help)")


def run(
    root: Path, *argv: str, network: bool = True, writable: tuple[Path, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    wrapped = sandboxed(argv, root, network=network, writable=writable)
    return subprocess.run(wrapped, capture_output=True, text=True, check=False, timeout=20)


@pytest.fixture
def rooms(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Where it works, a home of its own, and somebody else's folder."""
    made = tmp_path / "work", tmp_path / "home", tmp_path / "others"
    for each in made:
        each.mkdir()
    return made


def test_the_network_is_there_unless_it_is_taken() -> None:
    assert "--unshare-net" in sandboxed(["x"], Path("/w"), network=False)
    assert "--unshare-net" not in sandboxed(["x"], Path("/w"), network=True)


def test_the_program_and_its_arguments_stand_last_whatever_they_look_like() -> None:
    assert sandboxed(["x", "--bind", "/"], Path("/w"), network=True)[-4:] == ("--", "x", "--bind", "/")


@needs_bwrap
def test_it_writes_where_it_works_and_nowhere_else(rooms: tuple[Path, Path, Path], pytestconfig: pytest.Config) -> None:
    work, home, others = rooms
    script = 'for d in "$@"; do echo x > "$d/file" && echo "wrote $d"; done'
    sources = pytestconfig.rootpath / "src"
    done = run(work, "sh", "-c", script, "sh", str(work), str(home), str(others), str(sources), writable=(home,))
    assert done.stdout.splitlines() == [f"wrote {work}", f"wrote {home}"]
    assert (work / "file").exists()
    assert not (others / "file").exists()
    assert not (sources / "file").exists()


@needs_bwrap
def test_it_reads_the_machine_and_starts_where_it_works(rooms: tuple[Path, Path, Path]) -> None:
    done = run(rooms[0], "sh", "-c", "pwd; test -r /etc/passwd && echo read")
    assert done.stdout.split() == [str(rooms[0]), "read"]


@needs_bwrap
@pytest.mark.parametrize("network", [True, False], ids=["with the network", "without"])
def test_without_the_network_not_even_loopback_is_left(tmp_path: Path, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5); print('connected')"
        # Not the one of .venv: the project may be cloned below /tmp, of which the sandbox has its own.
        python = str(Path(sys.executable).resolve())
        done = run(tmp_path, python, "-I", "-S", "-c", code, network=network)
    assert (done.returncode == 0, "connected" in done.stdout) == (network, network)


@needs_bwrap
def test_it_sees_no_process_but_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "ls /proc | grep -c '^[0-9]'")
    assert int(done.stdout) < 10


@needs_bwrap
def test_a_session_in_a_sandbox_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = fresh_mark()

    async def story() -> None:
        lines: list[object] = []
        argv = sandboxed(["sh", "-c", "setsid sleep 600 & echo up; cat"], tmp_path, network=False)
        child = await Child.start(argv, launch_in(tmp_path, mark=mark), Recorder(), lines.append)
        await until(lambda: "up" in lines)
        child.send("through the pipe")
        await until(lambda: "through the pipe" in lines)
        inside = [pid for pid in descendants(child.pid) if pid != child.pid]
        assert len(inside) >= 3
        ended = await child.end(gentle=True)
        assert ended.left == ()
        assert not any(alive(pid) for pid in inside)

    asyncio.run(story())


def descendants(pid: int) -> list[int]:
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(deeper for child in below for deeper in descendants(int(child)))]
