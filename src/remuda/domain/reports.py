"""What the world's reports lead to. Each is fenced: one from another session or turn is kept, never applied."""

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any

from remuda.domain import questions, speaking
from remuda.domain.commands import (
    AgentReport,
    ReportAnswerGiven,
    ReportError,
    ReportOutput,
    ReportQuestion,
    ReportRested,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportToolCall,
    ReportTurnEnded,
    ReportUsage,
)
from remuda.domain.draft import Draft, wake
from remuda.domain.events import (
    ErrorReported,
    OutputAppended,
    ReportIgnored,
    RestBegan,
    RestEnded,
    SessionEnded,
    SessionEndRequested,
    SessionStarted,
    ToolCalled,
    TurnEnded,
    UsageRecorded,
)
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Outcome, Session, Usage
from remuda.domain.text import tidy
from remuda.domain.trigger import Trigger

CRASHES_ALLOWED = 3  # sessions lost in a row, with no turn answered between them
MOST_TOKENS = 10**10  # in one call; more is a lie or a bug, and would poison every sum
MOST_NANOUSD = 10**15

# Seconds to wait where the model's service asks for patience without saying how much: doubled each time in a row.
FIRST_REST = 5.0
SHORTEST_REST = 1.0
LONGEST_REST = 300.0
DOUBLINGS = 6  # by then it is the longest


def decide(draft: Draft, report: AgentReport) -> None:
    why = _stale(draft, report)
    if why:
        turn = getattr(report, "turn", 0)
        draft.emit(ReportIgnored(draft.agent.name, report.epoch, turn, type(report).__name__, why))
        return
    RULES[type(report)](draft, report)


def _session_started(draft: Draft, report: ReportSessionStarted) -> None:
    draft.emit(SessionStarted(report.agent, report.epoch, tidy(report.ref), report.metered, tidy(report.tree)))
    draft.move(Status.READY, "its session has started")
    wake(draft)


def _session_failed(draft: Draft, report: ReportSessionFailed) -> None:
    error = tidy(report.error)
    draft.emit(SessionEnded(report.agent, report.epoch, error, None, crashed=True, failure=report.failure))
    draft.move(Status.FAILED, error)


def _session_ended(draft: Draft, report: ReportSessionEnded) -> None:
    assert draft.agent.session is not None
    unasked = draft.agent.session.stage is not Stage.ENDING
    limit = _passing(report.failure) if unasked and draft.agent.turn is not None else None
    crashed = unasked and limit is None  # a service that has no room is no fault of the session that asked it
    detail = tidy(report.detail)
    draft.emit(SessionEnded(report.agent, report.epoch, detail, report.returncode, crashed, report.failure))
    draft.cut_turn(Outcome.LIMITED if limit else Outcome.LOST, detail)
    if crashed and draft.agent.crashes >= CRASHES_ALLOWED:
        times = f"its session died {draft.agent.crashes} times in a row; the last time: {detail}"
        draft.move(Status.FAILED, times)
        return
    if limit:
        _begin_rest(draft, limit, None)
    if draft.agent.status is Status.WORKING:
        draft.move(Status.READY, detail)
    draft.renew_or_wake()


def _turn_ended(draft: Draft, report: ReportTurnEnded) -> None:
    assert draft.agent.turn is not None
    fired = draft.agent.trigger
    if fired is not None and (fired.trigger, fired.turn) == (Trigger.BUDGET, report.turn):
        return _out_of_budget(draft, report, fired.evidence)
    limit = _passing(report.failure)
    outcome = Outcome.LIMITED if limit else report.outcome
    silent = speaking.silent(draft.agent, outcome)
    draft.emit(
        TurnEnded(
            report.agent,
            report.epoch,
            report.turn,
            draft.agent.turn.message.id,
            outcome,
            tidy(report.stop_reason),
            tidy(report.error),
            report.failure,
        )
    )
    if limit:
        _begin_rest(draft, limit, report.retry_after)
        # The message is given again in a fresh session: this one has read it already.
        draft.emit(SessionEndRequested(report.agent, report.epoch, str(limit)))
    draft.move(Status.READY, f"turn {report.turn} {outcome}")
    if silent:
        speaking.remind(draft, report.turn)
    return wake(draft)


def _out_of_budget(draft: Draft, report: ReportTurnEnded, why: str) -> None:
    """Whatever the program made of the refusal of its calls: its work was cut short, and goes on with more budget."""
    assert draft.agent.turn is not None
    letter, place = draft.agent.turn.message.id, (report.agent, report.epoch, report.turn)
    stop, failure = tidy(report.stop_reason), Failure.BUDGET_SPENT
    draft.emit(TurnEnded(*place, letter, Outcome.LIMITED, stop, tidy(why), failure))
    draft.move(Status.PAUSED, why)


def _passing(failure: Failure | None) -> Failure | None:
    """The failure, if it goes away by itself."""
    return failure if failure is not None and REMEDY[failure].passes else None


