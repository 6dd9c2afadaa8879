"""A real process that goes in circles: nudged, stopped, judged, dead, shown, exported, buried."""

import json
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_kit import Project, repository
from remuda.agents.process import sweep
from remuda.agents.strays import marked
from remuda.runtime.place import Place
from waiting import until_true

CIRCLES = [{"loop": {"times": 200, "do": [{"run": ["cat", "nowhere.txt"]}]}}, {"hang": True}]
WITH_A_CHILD = [{"spawn": ["sleep", "300"]}, *CIRCLES]


def playbook(steps: object) -> str:
    return f"playbook: {json.dumps(steps)}"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "remuda.toml").write_text("[watch.verdict]\nrestarts = 1\n")
    project = repository(tmp_path)
    project.ok("up", "-d")
    yield project
    project("down")
    sweep(f"{Place(tmp_path).mark}/")


def status(project: Project, name: str) -> str:
    return str(project.seen(name)["status"])


def stopped(project: Project, name: str, steps: object = CIRCLES) -> None:
    project.ok("spawn", "--name", name, "-m", playbook(steps))
    until_true(lambda: status(project, name) == "paused", 60)


def events(project: Project, *types: str) -> list[dict[str, Any]]:
    told = json.loads(project.ok("events", "--last", "1000", "--json"))["events"]
    return [each for each in told if each["type"] in types]


def test_an_agent_that_goes_in_circles_is_nudged_stopped_reaped_with_all_its_processes_and_leaves_a_body(
    project: Project, tmp_path: Path
) -> None:
    stopped(project, "ada", WITH_A_CHILD)
    kinds = [each["type"] for each in events(project, "nudged", "trigger_fired", "verdict_sought")]
    assert kinds == ["nudged", "trigger_fired", "verdict_sought"]
    assert "verdict" in project.ok("loops")
    project("body", "show", "ada").fails(3, "only the dead")
    project.ok("verdict", "ada", "reap", "--why", "it never ends")
    assert status(project, "ada") == "reaped"
    until_true(lambda: not [mark for _, mark in marked() if mark.startswith(f"{Place(tmp_path).mark}/")])
    project("verdict", "ada", "continue").fails(3, "too late")
    assert "ada" not in project.ok("ps")
    assert "reaped" in project.ok("ps", "--all")
    shown = json.loads(project.ok("body", "show", "ada", "--json"))
    assert (shown["cause"], shown["trigger"], shown["nudges"]) == ("reaped", "spin", 1)
    assert shown["verdict"] == "reap by user: it never ends"
    assert shown["transcripts"]
    assert shown["spend"]["sessions"] >= 2
    assert "nowhere.txt" in shown["evidence"]
    text = project.ok("body", "show", "ada")
    assert "it never ends" in text
    archive = tmp_path / "ada.tar.gz"
    project.ok("body", "export", "ada", str(archive))
    with tarfile.open(archive) as found:
        names = found.getnames()
    assert {"ada/body.json", "ada/body.txt", "ada/diff.patch"} <= set(names)
    assert any(name.startswith("ada/transcripts/") for name in names)
    project("body", "export", "ada", str(archive)).fails(2, "is there already")


def test_the_dead_stay_until_they_are_buried_and_then_their_transcripts_go(project: Project, tmp_path: Path) -> None:
    project.ok("spawn", "--name", "ada", "-m", playbook([{"say": "hello\n"}]))
    project.until_idle("ada", 1)
    project.ok("retire", "ada")
    again = shlex.split(project("body", "show", "ada", "--json").json["restart"])
    assert again[0] == "remuda"
    assert project.ok(*again[1:], "--hold").startswith("worker-")  # it can be typed as it stands there
    folder = Place(tmp_path).transcripts / "ada"
    assert folder.is_dir()
    assert project.ok("bury", "--older-than", "1d") == "nobody has been dead for so long\n"
    project("bury", "--older-than", "soon").fails(2, "no length of time")
    assert folder.is_dir()
    until_true(lambda: project("body", "bury", "ada").code == 0)
    until_true(lambda: not folder.exists())
    assert "ada" not in project.ok("ps", "--all")
    project("body", "bury", "ada").fails(3, "buried already")
    project("spawn", "--name", "ada").fails(3, "never used twice")
    assert json.loads(project.ok("bury", "--older-than", "0s", "--json")) == {"buried": []}


def test_where_the_settings_limit_them_the_oldest_bodies_go_and_otherwise_none_ever_does(tmp_path: Path) -> None:
    project = repository(tmp_path)
    names = ("ada", "bob", "cyd")
    try:
        project.ok("up", "-d")
        for name in names:
            project.ok("spawn", "--name", name)
            until_true(lambda name=name: status(project, name) == "ready")  # type: ignore[misc]
            project.ok("retire", name)
        until_true(lambda: len(events(project, "work_kept")) == 3)
        project.ok("down")
        project.ok("up", "-d")
        assert [name for name in names if name in project.ok("ps", "--all")] == list(names)
        project.ok("down")
        (tmp_path / "remuda.toml").write_text("[bodies]\nat_most = 1\n")
        project.ok("up", "-d")
        until_true(lambda: len(events(project, "body_removed")) == 2)
        assert [(each["agent"], each["author"]) for each in events(project, "buried")] == [
            ("ada", "remuda"),
            ("bob", "remuda"),
        ]
        assert [path.name for path in Place(tmp_path).transcripts.iterdir()] == ["cyd"]
    finally:
        project("down")


