"""Questions that an agent asks before it uses a tool: asked, answered by a person or the coordinator, given back.

A question outlives the session that asked it. After a crash the agent is given its message again and comes to the
same point; it then asks the same question, which has the same id, and an answer that came meanwhile is given at once.
"""

from dataclasses import replace

from remuda.domain.commands import AnswerQuestion, ReportAnswerGiven, ReportQuestion
from remuda.domain.draft import Draft
from remuda.domain.errors import Refused
from remuda.domain.events import AnswerGiven, QuestionAnswered, QuestionAsked
from remuda.domain.state import Agent, Question
from remuda.domain.text import LONGEST_REASON, check_text, tidy


def ask(draft: Draft, report: ReportQuestion) -> None:
    question = Question(
        id=report.question_id,
        tool=tidy(report.tool),
        arguments=tidy(report.arguments),
        paths=tuple(tidy(path) for path in report.paths),
        title=tidy(report.title),
        asked_at=draft.now,
        epoch=report.epoch,
    )
    before = find_question(draft.agent, report.question_id)
    if before is not None and _wish(before) == _wish(question):
        question = replace(before, epoch=report.epoch, given=False, asking=before.asking + 1)
    draft.emit(QuestionAsked(report.agent, report.epoch, report.turn, question))


def _wish(question: Question) -> tuple[object, ...]:
    """What is asked for. The answer to one wish is never taken for that to another, whatever their ids are."""
    return question.tool, question.arguments, question.paths


def answer(draft: Draft, command: AnswerQuestion) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    name = draft.agent.name
    question = find_question(draft.agent, command.question_id)
    if question is None:
        waiting = [each.id for each in draft.agent.questions if each.allow is None]
        raise Refused(f"{name} has not asked {command.question_id!r}, or needs no answer any more", possible=waiting)
    if question.allow is not None:
        said = "allowed" if question.allow else "denied"
        raise Refused(f"{question.answered_by} has {said} this already")
    if command.by == name:
        raise Refused(f"{name} cannot answer its own question")
    draft.emit(QuestionAnswered(name, question.id, command.allow, command.why, command.by))


def given(draft: Draft, report: ReportAnswerGiven) -> None:
    draft.emit(AnswerGiven(report.agent, report.epoch, report.question_id))


def find_question(agent: Agent, question_id: str) -> Question | None:
    return next((each for each in agent.questions if each.id == question_id), None)
