"""The questions that wait for somebody, as people see them."""

import msgspec

from domain.drive import Project
from remuda.domain.commands import PauseAgent
from remuda.domain.state import Question
from remuda.views.questions import QuestionRow, open_questions, questions_text


def project() -> Project:
    """Two agents that have asked one question each."""
    project = Project()
    for name in ("ada", "bob"):
        project.ready(name=name)
        project.send(name=name)
        project.asks("q-" + name, name, arguments=f'{{"command":"say {name}"}}')
    return project


def row(arguments: str = "", paths: tuple[str, ...] = (), title: str = "") -> QuestionRow:
    asked = Question("q1", "write", arguments, paths, title, 40.0, 1)
    return QuestionRow(asked.id, "ada", asked.tool, asked.arguments, list(asked.paths), asked.title, asked.asked_at)


def test_what_waits_is_listed_and_what_is_answered_is_not() -> None:
    asking = project()
    assert [(each.agent, each.question) for each in open_questions(asking.state.agents)] == [
        ("ada", "q-ada"),
        ("bob", "q-bob"),
    ]
    asking.says("q-ada", name="ada")
    assert [each.agent for each in open_questions(asking.state.agents)] == ["bob"]


def test_a_question_waits_also_while_its_agent_is_paused() -> None:
    asking = project()
    asking.do(PauseAgent("ada"))
    assert [each.agent for each in open_questions(asking.state.agents)] == ["ada", "bob"]


def test_no_question_is_a_sentence_and_not_an_empty_table() -> None:
    assert questions_text([], 0.0) == "no agent waits for an answer\n"


def test_a_question_is_shown_with_who_asks_what_and_since_when() -> None:
    text = questions_text([row('{"path":"a.py"}')], 100.0)
    for part in ("q1", "ada", "write", '{"path":"a.py"}', "60s"):
        assert part in text


def test_what_it_is_for_is_told_by_whatever_the_agent_said() -> None:
    assert "/a, /b" in questions_text([row(paths=("/a", "/b"))], 100.0)
    assert "Write a file" in questions_text([row(title="Write a file")], 100.0)
    assert '{"text":…' in questions_text([row('{"text":\n"x"}')], 100.0)


def test_a_wish_that_would_play_tricks_on_the_screen_does_not() -> None:
    assert "\x1b" not in questions_text([row("\x1b[31mred")], 100.0)


def test_rows_are_plain_data_for_programs() -> None:
    data = msgspec.json.decode(msgspec.json.encode(row("{}", ("/a",), "t")))
    assert data["question"] == "q1"
    assert data["paths"] == ["/a"]
