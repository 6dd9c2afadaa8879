"""Tasks as people see them, and in the files that they keep."""

import json

import msgspec
import pytest

from domain.crew import Crew
from remuda.domain.errors import Invalid
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks, CloseTask
from remuda.views.task_files import id_of, parse, to_markdown
from remuda.views.tasks import chosen, task_detail, task_rows, task_text, tasks_text


@pytest.fixture
def crew() -> Crew:
    crew = Crew()
    crew.add("Parse dates")
    crew.do(AddTasks((NewTask(Brief("Print dates", "In full.\nAnd short.", ("days", "months"), ("t1",))),)))
    return crew


def test_the_list_shows_what_waits_for_what_and_who_has_it(crew: Crew) -> None:
    crew.at_work()
    text = tasks_text(task_rows(crew.state.tasks, chosen(crew.state.tasks)), crew.now)
    assert "WAITS FOR" in text
    assert "worker-1" in text
    assert "no tasks" in tasks_text([], 0)
    assert "\x1b[" in tasks_text(task_rows(crew.state.tasks, chosen(crew.state.tasks)), crew.now, colour=True)


def test_one_task_is_shown_with_all_that_came_of_it(crew: Crew) -> None:
    crew.done()
    text = task_text(task_detail(crew.state.tasks, crew.task()))
    for words in ("passed at c1", "approved by worker-2", "m1 into main", "git merge remuda/merged", "w/t1"):
        assert words in text
    assert "nothing: it is finished" in text


def test_text_of_agents_cannot_play_tricks_on_a_terminal(crew: Crew) -> None:
    crew.do(AddTasks((NewTask(Brief("evil \x1b[2J", "and \x1b]0;x\x07")),)))
    text = task_text(task_detail(crew.state.tasks, crew.task("t3")))
    assert "\x1b" not in text
    assert "\x1b" not in tasks_text(task_rows(crew.state.tasks, chosen(crew.state.tasks)), crew.now)


# --- files ---


def exported(crew: Crew, *, finished: bool = False) -> list[dict[str, object]]:
    shown = [task_detail(crew.state.tasks, task) for task in chosen(crew.state.tasks, finished=finished)]
    plain: list[dict[str, object]] = msgspec.to_builtins(shown)
    return plain


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_what_is_exported_can_be_imported_elsewhere(crew: Crew, form: str) -> None:
    tasks = exported(crew)
    text = to_markdown(tasks) if form == "markdown" else json.dumps({"tasks": tasks})
    new = parse(text, form)
    other = Crew()
    other.do(AddTasks(msgspec.convert(new.tasks, tuple[NewTask, ...])))
    assert [task.brief.title for task in other.state.tasks.values()] == ["Parse dates", "Print dates"]
    assert other.task("t2").brief.needs == ("t1",)
    assert other.task("t2").brief.steps == ("days", "months")
    assert other.task("t2").brief.description == "In full.\nAnd short."
    assert other.task("t1").brief.accept == (("make test",) if form == "json" else ())


def test_what_is_finished_is_left_out_and_nothing_waits_for_it(crew: Crew) -> None:
    crew.do(CloseTask("t1"))
    for form, text in (
        ("json", json.dumps({"tasks": exported(crew, finished=True)})),
        ("markdown", to_markdown(exported(crew, finished=True))),
    ):
        new = parse(text, form)
        assert [each["brief"].get("needs") for each in new.tasks] == [[]], form
        assert len(new.remarks) == 1


CHECKLIST = """\
# Plan

Some words that are no task.

* [ ] Parse dates
      With care.
    - [ ] days
    - [x] months
- [x] Done already
  - [ ] a step of what is done
- [ ] Print dates

More words.

1. [ ] not an item of ours
"""


def test_a_checklist_becomes_tasks_with_steps_and_descriptions() -> None:
    new = parse(CHECKLIST, "markdown", in_order=True, accept=["make test"])
    first, second = new.tasks
    assert first["brief"]["steps"] == ["days", "months"]
    assert first["brief"]["description"] == "With care."
    assert second["brief"]["needs"] == [first["key"]]
    assert [each["brief"]["accept"] for each in new.tasks] == [["make test"]] * 2
    assert new.remarks == ["1 are ticked off and left out"]


BEADS = "\n".join(
    json.dumps(issue)
    for issue in (
        {"id": "bd-a3f8", "title": "Dates", "issue_type": "epic", "status": "open", "priority": 0},
        {
            "id": "bd-a3f8.1",
            "title": "Parse dates",
            "description": "All of them.",
            "acceptance_criteria": "Tests pass.",
            "status": "in_progress",
            "labels": ["parser"],
            "dependencies": [
                {"issue_id": "bd-a3f8.1", "depends_on_id": "bd-a3f8", "type": "parent-child"},
                {"issue_id": "bd-a3f8.1", "depends_on_id": "bd-zero", "type": "blocks"},
                {"issue_id": "bd-a3f8.1", "depends_on_id": "bd-b", "type": "related"},
            ],
        },
        {
            "id": "bd-b",
            "title": "Print dates",
            "priority": 9,
            "labels": None,
            "dependencies": [{"issue_id": "bd-b", "depends_on_id": "bd-a3f8.1", "dep_type": "blocks"}, "?"],
        },
        {"id": "bd-zero", "title": "Old", "status": "closed"},
        {"id": "bd-m", "title": "Mail", "issue_type": "message"},
    )
)


def test_issues_of_beads_become_tasks_that_keep_their_ids_and_links() -> None:
    new = parse(f"{BEADS}\n\n", "beads")
    crew = Crew(0)
    crew.do(AddTasks(msgspec.convert(new.tasks, tuple[NewTask, ...])))
    assert list(crew.state.tasks) == ["bd-a3f8", "bd-a3f8-1", "bd-b"]
    part = crew.task("bd-a3f8-1").brief
    assert (part.epic, part.needs, part.labels) == ("bd-a3f8", (), ("parser",))
    assert part.description == "All of them.\n\nTests pass."
    assert crew.task("bd-b").brief.needs == ("bd-a3f8-1",)
    assert crew.task("bd-b").brief.priority == 2
    assert crew.task("bd-a3f8").kind == "epic"
    assert new.remarks == ["2 are closed or no work, and left out"]


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("beads", "{", "line 1 is not an issue of beads"),
        ("beads", '\n["a"]', "line 2 is not an issue of beads"),
        ("beads", '{"id": 7, "title": "a"}', "line 1 is not an issue of beads"),
        ("beads", json.dumps({"id": "x" * 50, "title": "a"}), "is too long to keep"),
        ("json", "nonsense", "is not one that `remuda task export` writes"),
        ("json", "[]", "is not one that `remuda task export` writes"),
        ("json", '{"tasks": [{"task": 1}]}', "is not one that `remuda task export` writes"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_reason(form: str, text: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        parse(text, form)


@pytest.mark.parametrize(("theirs", "ours"), [("bd-a3f8.1", "bd-a3f8-1"), ("BD-7", "bd-7"), ("7", "b-7")])
def test_an_id_stays_as_near_as_it_can(theirs: str, ours: str) -> None:
    assert id_of(theirs) == ours


def test_a_file_without_items_has_no_tasks() -> None:
    assert parse("just words\n", "markdown").tasks == []
