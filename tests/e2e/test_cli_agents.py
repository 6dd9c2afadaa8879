"""`remuda agents`, and agents of the user's own."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import remuda.agents
from e2e.cli_kit import Project, repository

SCRIPTED = Path(remuda.agents.__file__).parent / "scripted"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project, with one real agent's name on PATH and no other."""
    folder = tmp_path / "bin"
    folder.mkdir()
    goose = folder / "goose"
    goose.write_text("#!/bin/sh\necho ' 1.52.0'\n")
    goose.chmod(0o755)
    made = repository(tmp_path / "project")
    path = os.pathsep.join((str(folder), os.defpath))
    return Project(made.root, {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")})


def listed(project: Project, **options: Any) -> Mapping[str, Any]:
    ran = project("agents", "--json", **options)
    assert ran.code == 0, ran
    return {each["name"]: each for each in ran.json["agents"]}


def test_every_agent_is_listed_found_or_not_with_its_version_and_what_it_can(project: Project) -> None:
    agents = listed(project)
    assert {"claude", "codex", "opencode", "gemini", "qwen", "goose", "pi", "copilot", "scripted"} <= set(agents)
    goose = agents["goose"]
    assert (goose["found"], goose["version"], goose["fork"], goose["usage_exact"]) == (True, "1.52.0", True, True)
    assert (agents["copilot"]["found"], agents["copilot"]["version"]) == (False, "")
    assert agents["pi"]["usage_exact"] is False


def test_people_are_told_how_to_install_what_is_missing(project: Project) -> None:
    told = project.ok("agents")
    assert "1.52.0" in told
    assert "copilot is not installed: npm install -g @github/copilot" in told


def test_it_works_outside_of_a_project_too(project: Project, tmp_path: Path) -> None:
    assert listed(project, cwd=tmp_path)["goose"]["found"]


def test_an_agent_of_the_users_own_is_listed(project: Project) -> None:
    project.ok("init")
    (project.root / "remuda.toml").write_text('[agents.mine]\ncommand = ["no-such-program"]\ntitle = "My own"\n')
    mine = listed(project)["mine"]
    assert (mine["title"], mine["found"]) == ("My own", False)
    assert "mine is not installed: there is no such program; correct its command in remuda.toml" in project.ok("agents")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[agents.mine]\ntitle = "x"\n', ("agents.mine needs a command",)),
        ('[agents.mine]\ncomand = ["x"]\n', ("agents.NAME.comand", "agents.NAME.command")),
    ],
)
def test_a_wrong_agent_in_the_settings_is_refused_with_what_is_wrong(
    project: Project, text: str, words: tuple[str, ...]
) -> None:
    project.ok("init")
    (project.root / "remuda.toml").write_text(text)
    project("agents").fails(2, *words)


def test_an_agent_of_the_users_own_does_its_work_and_sees_only_the_variables_it_names(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(SCRIPTED)]
    settings = f'[agents.mine]\ncommand = {command}\nenv = ["MY_KEY"]\n'
    secrets = {"MY_KEY": "may-pass", "OTHER_KEY": "stays-here"}
    project = Project(repository(tmp_path / "project").root, secrets)
    project.ok("init")
    (project.root / "remuda.toml").write_text(settings)
    project.ok("up", "-d")
    try:
        steps = '[{"run": ["sh", "-c", "echo key=$MY_KEY other=$OTHER_KEY"]}]'
        project.ok("spawn", "--name", "ada", "--backend", "mine", "--message", f"playbook: {steps}")
        project.until_idle("ada", 1)
        assert "key=may-pass other=" in project.ok("logs", "ada")
        assert "stays-here" not in project.ok("logs", "ada")
    finally:
        project("down")


def test_doctor_says_in_one_line_which_agents_are_there(project: Project) -> None:
    project.ok("init")
    (line,) = [line for line in project.ok("doctor").splitlines() if line.split()[1] == "agents"]
    assert "goose, scripted" in line
    bare = project("doctor", PATH=os.defpath)
    assert "remuda agents" in next(line for line in bare.out.splitlines() if line.split()[1] == "agents")
