"""`remuda answer`, and questions that outlive a hard kill of the runtime."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_kit import Project, repository
from e2e.test_kill import REMUDA
from e2e.test_kill import Project as Killable
from remuda.agents.process import sweep
from remuda.domain.events import AnswerGiven, Event, QuestionAnswered, QuestionAsked, TurnEnded, TurnStarted
from remuda.domain.lifecycle import Status
from remuda.runtime.place import Place
from waiting import until_true

SETTINGS = '[roles.worker]\nask = ["bash"]\n'


def wish(command: str, *steps: object) -> str:
    ask = {
        "ask": {"tool": "bash", "arguments": {"command": command}},
        "do": [{"say": f"{command}: allowed\n"}, *steps],
        "otherwise": [{"say": f"{command}: denied\n"}],
    }
    return f"playbook: {json.dumps([ask])}"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = repository(tmp_path)
    (tmp_path / "remuda.toml").write_text(SETTINGS)
    project.ok("up", "-d")
    yield project
    project("down")


def asked(project: Project, count: int = 1) -> list[dict[str, str]]:
    """The questions that wait, when there are so many."""
    found: list[dict[str, str]] = []

    def all_there() -> bool:
        found[:] = project.ask("/v1/questions")["questions"]
        return len(found) == count

    until_true(all_there)
    assert project("answer", "--json").json["questions"] == found
    return found


# --- with a runtime ---


def test_questions_are_listed_answered_and_then_gone(project: Project) -> None:
    assert project.ok("answer") == "no agent waits for an answer\n"
    project.ok("spawn", "--name", "ada", "-m", wish("make"))
    project.ok("spawn", "--name", "bob", "-m", wish("rm -rf build"))
    by_agent = {each["agent"]: each["question"] for each in asked(project, 2)}
    text = project.ok("answer")
    for part in ("QUESTION", "ada", "bob", "bash", '{"command":"make"}', *by_agent.values()):
        assert part in text
    assert by_agent["ada"] in project.ok("show", "ada")
    assert project.ok("answer", by_agent["ada"], "--allow") == "ada is told: allowed\n"
    left = project("answer", by_agent["bob"], "--deny", "--why", "keep it", "--json")
    assert left.json == {"questions": []}
    project.until_idle("ada", 1)
    project.until_idle("bob", 1)
    assert "make: allowed" in project.ok("logs", "ada")
    assert "rm -rf build: denied" in project.ok("logs", "bob")
    assert "denied by user: keep it" in project.ok("events")


def test_who_says_nothing_or_something_else_is_told_what_is_possible(project: Project) -> None:
    project.ok("spawn", "--name", "ada", "-m", wish("make"))
    (waiting,) = asked(project)
    project("answer", waiting["question"]).fails(2, "--allow or --deny")
    project("answer", "nonsense", "--allow").fails(3, "no question 'nonsense' waits", waiting["question"])
    project("answer", waiting["question"], "--allow", "--why", "x" * 5000).fails(2, "too long")
    project.ok("answer", waiting["question"], "--allow")
    project("answer", waiting["question"], "--deny").fails(3, "waits for an answer")
    project.until_idle("ada", 1)
    assert "make: allowed" in project.ok("logs", "ada")


def test_without_a_runtime_questions_are_shown_and_cannot_be_answered(project: Project) -> None:
    project.ok("spawn", "--name", "ada", "-m", wish("make"))
    (waiting,) = asked(project)
    project.ok("down")
    assert waiting["question"] in project.ok("answer")
    assert project("answer", "--json").json["questions"] == [waiting]
    project("answer", waiting["question"], "--allow").fails(3, "remuda up")
    project.ok("up", "-d")
    project.ok("answer", waiting["question"], "--allow")
    project.until_idle("ada", 2)
    assert "make: allowed" in project.ok("logs", "ada")


# --- over a hard kill ---


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[Killable]:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*REMUDA, "init"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "remuda.toml").write_text(SETTINGS)
    made = Killable(Place(tmp_path))
    yield made
    if made.runtime is not None and made.runtime.poll() is None:
        made.kill()
    sweep(f"{made.place.mark}/")


def answer(project: Killable, question: str) -> None:
    done = subprocess.run(
        [*REMUDA, "answer", question, "--allow"], cwd=project.place.root, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def begin(project: Killable, *steps: object) -> str:
    """One agent that has asked; the id of its question."""
    project.start()
    assert project.post("/v1/agents", "spawn", {"role": "worker", "name": "ada"})
    assert project.post("/v1/agents/ada/messages", "m1", {"text": wish("make", *steps)})
    until_true(lambda: bool(events(project, QuestionAsked)))
    (first,) = events(project, QuestionAsked)
    return str(first.question.id)


def events(project: Killable, kind: type[Event]) -> list[Any]:
    project.read()
    return [record.event for record in project.log if isinstance(record.event, kind)]


def check_asked_of_a_person_once(project: Killable) -> None:
    """However often the agent came to the point, somebody was asked once and answered once."""
    assert len(events(project, QuestionAnswered)) == 1
    answered_at = next(r.seq for r in project.log if isinstance(r.event, QuestionAnswered))
    later = [r.event for r in project.log if isinstance(r.event, QuestionAsked) and r.seq > answered_at]
    assert later, "it never came to the point again: this shows nothing"
    assert all(event.question.allow is True for event in later)
    outcomes = [(event.message_id, event.outcome) for event in events(project, TurnEnded)]
    assert outcomes == [("m1", "lost"), ("m1", "completed")]


def test_an_open_question_outlives_a_hard_kill_and_its_answer_serves_the_next_session(killable: Killable) -> None:
    question = begin(killable)
    assert killable.post("/v1/agents/ada/pause", "pause", {})
    killable.kill()
    killable.start()
    assert killable.state.agents["ada"].questions[0].allow is None
    answer(killable, question)  # no session of it lives
    assert killable.post("/v1/agents/ada/resume", "resume", {})
    until_true(killable.at_rest, 60)
    assert len(events(killable, QuestionAnswered)) == 1
    assert [event.question.allow for event in events(killable, QuestionAsked)] == [None, True]
    assert len(events(killable, AnswerGiven)) == 1
    assert killable.state.agents["ada"].status is Status.READY


def test_an_answer_that_was_given_before_a_hard_kill_is_given_again_and_nobody_is_asked(killable: Killable) -> None:
    once = "test -e once || { touch once; exec sleep 600; }"
    question = begin(killable, {"run": ["sh", "-c", once]})
    answer(killable, question)
    until_true(lambda: (killable.place.root / "once").exists())
    killable.kill()
    killable.start()
    until_true(killable.at_rest, 60)
    check_asked_of_a_person_once(killable)
    assert [event.epoch for event in events(killable, AnswerGiven)] == [1, 2]
    assert len(events(killable, TurnStarted)) == 2
