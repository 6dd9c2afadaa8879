"""What a log must say of rests and questions, whatever happened: read from the events alone."""

from collections.abc import Iterable

from remuda.domain.events import (
    AnswerGiven,
    Event,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    RestBegan,
    RestEnded,
    StatusChanged,
    TurnEnded,
    TurnStarted,
)
from remuda.domain.lifecycle import DEAD

Given = tuple[str, int, str, int]  # agent, epoch, question, asking


def check_rests(log: Iterable[Recorded]) -> None:
    until: dict[str, float] = {}
    for record in log:
        match record.event:
            case RestBegan() as event:
                assert event.agent not in until, f"{event} while it rests"
                assert event.until > record.at, f"{event} is over before it begins"
                until[event.agent] = event.until
            case RestEnded() as event:
                assert until.pop(event.agent) <= record.at, f"{event} at {record.at} is too early"
            case StatusChanged(now=now) as event if now in DEAD:
                until.pop(event.agent, None)
            case TurnStarted() as event:
                assert event.agent not in until, f"{event} while it rests until {until[event.agent]}"


def check_questions(log: Iterable[Recorded], given: Iterable[Given]) -> None:
    """`given` is what truly reached a session."""
    asked: set[Given] = set()
    answers: dict[tuple[str, str], bool] = {}
    for event in (record.event for record in log):
        match event:
            case QuestionAsked():
                question = event.question
                known = answers.get((event.agent, question.id))
                assert question.allow is known, f"{event}, and its answer was {known}"
                asked.add((event.agent, event.epoch, question.id, question.asking))
            case QuestionAnswered():
                assert (event.agent, event.question_id) not in answers, f"{event} for the second time"
                answers[event.agent, event.question_id] = event.allow
            case AnswerGiven():
                assert (event.agent, event.question_id) in answers, f"{event}, and there is none"
            case _ if _forgets(event):
                for key in [key for key in answers if key[0] == getattr(event, "agent", "")]:
                    del answers[key]
    strange = set(given) - asked
    assert not strange, f"an answer reached a session that had not asked: {strange}"


def _forgets(event: Event) -> bool:
    """The turn is answered, or the agent dead: its questions are nobody's any more."""
    return (isinstance(event, TurnEnded) and event.outcome.answered) or (
        isinstance(event, StatusChanged) and event.now in DEAD
    )