def _begin_rest(draft: Draft, failure: Failure, retry_after: float | None) -> None:
    agent = draft.agent
    seconds = FIRST_REST * 2 ** min(agent.limits, DOUBLINGS)
    if retry_after is not None and not isnan(retry_after):
        seconds = retry_after
    until = draft.now + min(max(seconds, SHORTEST_REST), LONGEST_REST)
    draft.emit(RestBegan(agent.name, until, failure))


def _rested(draft: Draft, report: ReportRested) -> None:
    draft.emit(RestEnded(report.agent))
    wake(draft)


def _output(draft: Draft, report: ReportOutput) -> None:
    draft.emit(OutputAppended(report.agent, report.epoch, report.turn, report.offset, report.size, report.lines))


def _usage(draft: Draft, report: ReportUsage) -> None:
    """Where the meter counts the calls, what the agent itself tells of them is not added: only it knows its window."""
    usage = report.usage
    if draft.agent.session is not None and draft.agent.session.metered:
        usage = Usage(context_tokens=usage.context_tokens, context_window=usage.context_window, cost_nanousd=0)
    draft.emit(UsageRecorded(report.agent, report.epoch, report.turn, report.call, usage))


def _error(draft: Draft, report: ReportError) -> None:
    draft.emit(ErrorReported(report.agent, report.epoch, report.turn, tidy(report.error), report.failure))


def _tool_call(draft: Draft, report: ReportToolCall) -> None:
    draft.emit(
        ToolCalled(
            agent=report.agent,
            epoch=report.epoch,
            turn=report.turn,
            id=tidy(report.id),
            name=tidy(report.name),
            ok=report.ok,
            seconds=report.seconds,
            arguments=tidy(report.arguments),
            result=tidy(report.result),
            reading=report.reading,
        )
    )


RULES: Mapping[type, Callable[[Draft, Any], None]] = {
    ReportSessionStarted: _session_started,
    ReportSessionEnded: _session_ended,
    ReportSessionFailed: _session_failed,
    ReportTurnEnded: _turn_ended,
    ReportOutput: _output,
    ReportUsage: _usage,
    ReportError: _error,
    ReportToolCall: _tool_call,
    ReportRested: _rested,
    ReportQuestion: questions.ask,
    ReportAnswerGiven: questions.given,
}


# --- the fence ---


def _stale(draft: Draft, report: AgentReport) -> str:
    """Why a report must not be applied, or nothing."""
    session = draft.agent.session
    if session is None or report.epoch != session.epoch:
        return f"it is of session {report.epoch}, the present one is {session.epoch if session else 'none'}"
    match report:
        case ReportSessionStarted() | ReportSessionFailed():
            expected = session.stage is Stage.REQUESTED
        case ReportUsage():
            # Money spent in a turn that was cut short is spent all the same: only the session must match.
            return _usage_fault(session, report.call, report.usage)
        case ReportTurnEnded():
            return _turn_fault(draft, report.turn) or _outcome_fault(report.outcome)
        case ReportQuestion() | ReportToolCall():
            return _turn_fault(draft, report.turn)
        case ReportOutput() | ReportError() if report.turn:
            return _turn_fault(draft, report.turn)
        case ReportRested():
            return "" if draft.agent.rest_until else "the agent does not rest"
        case ReportAnswerGiven():
            return _answer_fault(draft, report)
        case _:
            expected = session.stage is not Stage.ENDED
    return "" if expected else f"session {session.epoch} is {session.stage}"


def _turn_fault(draft: Draft, number: int) -> str:
    turn = draft.agent.turn
    if turn is None or turn.number != number:
        return f"it is of turn {number}, the present one is {turn.number if turn else 'none'}"
    return ""


def _answer_fault(draft: Draft, report: ReportAnswerGiven) -> str:
    question = questions.find_question(draft.agent, report.question_id)
    if question is None or question.allow is None or question.given:
        return f"no answer to {report.question_id!r} is waiting to be given"
    same = (question.epoch, question.asking) == (report.epoch, report.asking)
    return "" if same else f"it is of another asking of {report.question_id!r}"


def _outcome_fault(outcome: Outcome) -> str:
    return "" if outcome.answered else f"only the runtime may call a turn {outcome}"


def _usage_fault(session: Session, call: int, usage: Usage) -> str:
    if session.stage is Stage.ENDED:
        return f"session {session.epoch} is {session.stage}"
    if call <= session.calls:
        return f"model call {call} was counted already (up to {session.calls})"
    return usage_fault(usage)


def usage_fault(usage: Usage) -> str:
    """Why it cannot be, or nothing."""
    tokens = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_creation_tokens,
        usage.context_tokens,
        usage.context_window,
    )
    if not all(0 <= count <= MOST_TOKENS for count in tokens):
        return "its token counts cannot be"
    if not 0 <= (usage.cost_nanousd or 0) <= MOST_NANOUSD:
        return "its cost cannot be"
    return ""
