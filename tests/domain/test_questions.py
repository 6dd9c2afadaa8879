"""Questions: asked, answered, given back; an answer outlives the session that asked, and never serves another wish."""

import pytest

from domain.drive import WORKER, Project, replay
from remuda.domain.commands import (
    AnswerQuestion,
    PauseAgent,
    ReapAgent,
    ReportAnswerGiven,
    ReportQuestion,
    ResumeAgent,
    StartRuntime,
)
from remuda.domain.due import due
from remuda.domain.effects import GiveAnswer, RunTurn
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import AnswerGiven, QuestionAnswered, QuestionAsked, ReportIgnored
from remuda.domain.evolve import QUESTIONS_KEPT
from remuda.domain.state import Outcome, Question


@pytest.fixture
def project() -> Project:
    """A worker in turn 1 that has asked q1."""
    project = Project()
    project.ready()
    project.send()
    project.asks()
    return project


def answers(project: Project) -> list[GiveAnswer]:
    return [effect for effect in due(project.agent()) if isinstance(effect, GiveAnswer)]


def next_session(project: Project) -> None:
    """The session dies, and the next one is given the message again."""
    project.ended()
    project.started()


# --- asked ---


def test_a_question_is_kept_with_all_that_it_says() -> None:
    project = Project()
    project.ready()
    project.send()
    (event,) = project.do(ReportQuestion(WORKER, 1, 1, "q1", "write", '{"text":"hi"}', ("/a", "/b"), "Write a file"))
    question = Question("q1", "write", '{"text":"hi"}', ("/a", "/b"), "Write a file", project.now, 1)
    assert event == QuestionAsked(WORKER, 1, 1, question)
    assert project.agent().questions == (question,)
    assert answers(project) == []


def test_what_cannot_be_written_down_is_tidied() -> None:
    project = Project()
    project.ready()
    project.send()
    project.do(ReportQuestion(WORKER, 1, 1, "q1", "\ud800", "x" * 9999, ("\udfff",), "\ud800"))
    question = project.question()
    assert (question.tool, question.paths, question.title) == ("?", ("?",), "?")
    assert len(question.arguments) == 2000
    assert replay(project.log) == project.state


def test_the_turn_goes_on_while_its_question_is_open(project: Project) -> None:
    assert [type(effect) for effect in due(project.agent())] == [RunTurn]


@pytest.mark.parametrize(("epoch", "turn"), [(1, 0), (1, 2), (2, 1), (0, 1)])
def test_a_question_of_another_turn_or_session_is_kept_and_not_asked(project: Project, epoch: int, turn: int) -> None:
    before = project.agent()
    (event,) = project.do(ReportQuestion(WORKER, epoch, turn, "q2", "bash"))
    assert isinstance(event, ReportIgnored)
    assert project.agent() == before


def test_of_questions_that_nobody_waits_for_only_the_last_are_kept_and_of_the_others_all(project: Project) -> None:
    for number in range(QUESTIONS_KEPT + 20):
        project.asks(f"old{number}")
        if number:
            project.says(f"old{number}")
            project.given(f"old{number}")
    kept = [question.id for question in project.agent().questions]
    assert len(kept) == QUESTIONS_KEPT
    assert kept[:2] == ["q1", "old0"], "these two still wait"
    assert kept[-1] == f"old{QUESTIONS_KEPT + 19}"
    next_session(project)
    project.asks("new")
    assert "q1" not in [question.id for question in project.agent().questions], "its session is gone"
    assert len(project.agent().questions) == QUESTIONS_KEPT


# --- answered and given ---


@pytest.mark.parametrize("allow", [True, False])
def test_an_answer_is_owed_to_the_session_that_asks_until_it_has_it(project: Project, allow: bool) -> None:
    assert project.says(allow=allow) == (QuestionAnswered(WORKER, "q1", allow, "so be it", "user"),)
    assert answers(project) == [GiveAnswer(WORKER, 1, "q1", 1, allow, "so be it")]
    assert project.given() == (AnswerGiven(WORKER, 1, "q1"),)
    assert answers(project) == []


def test_each_question_has_its_own_answer(project: Project) -> None:
    project.asks("q2", arguments='{"command":"rm -rf /"}')
    project.says("q1", allow=True)
    project.says("q2", allow=False)
    assert {(each.question_id, each.allow) for each in answers(project)} == {("q1", True), ("q2", False)}
    project.given("q2")
    assert [each.question_id for each in answers(project)] == ["q1"]


def test_an_answer_that_is_reported_given_twice_was_given_once(project: Project) -> None:
    project.says()
    project.given()
    (event,) = project.given()
    assert isinstance(event, ReportIgnored)
    assert event.why == "no answer to 'q1' is waiting to be given"


def test_an_answer_that_nobody_gave_cannot_have_reached_anybody(project: Project) -> None:
    (event,) = project.given()
    assert isinstance(event, ReportIgnored)
    (event,) = project.do(ReportAnswerGiven(WORKER, 1, "never asked", 1))
    assert isinstance(event, ReportIgnored)
    assert not project.question().given


