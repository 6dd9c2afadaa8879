"""`remuda run`, as people type it: real git, real processes, agents that follow a playbook."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remuda
from e2e.cli_kit import REMUDA, Project, environment, repository
from remuda.cli.call import exchange
from waiting import until_true

SCRIPTED = str(Path(remuda.__file__).parent / "agents" / "scripted")
# Who is asked again after a crash finds what it had made, and does not make it twice.
WORK = (
    'b=$(git branch --show-current); t=${b#remuda/}; {before} [ -e "$t.txt" ] || { echo "$t" > "$t.txt"; git add -A; '
    'git -c user.name=w -c user.email=w@example.org commit -q -m "Work on $t"; }; remuda task complete "wrote $t.txt"'
)
REVIEW = ["remuda", "task", "verdict", "--approve", "well done"]


def shell(command: str) -> dict[str, list[str]]:
    return {"run": ["sh", "-c", command]}


def work(before: str = "") -> dict[str, list[str]]:
    return shell(WORK.replace("{before}", before))


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, env=environment()
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = repository(tmp_path / "repo")
    root = project.root
    (root / "README.md").write_text("# A small thing\n")
    command = [sys.executable, "-I", "-S", SCRIPTED, "--playbook", str(tmp_path / "playbook.json")]
    (root / "remuda.toml").write_text(f"[agents.mine]\ncommand = {json.dumps(command)}\n")
    git(root, "add", "-A")
    git(root, "-c", "user.name=u", "-c", "user.email=u@example.org", "commit", "-q", "-m", "Begin")
    yield project
    project("down")


def play(project: Project, *turns: tuple[str, list[object]], otherwise: list[object] | None = None) -> None:
    """What the agents do when their prompt has these words."""
    book = {"turns": [{"when": when, "do": steps} for when, steps in turns], "otherwise": otherwise or [{"say": "?"}]}
    (project.root.parent / "playbook.json").write_text(json.dumps(book))


def untouched(project: Project) -> tuple[str, str, str]:
    """The user's checkout: what is checked out, what is in it, which of their branches there are."""
    root = project.root
    files = git(root, "status", "--porcelain")
    branches = git(root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/master", "refs/heads/main")
    return git(root, "rev-parse", "HEAD"), files, branches


def test_an_idea_becomes_a_reviewed_and_verified_commit_and_the_checkout_stays_as_it_was(project: Project) -> None:
    play(project, ("Review the task", [{"run": REVIEW}]), ("Your task is", [work()]))
    before = untouched(project)
    out = project.ok("run", "Add rate limiting", "--accept", "test -f t1.txt", "--backend", "mine")
    for words in ("t1 goes to worker-1", "t1 has passed its checks", "worker-2 approves t1", "All is done.", "Next:"):
        assert words in out
    assert "t1.txt" in git(project.root, "ls-tree", "--name-only", "remuda/merged")
    assert untouched(project) == before
    git(project.root, "fsck", "--strict")
    assert [each["status"] for each in project("ps", "--all", "--json").json["agents"]] == ["retired", "retired"]


def test_what_fails_its_acceptance_or_is_denied_is_set_right_before_it_is_done(project: Project) -> None:
    deny = ["remuda", "task", "verdict", "--deny", "say it in t1.txt"]
    play(
        project,
        ("Review the task", [shell("grep -q better t1.txt && remuda task verdict --approve fine || " + _quoted(deny))]),
        ("was not accepted", [work("touch wanted;")]),
        ("Comments:", [work("echo better >> t1.txt;")]),
        ("Your task is", [work()]),
    )
    ran = project("run", "Do it well", "--accept", "test -f wanted", "--backend", "mine", "--json")
    assert ran.code == 0, ran
    (task,) = ran.json["tasks"]
    assert (task["task"]["status"], task["setbacks"]) == ("done", 2)
    assert "better" in git(project.root, "show", "remuda/merged:t1.txt")
    events = project.ok("events", "--json", "-n", "10000")
    assert events.count('"acceptance_run"') == 3
    assert events.count('"verdict_given"') == 2


def _quoted(arguments: list[str]) -> str:
    return " ".join(f"'{each}'" for each in arguments)


def test_an_interrupted_run_pauses_and_the_next_one_goes_on(project: Project) -> None:
    play(project, ("Review the task", [{"run": REVIEW}]), ("Your task is", [{"hang": 2}, work()]))
    plan = project.root.parent / "plan.md"
    plan.write_text("- [ ] Parse dates\n- [ ] Print dates\n")
    command = [str(REMUDA), "run", "--task-file", str(plan), "--backend", "mine"]
    running = subprocess.Popen(command, cwd=project.root, env=environment(), stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if "t2 goes to" in line:
            break
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert not (project.root / ".remuda" / "remuda.sock").exists() or project("down").code == 0
    tasks = {each["id"]: each for each in project("task", "list", "--json").json["tasks"]}
    assert set(tasks) == {"t1", "t2"}
    assert "All is done." in project.ok("run", "--backend", "mine")
    assert project("task", "list", "--json").json["tasks"] == []
    assert git(project.root, "log", "--format=%s", "remuda/merged").count("Work on") == 2


def test_a_run_that_gets_no_further_says_so_and_what_to_do(project: Project) -> None:
    play(project, ("Your task is", [{"run": ["remuda", "task", "escalate", "the specification is missing"]}]))
    ran = project("run", "Do the impossible", "--backend", "mine")
    assert ran.code == 1
    for words in ("Not all of it is done.", "the specification is missing", "remuda task reopen t1"):
        assert words in ran.out


def test_a_run_goes_through_a_runtime_that_is_up_and_leaves_it_up(project: Project) -> None:
    play(project, ("Your task is", [work()]))
    project.ok("up", "-d")
    pid = project("ps", "--json")
    assert pid.code == 0
    assert "All is done." in project.ok("run", "Do it", "--backend", "mine", "--no-review", "--workers", "1")
    assert project("task", "list", "--all", "--json").json["tasks"][0]["status"] == "done"
    assert project.ok("down").startswith("remuda is down")


def test_wishes_that_cannot_be_are_refused_before_anything_starts(project: Project) -> None:
    project("run").fails(2, "say what is to be done")
    project("run", "x", "--workers", "1").fails(2, "nobody reviews their own work")
    project("run", "x", "--backend", "no-such").fails(2, "no-such")
    project("run", "--task-file", "missing.md").fails(2, "missing.md")
    assert project("task", "list", "--json").json["tasks"] == []


@pytest.mark.long
def test_a_runtime_that_is_killed_again_and_again_loses_nothing_of_the_work(project: Project) -> None:
    play(project, ("Review the task", [{"run": REVIEW}]), ("Your task is", [{"hang": 1}, work()]))
    settings = project.root / "remuda.toml"
    settings.write_text(f'{settings.read_text()}[tasks]\nworkers = 2\n[project]\nbackend = "mine"\n')
    plan = project.root.parent / "plan.md"
    plan.write_text("".join(f"- [ ] Piece {number}\n" for number in range(4)))
    for life in range(3):
        project.ok("up", "-d")
        if not life:
            project.ok("task", "import", str(plan), "--accept", "true")
        begun = _health(project)
        until_true(lambda: _health(project)["seq"] >= begun["seq"] + 15)  # noqa: B023 - it is over before the next
        os.kill(begun["pid"], signal.SIGKILL)
        until_true(lambda: not Path(f"/proc/{begun['pid']}").exists())  # noqa: B023
    assert "All is done." in project.ok("run")
    subjects = git(project.root, "log", "--format=%s", "remuda/merged").splitlines()
    assert sorted(each for each in subjects if each.startswith("Work on")) == [f"Work on t{n}" for n in range(1, 5)]
    git(project.root, "fsck", "--strict")


def _health(project: Project) -> dict[str, int]:
    health: dict[str, int] = json.loads(exchange(str(project.root / ".remuda"), "GET", "/v1/health")[1])
    return health
