"""`remuda` from the first `init` to the last `down`, as people type it."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_kit import REMUDA, WITHIN, Project, environment, repository, running
from remuda.runtime.place import Place, find_holder
from waiting import until_true


def lock_holder(project: Project) -> int:
    return int(json.loads((project.root / ".remuda/lock").read_text())["pid"])


def test_init_makes_a_private_folder_and_leaves_the_users_gitignore_alone(tmp_path: Path) -> None:
    project = repository(tmp_path)
    assert "is ready" in project.ok("init")
    assert (tmp_path / ".remuda").stat().st_mode & 0o777 == 0o700
    assert "/.remuda/" in (tmp_path / ".git/info/exclude").read_text().splitlines()
    assert not (tmp_path / ".gitignore").exists()
    assert "already" in project.ok("init")
    status = subprocess.run(["git", "status", "--short"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ".remuda" not in status.stdout


def test_a_project_outside_git_is_allowed_and_told(tmp_path: Path) -> None:
    ran = Project(tmp_path)("init", GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert ran.code == 0
    assert "git init" in ran.err


def test_the_whole_way_from_up_to_down(tmp_path: Path) -> None:
    project = repository(tmp_path)
    up = project("up", "-d")
    assert up.code == 0
    assert "was not a Remuda project yet" in up.err
    pid = lock_holder(project)
    project("up", "-d").fails(3, str(pid))
    project("up").fails(3, str(pid), "remuda down")
    assert project.ok("spawn", "--message", 'playbook: [{"say": "good morning\\n"}]').strip() == "worker-1"
    project.until_idle("worker-1", 1)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert "worker-1" in project.ok("ps", cwd=deep)
    assert "worker-1" in project.ok("ps", cwd=Path("/"), REMUDA_PROJECT=str(tmp_path))
    assert "good morning" in project.ok("logs", "worker-1")
    assert "ready" in project.ok("send", "worker-1", "one", "more") + project.ok("show", "worker-1")
    for verb, status in (("pause", "paused"), ("resume", "ready"), ("stop", "stopped"), ("resume", "ready")):
        assert status in project.ok(verb, "worker-1")
    down = project.ok("down")
    assert str(pid) in down
    assert (tmp_path / ".remuda/lock").read_text() == ""
    assert not (tmp_path / ".remuda/remuda.sock").exists()
    assert "nothing to stop" in project.ok("down")


def test_reads_without_a_runtime_answer_from_the_log_and_say_so(tmp_path: Path) -> None:
    with running(tmp_path) as project:
        project.ok("spawn", "--message", 'playbook: [{"say": "hello\\n"}]')
        project.until_idle("worker-1", 1)
        up = {name: project.ok(*name.split()) for name in ("logs worker-1", "events --after 1 --json")}
        project.ok("down")
        for read in ("ps", "show worker-1", "logs worker-1", "events -n 5"):
            ran = project(*read.split())
            assert ran.code == 0
            assert "no runtime is up; this is from the log as of" in ran.err, read
            assert ran.out
        assert project("logs", "worker-1").out == up["logs worker-1"]
        before = json.loads(up["events --after 1 --json"])["events"]
        assert project("events", "--after", "1", "--json").json["events"][: len(before)] == before
        assert project("ps", "--json").json["agents"][0]["name"] == "worker-1"
        for write in ("spawn", "send worker-1 x", "pause worker-1"):
            project(*write.split()).fails(3, "no runtime is up", "remuda up -d")
        for follow in ("logs -f worker-1", "events -f"):
            project(*follow.split()).fails(3, "no runtime is up")


LOOKS = ("ps", "show worker-1", "task list", "task ready", "task show t1", "answer", "budget show", "loops")


def test_what_is_seen_is_the_same_with_and_without_a_runtime(tmp_path: Path) -> None:
    with running(tmp_path) as project:
        project.ok("spawn", "--hold", "--tokens", "100k", "--message", "Wait")
        project.ok("task", "add", "Write it down")
        up = {read: project(*read.split(), "--json").json for read in LOOKS}
        os.kill(lock_holder(project), signal.SIGKILL)
        until_true(lambda: find_holder(Place(tmp_path)) is None)
        down = {read: project(*read.split(), "--json").json for read in LOOKS}
        assert [_without_ages(each) for each in down.values()] == [_without_ages(each) for each in up.values()]
        for name, read in (
            ("worker-1", "ps"),
            ("worker-1", "show worker-1"),
            ("worker-1", "budget show"),
            ("t1", "loops"),
        ):
            assert name in project.ok(*read.split())


def _without_ages(shown: Any) -> Any:
    """What was looked at later is older."""
    if isinstance(shown, dict):
        return {name: _without_ages(value) for name, value in shown.items() if name != "age_seconds"}
    return [_without_ages(each) for each in shown] if isinstance(shown, list) else shown


def test_a_runtime_that_was_killed_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as project:
        project.ok("spawn", "--message", 'playbook: [{"say": "first\\n"}]')
        project.until_idle("worker-1", 1)
        os.kill(lock_holder(project), signal.SIGKILL)
        sent = project("send", "worker-1", "lost?")
        while sent.code == 1:  # the kernel may take a moment to close its socket
            sent = project("send", "worker-1", "lost?")
        sent.fails(3, "no runtime is up")
        assert (tmp_path / ".remuda/remuda.sock").exists()
        assert "leftover" in project.ok("doctor")
        project.ok("up", "-d")
        project.ok("send", "worker-1", 'playbook: [{"say": "second\\n"}]')
        project.until_idle("worker-1", 2)
        lines = project.ok("logs", "worker-1").splitlines()
        assert lines.index("first") < lines.index("second")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_in_the_foreground_stops_cleanly_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    project = repository(tmp_path)
    with subprocess.Popen(
        [REMUDA, "up"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        banner = [process.stdout.readline() for _ in range(4)]
        assert str(tmp_path) in banner[0]
        assert "remuda.sock" in banner[1]
        process.send_signal(number)
        out, err = process.communicate(timeout=WITHIN)
    assert process.returncode == 0
    assert "remuda is down" in out
    assert "Traceback" not in err
    (last,) = project("events", "-n", "1", "--json").json["events"]
    assert last["type"] == "runtime_stopped"


def test_logs_and_events_are_followed_until_the_runtime_stops(tmp_path: Path) -> None:
    with running(tmp_path) as project:
        project.ok("spawn", "--hold")
        env = environment()
        followers = [
            subprocess.Popen(
                [REMUDA, *arguments], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for arguments in (("logs", "-f", "worker-1"), ("events", "-f", "-n", "1"), ("events", "-f", "--json"))
        ]
        assert followers[1].stdout is not None
        assert b"worker-1" in followers[1].stdout.readline()  # it is connected
        project.ok("resume", "worker-1")
        project.ok("send", "worker-1", 'playbook: [{"say": "good evening\\n"}]')
        project.until_idle("worker-1", 1)
        project.ok("down")
        logs, text, data = (each.communicate(timeout=WITHIN) for each in followers)
        assert b"good evening" in logs[0]
        assert b"turn_ended" in text[0]
        assert all(each[1].startswith(b"remuda: the runtime has stopped") for each in (logs, text, data))
        types = [json.loads(line)["type"] for line in data[0].splitlines()]
        assert {"turn_started", "turn_ended", "ready", "working"} <= set(types)
        assert [each.returncode for each in followers] == [0, 0, 0]


def test_an_agents_own_command_speaks_under_its_own_name(tmp_path: Path) -> None:
    with running(tmp_path) as project:
        project.ok("spawn", "--name", "bob", "--hold")
        steps = json.dumps([{"run": ["remuda", "send", "bob", "hello", "bob"]}])
        project.ok("spawn", "--name", "ada", "--message", f"playbook: {steps}")
        project.until_idle("ada", 1)
        (mail,) = project.agent("bob")["queue"]
        assert (mail["sender"], mail["author"], mail["text"]) == ("agent", "ada", "hello bob")
