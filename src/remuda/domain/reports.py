"""What the world's reports lead to. Each is fenced: one from another session or turn is kept, never applied."""

from typing import assert_never

from remuda.domain.commands import (
    Report,
    ReportError,
    ReportOutput,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
    ReportUsage,
)
from remuda.domain.draft import Draft, wake
from remuda.domain.events import (
    ErrorReported,
    OutputAppended,
    ReportIgnored,
    SessionEnded,
    SessionStarted,
    TurnEnded,
    UsageRecorded,
)
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Outcome, Session, Usage
from remuda.domain.text import tidy

CRASHES_ALLOWED = 3  # sessions lost in a row, with no turn answered between them
MOST_TOKENS = 10**10  # in one call; more is a lie or a bug, and would poison every sum
MOST_NANOUSD = 10**15


def decide(draft: Draft, report: Report) -> None:
    why = _stale(draft, report)
    if why:
        turn = getattr(report, "turn", 0)
        draft.emit(ReportIgnored(draft.agent.name, report.epoch, turn, type(report).__name__, why))
        return
    match report:
        case ReportSessionStarted():
            draft.emit(SessionStarted(report.agent, report.epoch, tidy(report.ref)))
            draft.move(Status.READY, "its session has started")
            wake(draft)
        case ReportSessionEnded():
            _session_ended(draft, report)
        case ReportSessionFailed():
            error = tidy(report.error)
            draft.emit(SessionEnded(report.agent, report.epoch, error, None, crashed=True))
            draft.move(Status.FAILED, error)
        case ReportTurnEnded():
            _turn_ended(draft, report)
        case ReportOutput():
            draft.emit(
                OutputAppended(report.agent, report.epoch, report.turn, report.offset, report.size, report.lines)
            )
        case ReportUsage():
            draft.emit(UsageRecorded(report.agent, report.epoch, report.turn, report.call, report.usage))
        case ReportError():
            draft.emit(ErrorReported(report.agent, report.epoch, report.turn, tidy(report.error)))
        case _:
            assert_never(report)


def _session_ended(draft: Draft, report: ReportSessionEnded) -> None:
    assert draft.agent.session is not None
    crashed = draft.agent.session.stage is not Stage.ENDING
    detail = tidy(report.detail)
    draft.emit(SessionEnded(report.agent, report.epoch, detail, report.returncode, crashed))
    draft.cut_turn(Outcome.LOST, detail)
    if crashed and draft.agent.crashes >= CRASHES_ALLOWED:
        times = f"its session died {draft.agent.crashes} times in a row; the last time: {detail}"
        draft.move(Status.FAILED, times)
        return
    if draft.agent.status is Status.WORKING:
        draft.move(Status.READY, detail)
    draft.renew_or_wake()


def _turn_ended(draft: Draft, report: ReportTurnEnded) -> None:
    assert draft.agent.turn is not None
    draft.emit(
        TurnEnded(
            report.agent,
            report.epoch,
            report.turn,
            draft.agent.turn.message.id,
            report.outcome,
            tidy(report.stop_reason),
            tidy(report.error),
        )
    )
    draft.move(Status.READY, f"turn {report.turn} {report.outcome}")
    wake(draft)


# --- the fence ---


def _stale(draft: Draft, report: Report) -> str:
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
        case ReportOutput() | ReportError() if report.turn:
            return _turn_fault(draft, report.turn)
        case _:
            expected = session.stage is not Stage.ENDED
    return "" if expected else f"session {session.epoch} is {session.stage}"


def _turn_fault(draft: Draft, number: int) -> str:
    turn = draft.agent.turn
    if turn is None or turn.number != number:
        return f"it is of turn {number}, the present one is {turn.number if turn else 'none'}"
    return ""


def _outcome_fault(outcome: Outcome) -> str:
    return "" if outcome.answered else f"only the runtime may call a turn {outcome}"


def _usage_fault(session: Session, call: int, usage: Usage) -> str:
    if session.stage is Stage.ENDED:
        return f"session {session.epoch} is {session.stage}"
    if call <= session.calls:
        return f"model call {call} was counted already (up to {session.calls})"
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
