"""What agents say through their tools, and the rule that a worker ends its turns with one of them."""

from typing import assert_never

from remuda.domain import prompts, task_decide, workflow
from remuda.domain.draft import Decision, Draft
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import CompletionSignalled, Reminded, ToolUsed, TurnLetThrough, UserNotified
from remuda.domain.lifecycle import Phase, Stage, TaskStatus
from remuda.domain.state import Agent, Message, Outcome, Sender
from remuda.domain.task import Note, Task, Verdict
from remuda.domain.task_commands import (
    DecomposeTask,
    EscalateTask,
    NoteToolUse,
    NotifyUser,
    ReportImplementationComplete,
    ReportReviewVerdict,
    SignalComplete,
    SignalReady,
    ToolCommand,
)
from remuda.domain.task_events import ImplementationReported, TaskNoted, VerdictGiven
from remuda.domain.task_graph import unfinished
from remuda.domain.text import LONGEST_REASON, check_text
from remuda.domain.tools import ENDS_A_TURN, Tool

MOST_REMINDERS = 2


def decide(decision: Decision, command: ToolCommand) -> None:
    draft = _speaker(decision, command)
    match command:
        case SignalReady():
            used(draft, Tool.SIGNAL_READY)
        case ReportImplementationComplete():
            _complete(decision, draft, command)
        case ReportReviewVerdict():
            _verdict(decision, draft, command)
        case DecomposeTask():
            _decompose(decision, draft, command)
        case EscalateTask():
            _escalate(decision, draft, command)
        case NoteToolUse():
            if command.tool not in ENDS_A_TURN:
                raise Invalid(f"{command.tool[:60]!r} is not a tool that ends a turn")
            used(draft, command.tool)
        case NotifyUser():
            check_text("a word to the user", command.text, longest=LONGEST_REASON)
            draft.emit(UserNotified(command.agent, command.text))
        case SignalComplete():
            _signal_complete(decision, draft, command)
        case _:
            assert_never(command)


def _speaker(decision: Decision, command: ToolCommand) -> Draft:
    draft = decision.agent(command.agent)
    session = draft.agent.session
    if session is not None and session.epoch == command.epoch and session.stage is Stage.REQUESTED:
        raise Refused(f"session {command.epoch} of {command.agent} has not begun yet; try again in a moment")
    if session is None or session.epoch != command.epoch or session.stage is not Stage.STARTED:
        raise Refused(f"session {command.epoch} of {command.agent} is over; nothing it says counts any more: end it")
    return draft


def used(draft: Draft, tool: str) -> None:
    agent = draft.agent
    assert agent.session is not None
    draft.emit(ToolUsed(agent.name, agent.session.epoch, agent.turn.number if agent.turn else 0, tool))


def _own_task(decision: Decision, agent: Agent) -> Task:
    if not agent.task:
        raise Refused(f"{agent.name} has no task; wait until one is assigned to it, and end the turn")
    return decision.task(agent.task)


def _complete(decision: Decision, draft: Draft, command: ReportImplementationComplete) -> None:
    check_text("the summary", command.summary)
    agent = draft.agent
    task = _own_task(decision, agent)
    workflow.change_phase(draft, Phase.AWAITING_REVIEW, task.id)
    if not task.folder or draft.agent.folder != task.folder:
        raise Refused(f"the worktree of {task.id} is not ready yet; it will be given to you in a message: end the turn")
    used(draft, Tool.REPORT_IMPLEMENTATION_COMPLETE)
    task = decision.emit(ImplementationReported(task.id, agent.name, task.attempt + 1, command.summary))
    workflow.move(decision, task, TaskStatus.IN_REVIEW, f"reported complete by {agent.name}")


def _verdict(decision: Decision, draft: Draft, command: ReportReviewVerdict) -> None:
    check_text("the comments", command.comments, empty=command.approved)
    task = _own_task(decision, draft.agent)
    if task.reviewer != command.agent or task.check is None:
        raise Refused(f"{command.agent} does not review {task.id}; it is {draft.agent.phase} of it")
    used(draft, Tool.REPORT_REVIEW_VERDICT)
    verdict = Verdict(command.agent, command.approved, command.comments, task.check.commit)
    task = decision.emit(VerdictGiven(task.id, verdict))
    workflow.release_reviewer(decision, task, "it has given its verdict", cut=False)


def _decompose(decision: Decision, draft: Draft, command: DecomposeTask) -> None:
    task = _own_task(decision, draft.agent)
    if task.holder != command.agent:
        raise Refused(f"{command.agent} does not hold {task.id}; only its holder may take it apart")
    used(draft, Tool.DECOMPOSE_TASK)
    task_decide.take_apart(decision, task, command.parts, command.agent, cut=False)


def _escalate(decision: Decision, draft: Draft, command: EscalateTask) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON)
    task = _own_task(decision, draft.agent)
    used(draft, Tool.ESCALATE)
    decision.emit(TaskNoted(task.id, Note(decision.now, command.agent, command.why)))
    workflow.block(decision, decision.task(task.id), f"{command.agent}: {command.why}"[:LONGEST_REASON], cut=False)


def _signal_complete(decision: Decision, draft: Draft, command: SignalComplete) -> None:
    check_text("the summary", command.summary)
    left = [task.id for task in unfinished(decision.tasks())]
    if left:
        raise Refused(f"{len(left)} tasks are not finished; see to them first, or cancel them", possible=left[:20])
    draft.emit(CompletionSignalled(command.agent, command.summary))


# --- the end of a turn ---


def silent(agent: Agent, outcome: Outcome) -> bool:
    """Whether a turn that ends so has left everyone without a word on where the agent's task stands. Not asked of
    turns that failed, of an agent's first, and of one that was not yet told of its task."""
    told = agent.session is not None and agent.session.errand == agent.errand and bool(agent.folder)
    return bool(agent.task) and told and outcome is Outcome.COMPLETED and agent.turns > 0 and not agent.tool


def remind(draft: Draft, turn: int) -> None:
    agent = draft.agent
    assert agent.session is not None
    place = (agent.name, agent.session.epoch, turn)
    if agent.reminders >= MOST_REMINDERS:
        draft.emit(TurnLetThrough(*place, agent.reminders))
        return
    count = agent.reminders + 1
    text = prompts.reminder(agent.task, count, MOST_REMINDERS)
    letter = Message(f"reminder-{draft.whole.seq}", Sender.SYSTEM, "remuda", text, draft.now, about=agent.task)
    draft.emit(Reminded(*place, letter, count, len(agent.queue) + 1))
