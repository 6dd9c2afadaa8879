"""What a command leads to: events, or a refusal. Pure: the same state, command and time give the same answer.

Nothing here asks for a status in order to permit a move. A decision proposes the move; the tables refuse it.
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from remuda.domain import budget, burial, questions, reports, speaking, task_decide, task_reports, verdict, workflow
from remuda.domain.budget_commands import CheckBudget, GrantBudget, ReserveBudget, SetBudget, SettleBudget
from remuda.domain.commands import (
    AgentCommand,
    AnswerQuestion,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    ResumeAgent,
    RetireAgent,
    SendMessage,
    SpawnAgent,
    StartRuntime,
    StopAgent,
    StopRuntime,
)
from remuda.domain.draft import Decision, Draft, find, wake
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import (
    AgentSpawned,
    Event,
    MessageQueued,
    RuntimeStarted,
    RuntimeStopped,
    SessionEnded,
    StaffChanged,
)
from remuda.domain.lifecycle import DEAD, Stage, Status, TaskStatus, check_resume
from remuda.domain.state import Agent, Message, Outcome, State
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    BlockTask,
    CancelTask,
    CloseTask,
    CompleteStep,
    EditTask,
    NoteTask,
    ReleaseReview,
    ReleaseTask,
    ReopenTask,
    ReplaceWorker,
    SetStaff,
    SplitTask,
    TaskReport,
    ToolCommand,
)
from remuda.domain.text import LONGEST_REASON, check_name, check_text
from remuda.domain.trigger_commands import (
    BuryAgent,
    FireTrigger,
    GiveVerdict,
    NudgeAgent,
    ReportBodyRemoved,
    ReportSaidAgain,
    ReportVerdictOverdue,
    ReportWorkKept,
    SeekVerdict,
)

COORDINATOR = "coordinator"
LONGEST_QUEUE = 1000
MOST_WORKERS = 1000

Events = tuple[Event, ...]


def decide(state: State, command: Command, now: float) -> Events:
    decision = Decision(state, now)
    rule = RULES.get(type(command))
    if rule is not None:
        rule(decision, command)
    else:
        _decide_for_agent(decision.agent(command.agent), command)  # type: ignore[union-attr, arg-type]
    _leave_nothing_to_the_dead(decision)
    return tuple(decision.events)


def _leave_nothing_to_the_dead(decision: Decision) -> None:
    """Whatever it was that killed an agent, its task goes back in the same breath."""
    for draft in list(decision.drafts.values()):
        agent = draft.agent
        if agent.task and agent.status in DEAD:
            task, why = decision.task(agent.task), f"{agent.name} is {agent.status}"
            if task.holder == agent.name:
                workflow.bereave(decision, task, why)
            else:
                workflow.release_reviewer(decision, task, why)


def _decide_for_agent(draft: Draft, command: AgentCommand) -> None:
    match command:
        case SendMessage():
            _send(draft, command)
        case PauseAgent():
            _rest(draft, Status.PAUSED, command.why)
        case StopAgent():
            _rest(draft, Status.STOPPED, command.why)
        case HibernateAgent():
            _rest(draft, Status.HIBERNATING, command.why)
        case RetireAgent():
            _rest(draft, Status.RETIRED, command.why)
        case ReapAgent():
            _rest(draft, Status.REAPED, command.why)
        case ResumeAgent():
            _resume(draft)
        case AnswerQuestion():
            questions.answer(draft, command)
        case _:
            reports.decide(draft, command)


# --- agents ---


def _spawn(decision: Decision, command: SpawnAgent) -> Draft:
    agents = decision.agents()
    check_name("role", command.role)
    name = command.name or _next_name(agents, command.role)
    check_name("name", name)
    _check_wishes(command)
    if name in agents:
        raise Refused(f"there is already an agent {name!r}; names are never used twice, also not those of the dead")
    if command.role == COORDINATOR:
        for other in agents.values():
            if other.role == COORDINATOR and other.status not in DEAD:
                raise Refused(f"{other.name} is the coordinator; a project has one; retire it first")
    if command.parent and find(agents, command.parent).status in DEAD:
        raise Refused(f"the parent {command.parent} is {find(agents, command.parent).status}")
    event = AgentSpawned(
        agent=name,
        role=command.role,
        backend=command.backend,
        parent=command.parent,
        model=command.model,
        instructions=command.instructions,
        options=command.options,
        works=command.works,
    )
    draft = decision.spawn(event)
    budget.endow(decision, name, command.budget, command.parent or "user")
    if not command.hold:
        draft.request_session("spawned")
    return draft


def _check_wishes(command: SpawnAgent) -> None:
    check_text("instructions", command.instructions, empty=True)
    check_text("the backend", command.backend, longest=LONGEST_REASON, empty=True)
    check_text("the model", command.model, longest=LONGEST_REASON, empty=True)
    for option, value in command.options:
        check_text("an option", option, longest=LONGEST_REASON)
        check_text(f"option {option}", value, empty=True)


def _next_name(agents: Mapping[str, Agent], role: str) -> str:
    if role == COORDINATOR and COORDINATOR not in agents:
        return COORDINATOR
    number = 1 + sum(agent.role == role for agent in agents.values())
    while f"{role}-{number}" in agents:
        number += 1
    return f"{role}-{number}"


def _rest(draft: Draft, status: Status, why: str) -> None:
    """Leave work for a status without a process. An open turn is cut; its message waits at the head of the queue."""
    if status is Status.REAPED and not why:
        raise Invalid("reaping needs a reason: it is what the dead agent's body will say")
    check_text("the reason", why, longest=LONGEST_REASON, empty=True)
    draft.move(status, why)
    draft.cut_turn(Outcome.INTERRUPTED, why or f"the agent was {status}")


def _resume(draft: Draft) -> None:
    check_resume(draft.agent.name, draft.agent.status)
    if draft.agent.status is Status.PENDING:
        draft.request_session("resumed")
        return
    budget.check_resume(draft)
    draft.move(Status.READY, "resumed")
    wake(draft)


def _replace(decision: Decision, command: ReplaceWorker) -> None:
    """The successor is there before the worker goes, and takes over what it was at. What is in review or being merged
    needs no holder."""
    old = decision.agent(command.agent)
    if old.agent.phase is None:
        raise Refused(f"{command.agent} is a {old.agent.role}; only workers can be replaced")
    like = old.agent
    wish = SpawnAgent(
        role=like.role,
        backend=command.backend or like.backend,
        parent=like.parent,
        model=command.model or like.model,
        instructions=like.instructions,
        options=like.options,
        works=True,
    )
    successor = _spawn(decision, wish).agent.name
    budget.inherit(decision, like.name, successor)
    why = f"{successor} takes over" + (f": {command.why}" if command.why else "")
    task = decision.task(like.task) if like.task else None
    if task is not None and task.reviewer == like.name:
        workflow.release_reviewer(decision, task, why)
        workflow.assign_review(decision, AssignReview(task.id, successor, by="remuda"))
    elif task is not None and task.status is TaskStatus.IN_PROGRESS:
        workflow.bereave(decision, task, why)
        workflow.assign(decision, AssignTask(task.id, successor, by="remuda", words=task.words))
    _rest(old, Status.RETIRED, why)


# --- messages ---


def _send(draft: Draft, command: SendMessage) -> None:
    agent = draft.agent
    check_text("a message", command.text)
    check_text("a message's id", command.message_id, longest=LONGEST_REASON)
    check_text("a message's author", command.author, longest=LONGEST_REASON)
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status} and reads no mail; spawn a successor and write to it")
    if len(agent.queue) >= LONGEST_QUEUE:
        raise Refused(f"{agent.name} has {len(agent.queue)} messages waiting; let it work them off, or stop it")
    about = command.about
    message = Message(command.message_id, command.sender, command.author, command.text, draft.now, about=about)
    draft.emit(MessageQueued(agent.name, message, len(agent.queue) + 1))
    wake(draft)


# --- the runtime ---


def _set_staff(decision: Decision, command: SetStaff) -> None:
    if not 0 <= command.staff.workers <= MOST_WORKERS:
        raise Invalid(f"there may be from 0 to {MOST_WORKERS} workers, not {command.staff.workers}")
    check_text("the backend", command.staff.backend, longest=LONGEST_REASON, empty=True)
    check_text("the model", command.staff.model, longest=LONGEST_REASON, empty=True)
    decision.events.append(StaffChanged(command.staff))


def _start_runtime(decision: Decision, command: StartRuntime) -> None:
    """Whatever ran under the last runtime is gone. Work that was under way is taken up in a fresh session."""
    decision.events.append(RuntimeStarted(command.instance))
    budget.settle_lost(decision)
    verdict.ask_again(decision)
    lost = "the runtime was stopped" if decision.state.stopped_cleanly else "the runtime died"
    for agent in decision.state.agents.values():
        if agent.session is None or agent.session.stage is Stage.ENDED:
            continue
        draft = decision.agent(agent.name)
        draft.emit(SessionEnded(agent.name, agent.session.epoch, lost, None, crashed=False))
        draft.cut_turn(Outcome.LOST, lost)
        if agent.status is Status.WORKING:
            draft.move(Status.READY, lost)
        draft.renew_or_wake()


def _stop_runtime(decision: Decision, command: StopRuntime) -> None:
    decision.events.append(RuntimeStopped(command.instance))


# What is not here is about one agent.
RULES: Mapping[type, Callable[[Decision, Any], object]] = {
    SpawnAgent: _spawn,
    StartRuntime: _start_runtime,
    StopRuntime: _stop_runtime,
    SetStaff: _set_staff,
    ReplaceWorker: _replace,
    SetBudget: budget.set_budget,
    GrantBudget: budget.grant,
    ReserveBudget: budget.reserve,
    SettleBudget: budget.settle,
    CheckBudget: budget.check,
    NudgeAgent: verdict.nudge,
    ReportSaidAgain: verdict.said_again,
    FireTrigger: verdict.fire,
    SeekVerdict: verdict.seek,
    GiveVerdict: lambda decision, command: verdict.give(decision, command, _spawn),
    ReportVerdictOverdue: lambda decision, report: verdict.overdue(decision, report, _spawn),
    ReportWorkKept: burial.kept,
    BuryAgent: burial.bury,
    ReportBodyRemoved: burial.removed,
    AddTasks: task_decide.add,
    EditTask: task_decide.edit,
    NoteTask: task_decide.note,
    CompleteStep: task_decide.complete_step,
    CloseTask: task_decide.close,
    CancelTask: task_decide.cancel,
    BlockTask: task_decide.block,
    ReopenTask: task_decide.reopen,
    SplitTask: task_decide.split,
    AssignTask: workflow.assign,
    AssignReview: workflow.assign_review,
    AssignFeedback: workflow.assign_feedback,
    ApproveCommit: task_reports.approve,
    ReleaseTask: workflow.release,
    ReleaseReview: workflow.release_review,
    **dict.fromkeys(get_args(ToolCommand), speaking.decide),
    **dict.fromkeys(get_args(TaskReport), task_reports.decide),
}
