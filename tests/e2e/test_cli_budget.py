"""`remuda budget`, and an agent that spends what it has: paused, told of, and going on when it is granted more."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_kit import Project, repository
from waiting import until_true


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = repository(tmp_path_factory.mktemp("budget"))
    (project.root / "remuda.toml").write_text("[budget]\nturns = 500\n")
    project.ok("up", "-d")
    yield project
    project("down")


def budget(project: Project, scope: str, measure: str) -> dict[str, Any]:
    shown = json.loads(project.ok("budget", "show", "--json"))["budgets"]
    found = next(each for each in shown if each["scope"] == scope)
    measured: dict[str, Any] = next(each for each in found["measures"] if each["measure"] == measure)
    return measured


def spends(tokens: int, *steps: object) -> str:
    return f"playbook: {json.dumps([{'use': {'input': tokens}}, *steps])}"


def test_a_budget_is_set_at_spawn_shown_and_raised(project: Project) -> None:
    name = project.ok("spawn", "--hold", "--tokens", "50k", "--usd", "2.50", "--time", "1.5h").strip()
    scope = f"agent:{name}"
    assert budget(project, scope, "tokens")["limit"] == 50_000
    assert budget(project, scope, "nanousd")["limit"] == 2_500_000_000
    assert budget(project, scope, "milliseconds")["limit"] == 5_400_000
    project.ok("budget", "grant", name, "--tokens", "1k")
    assert budget(project, scope, "tokens")["limit"] == 51_000
    project.ok("budget", "set", name, "--tokens", "2k", "--usd", "none")
    text = project.ok("budget", "show", name)
    assert f"{name}" in text
    assert "2,000 tokens" in text
    assert "$" not in text


def test_one_that_is_given_nothing_else_has_the_projects_usual_budget(project: Project) -> None:
    name = project.ok("spawn", "--hold").strip()
    assert budget(project, f"agent:{name}", "turns")["limit"] == 500


def test_a_child_gets_what_its_parent_has_left(project: Project) -> None:
    parent = project.ok("spawn", "--hold", "--tokens", "10k").strip()
    project.ok("spawn", "--hold", "--parent", parent, "--tokens", "7k")
    assert budget(project, f"agent:{parent}", "tokens")["remaining"] == 3_000
    project("spawn", "--hold", "--parent", parent, "--tokens", "4k").fails(3, "3,000 tokens left to give")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("set", "nobody", "--tokens", "5"), 3, "there is no agent 'nobody'"),
        (("set", "--tokens", "5"), 2, "name one: an AGENT, --task TASK, or --project"),
        (("set", "--project"), 2, "say how much"),
        (("set", "--project", "--tokens", "-5"), 2, "cannot be"),
        (("set", "--project", "--tokens", "five"), 2, "is no amount"),
        (("set", "--project", "--tokens", "0.5"), 2, "too fine or too large"),
        (("set", "--project", "--tokens", "99999999999999999999"), 2, "too fine or too large"),
        (("set", "--project", "--usd", "nan"), 2, "too fine or too large"),
        (("set", "--project", "--usd", "1e99"), 2, "too fine or too large"),
        (("set", "--project", "--time", "5 fortnights"), 2, "is no amount"),
        (("grant", "--project", "--turns", "5"), 3, "the project has no limit of turns"),
        (("set", "--project", "--own", "--turns", "5"), 2, "--own is of what an AGENT spends itself"),
        (("set", "--task", "none", "--tokens", "5"), 3, "there is no task"),
    ],
)
def test_what_makes_no_sense_is_said(project: Project, arguments: tuple[str, ...], code: int, words: str) -> None:
    project("budget", *arguments).fails(code, words)


def test_one_that_tells_of_its_calls_is_cut_off_by_the_one_that_passes_the_limit_and_goes_on_when_granted(
    project: Project,
) -> None:
    parent = project.ok("spawn").strip()
    name = project.ok("spawn", "--parent", parent, "--tokens", "1k", "-m", spends(1_500, {"hang": 60})).strip()
    shown: dict[str, Any] = {}

    def is_(status: str) -> bool:
        shown.update(project.seen(name))
        return bool(shown["status"] == status)

    until_true(lambda: is_("paused"))
    assert "the budget of" in shown["why"]
    assert budget(project, f"agent:{name}", "tokens")["remaining"] == -500
    until_true(lambda: "was stopped (budget)" in project.ok("logs", parent))
    project("resume", name).fails(3, "cannot go on", "remuda budget grant")
    project.ok("budget", "grant", name, "--tokens", "9k")
    until_true(lambda: is_("working"))
    events = project.ok("events")
    assert "trigger_fired" in events
    assert "budget_warned" in events


def test_agents_give_of_their_own_to_their_children_and_to_nobody_else(project: Project) -> None:
    run = [{"run": ["remuda", "budget", "grant", "OTHER", "--tokens", "5"]}]
    other = project.ok("spawn", "--hold", "--tokens", "1k").strip()
    name = project.ok("spawn", "--tokens", "1k").strip()
    for target in (other, name):
        script = json.dumps(run).replace("OTHER", target)
        project.ok("send", name, f"playbook: {script}")
    until_true(lambda: project.ok("logs", name).count("may change the budgets of agents that it has spawned") == 2)


def test_the_page_of_the_settings_says_what_is_wrong_with_a_budget(tmp_path: Path) -> None:
    project = repository(tmp_path)
    (project.root / "remuda.toml").write_text("[budget]\nusd = -1.0\n")
    project("up", "-d").fails(2, "budget.usd must be 0 (no limit) or more")
    (project.root / "remuda.toml").write_text('[meter.upstreams.mine]\nurl = "http://127.0.0.1:1"\n')
    project("up", "-d").fails(2, "meter.upstreams.mine is of no API that the meter speaks", "openai-chat")


def test_without_a_runtime_it_is_shown_from_the_log(tmp_path: Path) -> None:
    project = repository(tmp_path)
    project.ok("init")
    assert "nothing is limited" in project.ok("budget", "show")
    project.ok("up", "-d")
    try:
        project.ok("spawn", "--hold", "--name", "ada", "--tokens", "10k")
        project.ok("spawn", "--hold", "--name", "bob", "--parent", "ada", "--tokens", "3k")
        project.ok("budget", "set", "--project", "--turns", "70")
        shown, one = (json.loads(project.ok("budget", "show", *who, "--json")) for who in ((), ("bob",)))
        text = project.ok("budget", "show")
    finally:
        project("down")
    assert json.loads(project.ok("budget", "show", "--json"))["budgets"] == shown["budgets"]
    assert json.loads(project.ok("budget", "show", "bob", "--json"))["budgets"] == one["budgets"]
    assert [each["scope"] for each in one["budgets"]] == ["agent:bob", "agent:ada", "project"]
    assert project.ok("budget", "show") == text
    nobody = project("budget", "show", "nobody")
    assert (nobody.code, "there is no agent 'nobody'" in nobody.err) == (3, True)