# --- asked again ---


def test_asked_again_by_the_next_session_it_keeps_its_answer(project: Project) -> None:
    project.says(allow=False)
    project.given()
    next_session(project)
    assert answers(project) == [], "it has not asked yet"
    project.asks()
    assert answers(project) == [GiveAnswer(WORKER, 2, "q1", 2, False, "so be it")]
    project.given()
    assert answers(project) == []


def test_asked_again_in_the_same_session_it_is_owed_its_answer_again_as_another_thing(project: Project) -> None:
    """Or hands that have given it once would think that they had done what is owed."""
    project.says()
    project.given()
    project.asks()
    assert answers(project) == [GiveAnswer(WORKER, 1, "q1", 2, True, "so be it")]


def test_the_report_of_an_earlier_asking_does_not_stand_for_the_present_one(project: Project) -> None:
    project.says()
    project.asks()
    (event,) = project.do(ReportAnswerGiven(WORKER, 1, "q1", 1))
    assert isinstance(event, ReportIgnored)
    assert event.why == "it is of another asking of 'q1'"
    assert len(answers(project)) == 1


def test_an_answer_is_not_given_to_a_session_that_has_not_asked(project: Project) -> None:
    project.says()
    next_session(project)
    (event,) = project.do(ReportAnswerGiven(WORKER, 2, "q1", 1))
    assert isinstance(event, ReportIgnored)
    assert not project.question().given


def test_asked_twice_at_once_it_is_one_question_and_one_answer_serves(project: Project) -> None:
    project.asks()
    assert len(project.agent().questions) == 1
    project.says()
    assert len(answers(project)) == 1


def test_another_wish_under_the_same_id_does_not_inherit_the_answer(project: Project) -> None:
    project.says(allow=True)
    project.asks(arguments='{"command":"rm -rf /"}')
    assert project.question().allow is None
    assert answers(project) == []


# --- without a session ---


def test_it_can_be_answered_while_no_session_lives_and_serves_the_next(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    project.ended()
    project.says()
    project.kept()
    assert due(project.agent()) == ()
    project.do(ResumeAgent(WORKER))
    project.started()
    project.asks()
    assert [each.allow for each in answers(project)] == [True]


def test_an_open_question_and_its_answer_survive_a_restart_of_the_runtime(project: Project) -> None:
    project.state = replay(project.log)
    project.do(StartRuntime("the next"))
    assert project.question().allow is None
    project.says()
    project.do(StartRuntime("and the one after"))
    project.started()
    project.asks()
    assert [each.epoch for each in answers(project)] == [3]


def test_a_limit_in_between_does_not_lose_the_answer(project: Project) -> None:
    project.says()
    project.given()
    project.limited()
    project.rested()
    project.ended()
    project.started()
    project.asks()
    assert [each.allow for each in answers(project)] == [True]


# --- refused ---


def test_who_answers_after_another_is_told_what_was_decided_and_by_whom(project: Project) -> None:
    project.says(allow=False)
    with pytest.raises(Refused, match="user has denied this already"):
        project.do(AnswerQuestion(WORKER, "q1", True, "coordinator"))
    assert project.question().allow is False


def test_an_allowed_one_is_not_denied_afterwards(project: Project) -> None:
    project.says(allow=True)
    with pytest.raises(Refused, match="user has allowed this already"):
        project.says(allow=False)


def test_an_unknown_question_is_refused_and_those_that_wait_are_named(project: Project) -> None:
    project.asks("q2", arguments="{}")
    project.says("q1")
    with pytest.raises(Refused, match="worker-1 has not asked 'q9', or needs no answer any more") as refused:
        project.says("q9")
    assert refused.value.possible == ("q2",)


def test_nobody_answers_its_own_question(project: Project) -> None:
    with pytest.raises(Refused, match="worker-1 cannot answer its own question"):
        project.do(AnswerQuestion(WORKER, "q1", True, WORKER))


def test_a_reason_without_measure_is_refused(project: Project) -> None:
    with pytest.raises(Invalid, match="too long"):
        project.do(AnswerQuestion(WORKER, "q1", True, "user", "x" * 3000))


# --- no longer asked ---


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_a_turn_that_is_answered_takes_its_questions_with_it(project: Project, outcome: Outcome) -> None:
    project.says()
    project.answered(outcome=outcome)
    assert project.agent().questions == ()


def test_the_dead_ask_nothing(project: Project) -> None:
    project.do(ReapAgent(WORKER, "it spins"))
    assert project.agent().questions == ()
    with pytest.raises(Refused, match="needs no answer any more"):
        project.says()


def test_the_same_question_in_a_later_turn_is_asked_anew(project: Project) -> None:
    project.says()
    project.answered()
    project.send("again")
    project.asks()
    assert project.question().allow is None
    assert project.question().asking == 1
