"""`remuda task`, as people type it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_kit import Project, running


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with running(tmp_path_factory.mktemp("tasks") / "repo") as project:
        yield project


def test_a_task_from_its_first_word_to_its_last(project: Project) -> None:
    name = project.ok("task", "add", "Parse dates", "--step", "days", "-p", "1", "--label", "parser").strip()
    other = project.ok("task", "add", "Print dates", "--need", name, "-d", "In full.").strip()
    assert [each["id"] for each in project("task", "ready", "--json").json["tasks"]] == [name]
    project.ok("task", "step", name, "1")
    project.ok("task", "note", name, "mind the leap years")
    project.ok("task", "edit", name, "--title", "Parse all dates", "--label", "")
    shown = project("task", "show", name, "--json").json
    assert (shown["task"]["title"], shown["task"]["labels"]) == ("Parse all dates", [])
    assert (shown["steps"], shown["notes"][0]["text"]) == ([{"text": "days", "done": True}], "mind the leap years")
    project("task", "dep", name, other).fails(2, f"{name} waits for {other} waits for {name}")
    project.ok("task", "dep", other, name, "--remove")
    assert "blocked (wait for the specification)" in project.ok(
        "task", "block", other, "--why", "wait for the specification"
    )
    project.ok("task", "reopen", other)
    assert "is done" in project.ok("task", "close", name)
    assert "is cancelled" in project.ok("task", "cancel", other, "--why", "not needed")
    assert "Parse all dates" not in project.ok("task", "list")
    assert "Parse all dates" in project.ok("task", "list", "--all")


def test_what_cannot_be_is_said_in_one_line(project: Project) -> None:
    name = project.ok("task", "add", "A thing").strip()
    project("task", "show", "ghost").fails(3, "there is no task 'ghost'")
    project("task", "show", "../x").fails(3, "there is no task")
    project("task", "add", "").fails(2, "a title cannot be empty")
    project("task", "edit", name).fails(2, "say what to change")
    project("task", "assign", name, "nobody").fails(3, "there is no agent 'nobody'")
    project("task", "approve", name).fails(3, "only what has passed its checks")
    project("task", "complete", "done").fails(3, "only an agent can say this")
    project("task", "verdict", "hm").fails(2, "--approve or --deny")
    project("task", "import", "missing.md").fails(2, "missing.md")
    project("task", "dep", name, "ghost", "--remove").fails(2, "does not need ghost")


def test_files_go_in_and_out(project: Project, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("- [ ] one\n- [ ] two\n")
    assert project.ok("task", "import", str(plan), "--dry-run").split() == ["one", "two"]
    added = project.ok("task", "import", str(plan), "--in-order", "--accept", "true").split()
    assert project("task", "show", added[1], "--json").json["needs"] == [added[0]]
    out = tmp_path / "tasks.json"
    project.ok("task", "export", "-o", str(out))
    again = project("task", "import", str(out))
    assert again.code == 2
    assert f"- [ ] {added[0]}: one" in project.ok("task", "export", "--format", "markdown")
    beads = tmp_path / "issues.jsonl"
    beads.write_text('{"id":"bd-1","title":"From beads"}\n')
    assert project.ok("task", "import", str(beads)).strip() == "bd-1"


def test_without_a_runtime_the_list_comes_from_the_log(tmp_path: Path) -> None:
    with running(tmp_path / "repo") as project:
        project.ok("task", "add", "Parse dates")
        project.ok("down")
        assert "Parse dates" in project.ok("task", "list")
        assert "Parse dates" in project.ok("task", "show", "t1")
        assert project("task", "list", "--json").json["tasks"][0]["id"] == "t1"
        assert "Parse dates" in project.ok("task", "export")
        project("task", "add", "More").fails(3, "no runtime is up")