def test_a_restart_gives_the_work_to_a_successor_with_other_parameters(project: Project, tmp_path: Path) -> None:
    stopped(project, "ada")
    asked = project.ok("verdict", "ada")
    for line in ("trigger   spin (cycle): the same call", "verdict   user is asked", "remuda verdict ada restart"):
        assert line in asked
    assert project("verdict", "ada", "--json").json["sought"]["otherwise"] == "reap"
    assert "verdict         user is asked, else reap at 20" in project.ok("show", "ada")
    for wrong, code, words in (
        (("restart", "--strategy", "revert"), 3, "no checkpoints"),
        (("restart", "--backend", "nonsense"), 2, "nonsense"),
        (("restart", "--tokens", "-5"), 2, "a budget of -5 tokens cannot be"),
        (("restart", "--for", "30m"), 2, "how long a continue holds"),
        (("restart", "--instructions", "@nowhere.txt"), 2, "cannot be read from nowhere.txt"),
        (("reap", "--model", "larger", "-m", "x"), 2, "only a restart has a successor; reap goes without a model, a"),
        *(
            (("continue", "--for", length), 2, "no length of time")
            for length in ("nan", "inf", "-1s", "60", "1e9s", "\u0667d")
        ),
        (("continue", "--for", "31d"), 2, "up to 2592000 s"),
        (("continue", "--for", "0s"), 2, "up to 2592000 s"),
    ):
        project("verdict", "ada", *wrong).fails(code, words)
    (tmp_path / "words.txt").write_text("Think.")
    limits = ("--tokens", "5k", "--usd", "2.50", "--turns", "9", "--time", "90m")
    options = ("-m", "Look before you leap.", "--instructions", "@words.txt", *limits)
    successor = project("verdict", "ada", "restart", *options, "--json").json["successor"]
    shown = project("show", successor, "--json").json
    assert (shown["after"], shown["instructions"]) == ("ada", "Think.")
    assert "5,000 tokens" in project.ok("budget", "show", successor)
    assert f"{successor} takes over" in project.ok("ps", "--all")
    body = project("body", "show", "ada", "--json").json
    assert body["successor"] == successor
    assert body["timeline"][0].split()[3:5] == ["spawned", "ada"]
    project("verdict", "ada").fails(3, "no verdict on ada is awaited; it is reaped")


def test_a_drill_stops_anyone(project: Project) -> None:
    project.ok("spawn", "--name", "bob", "-m", playbook([{"say": "hello\n"}]))
    project.until_idle("bob", 1)
    project("trigger", "fire", "bob", "--trigger", "nonsense", "--why", "x").fails(2)
    project("trigger", "fire", "bob", "--why", " ").fails(2, "the evidence cannot be empty")
    assert project.ok("trigger", "fire", "bob", "--why", "a drill") == (
        "bob is paused, and user is asked: `remuda verdict bob`\n"
    )
    assert project.ok("verdict", "bob", "continue", "--for", "60s") == "bob is ready\n"
    project("trigger", "fire", "bob", "--why", "a drill").fails(3, "may go on")
    assert "may go on       user says so: changeset does not fire before" in project.ok("show", "bob")
    project("trigger", "fire", "nobody", "--why", "a drill").fails(3, "no agent")
    spent = project.ok("trigger", "fire", "bob", "--why", "a drill", "--trigger", "budget")
    assert spent == "bob is paused, and `remuda resume bob` ends it\n"
    assert "remuda budget grant bob" in project.ok("loops")
    project.ok("resume", "bob")
    project.ok("trigger", "fire", "bob", "--why", "a drill", "--trigger", "stall")
    took = project.ok("verdict", "bob", "restart")
    assert took.startswith("bob is reaped; worker-")
    successor = took.split()[3]
    project.ok("trigger", "fire", successor, "--why", "a drill")
    assert "is reaped: changeset: user says so: a drill; restart by user; given up after 1 restart within 3600 s" in (
        project.ok("verdict", successor, "restart")
    )


def test_a_verdict_that_is_awaited_outlives_a_stop_and_the_policy_is_kept(tmp_path: Path) -> None:
    (tmp_path / "remuda.toml").write_text("[watch.verdict]\nseconds = 3.0\n")
    project = repository(tmp_path)
    project.ok("up", "-d")
    try:
        project.ok("spawn", "--name", "ada", "-m", playbook([{"say": "hello\n"}]))
        project.until_idle("ada", 1)
        project.ok("trigger", "fire", "ada", "--why", "a drill")
        project.ok("down")
        assert "a drill" in project.ok("loops")  # also without a runtime
        project.ok("up", "-d")
        until_true(lambda: status(project, "ada") == "reaped")
        project.ok("down")
        shown = json.loads(project.ok("body", "show", "ada", "--json"))
        assert shown["verdict"] == "reap by remuda: user did not answer in time"
        assert [each["type"] for each in events(project, "trigger_fired", "verdict_reached")] == [
            "trigger_fired",
            "verdict_reached",
        ]
    finally:
        project("down")
