"""How an event changes what we know. No decisions here: an event has happened and is applied."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from remuda.domain.accounts import evolve_ledger
from remuda.domain.body import Begun
from remuda.domain.events import (
    AgentEvent,
    AgentSpawned,
    AnswerGiven,
    BudgetReserved,
    BudgetSet,
    BudgetWarned,
    CompletionSignalled,
    ErrorReported,
    FolderChanged,
    MailWithdrawn,
    MessageQueued,
    OutputAppended,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    Reminded,
    ReportIgnored,
    RestBegan,
    RestEnded,
    RuntimeStarted,
    RuntimeStopped,
    SessionEnded,
    SessionEndRequested,
    SessionRequested,
    SessionStarted,
    StaffChanged,
    StatusChanged,
    ToolCalled,
    ToolUsed,
    TriggerFired,
    TurnEnded,
    TurnLetThrough,
    TurnStarted,
    UsageRecorded,
    UserNotified,
)
from remuda.domain.lifecycle import DEAD, RESUME, STAGE, WITH_PROCESS, Phase, Stage, Status
from remuda.domain.spin import Level, Trail, follow, told
from remuda.domain.state import Agent, Metrics, Sender, Session, State, Turn, Usage
from remuda.domain.task_events import TaskAdded, TaskEvent
from remuda.domain.task_evolve import added, evolve_task
from remuda.domain.trigger import Fired, Trigger
from remuda.domain.trigger_evolve import RULES as OF_TRIGGERS

_T = TypeVar("_T")

WORKER = "worker"
RECENT_COMMANDS = 1024  # how many ids of commands are remembered, to know one that is sent twice


def evolve(state: State, recorded: Recorded) -> State:
    """Apply one event to the state the caller owns, and hand the same state back."""
    state.seq = recorded.seq
    if recorded.cause and recorded.cause not in state.recent:
        state.recent[recorded.cause] = recorded.seq
        if len(state.recent) > RECENT_COMMANDS:
            del state.recent[next(iter(state.recent))]
    event = recorded.event
    evolve_ledger(state, event, recorded.at)
    match event:
        case RuntimeStarted():
            state.runtime, state.stopped_cleanly = event.instance, False
        case RuntimeStopped():
            state.stopped_cleanly = True
        case StaffChanged():
            state.staff = event.staff
        case BudgetSet():
            pass  # the ledger has it
        case AgentSpawned():
            state.agents[event.agent] = spawned(event, recorded.at)
        case TaskAdded():
            state.tasks[event.task] = added(event, recorded.at)
        case _:
            _evolve_one(state, event, recorded.at)
    return state


def _evolve_one(state: State, event: AgentEvent | TaskEvent, at: float) -> None:
    """By the table and not by the type: this is the hot path, and an event is of an agent nearly always."""
    rule = RULES.get(type(event))
    if rule is None:
        task: str = event.task  # type: ignore[union-attr]  # what is not of an agent is of a task
        state.tasks[task] = evolve_task(state.tasks[task], event, at)  # type: ignore[arg-type]
        return
    if isinstance(event, TurnStarted):
        state.clock = event.turn
    agent: str = event.agent  # type: ignore[union-attr]
    state.agents[agent] = rule(state.agents[agent], event, at)


def spawned(event: AgentSpawned, at: float) -> Agent:
    return Agent(
        name=event.agent,
        role=event.role,
        backend=event.backend,
        created_at=at,
        active_at=at,
        parent=event.parent,
        model=event.model,
        instructions=event.instructions,
        options=event.options,
        phase=Phase.IDLE if event.role == WORKER or event.works else None,
    )


def evolve_agent(agent: Agent, event: AgentEvent, at: float) -> Agent:
    """The agent after an event. Each kind has its rule in RULES, at the end of this file."""
    return RULES[type(event)](agent, event, at)


def _phase_changed(agent: Agent, event: PhaseChanged, at: float) -> Agent:
    return agent._replace(phase=event.now, task=event.task, idled=0, active_at=at)


def _message_queued(agent: Agent, event: MessageQueued, at: float) -> Agent:
    return agent._replace(queue=(*agent.queue, event.message), active_at=at)


def _mail_withdrawn(agent: Agent, event: MailWithdrawn, _at: float) -> Agent:
    kept = tuple(each for each in agent.queue if each.id not in event.message_ids)
    # What it asked in a turn that was cut is asked for nobody's sake when the message does not come again.
    asked = agent.turn is not None or any(each.attempts for each in kept)
    return agent._replace(queue=kept, questions=agent.questions if asked else ())


def _was_active(agent: Agent, _event: AgentEvent, at: float) -> Agent:
    return agent._replace(active_at=at)


def _unchanged(agent: Agent, _event: AgentEvent, _at: float) -> Agent:
    return agent


def _status_changed(agent: Agent, event: StatusChanged, at: float) -> Agent:
    session = agent.session
    if session is not None and session.stage is not Stage.ENDED and event.now not in WITH_PROCESS:
        session = session if session.stage is Stage.ENDING else _at(session, Stage.ENDING)
    goes_on = event.now is Status.READY and event.was in RESUME
    trigger, sought = (None, None) if goes_on else (agent.trigger, agent.sought)
    after = agent._replace(
        status=event.now, why=event.why, session=session, trigger=trigger, sought=sought, active_at=at
    )
    return after._replace(ended_at=at, questions=(), rest_until=0.0, sought=None) if event.now in DEAD else after


def _session_requested(agent: Agent, event: SessionRequested, at: float) -> Agent:
    session = Session(event.epoch, Stage.REQUESTED, resumes=event.resumes, errand=agent.errand)
    return agent._replace(session=session, metrics=agent.metrics._replace(total_cost_nanousd=0), active_at=at)


def _session_started(agent: Agent, event: SessionStarted, at: float) -> Agent:
    session = _at(agent.session, Stage.STARTED)._replace(ref=event.ref, metered=event.metered)
    begun = agent.begun
    here = session.errand == agent.errand  # else it was sent elsewhere meanwhile, and nothing is done in this session
    if here and (begun is None or begun.errand != session.errand):
        begun = Begun(agent.folder, session.errand, event.tree)
    return agent._replace(session=session, begun=begun, active_at=at)


def _session_end_requested(agent: Agent, _event: SessionEndRequested, at: float) -> Agent:
    return agent._replace(session=_at(agent.session, Stage.ENDING), active_at=at)


def _session_ended(agent: Agent, event: SessionEnded, at: float) -> Agent:
    ended = _at(agent.session, Stage.ENDED)
    return agent._replace(session=ended, crashes=agent.crashes + event.crashed, active_at=at)


def _turn_started(agent: Agent, event: TurnStarted, at: float) -> Agent:
    message, *rest = agent.queue
    # Who is given something new to do begins anew; who is given the same again does not.
    anew = message.sender in (Sender.USER, Sender.COORDINATOR) and not message.attempts
    return agent._replace(
        turn=Turn(event.turn, message, at),
        trail=Trail() if anew else agent.trail,
        queue=tuple(rest),
        tool="",
        reminders=agent.reminders if message.sender is Sender.SYSTEM else 0,
        metrics=agent.metrics._replace(turn_cost_nanousd=0),
        active_at=at,
    )


def _turn_ended(agent: Agent, event: TurnEnded, at: float) -> Agent:
    turn = _present(agent.turn)
    message = turn.message
    agent = agent._replace(milliseconds=agent.milliseconds + max(0, int((at - turn.started_at) * 1000)))
    if event.outcome.answered:
        return agent._replace(
            turn=None, turns=agent.turns + 1, idled=agent.idled + 1, crashes=0, limits=0, questions=(), active_at=at
        )
    again = replace(message, attempts=message.attempts + 1)
    return agent._replace(turn=None, turns=agent.turns + 1, queue=(again, *agent.queue), active_at=at)


def _folder_changed(agent: Agent, event: FolderChanged, _at: float) -> Agent:
    return agent._replace(folder=event.folder, errand=agent.errand + 1)


def _tool_used(agent: Agent, event: ToolUsed, at: float) -> Agent:
    return agent._replace(tool=event.tool, reminders=0, active_at=at)


def _reminded(agent: Agent, event: Reminded, _at: float) -> Agent:
    return agent._replace(queue=(event.message, *agent.queue), reminders=event.count)


def _rest_began(agent: Agent, event: RestBegan, _at: float) -> Agent:
    return agent._replace(rest_until=event.until, limits=agent.limits + 1)


def _rest_ended(agent: Agent, _event: RestEnded, _at: float) -> Agent:
    return agent._replace(rest_until=0.0)


QUESTIONS_KEPT = 200  # of one agent in one turn, those of sessions before this one among them


def _question_asked(agent: Agent, event: QuestionAsked, at: float) -> Agent:
    others = [each for each in agent.questions if each.id != event.question.id]
    # Nobody waits for those any more. How many wait at once is bounded where they are put.
    idle = [each for each in others if each.given or each.epoch != event.epoch]
    over = set(idle[: max(0, len(others) + 1 - QUESTIONS_KEPT)])
    return agent._replace(questions=(*(each for each in others if each not in over), event.question), active_at=at)


def _question_answered(agent: Agent, event: QuestionAnswered, _at: float) -> Agent:
    return _with_question(agent, event.question_id, allow=event.allow, why=event.why, answered_by=event.by)


def _answer_given(agent: Agent, event: AnswerGiven, at: float) -> Agent:
    return _with_question(agent, event.question_id, given=True)._replace(active_at=at)


def _with_question(agent: Agent, question_id: str, **changes: Any) -> Agent:
    changed = (replace(each, **changes) if each.id == question_id else each for each in agent.questions)
    return agent._replace(questions=tuple(changed))


def _usage_recorded(agent: Agent, event: UsageRecorded, at: float) -> Agent:
    session = agent.session if event.metered else _present(agent.session)._replace(calls=event.call)
    metrics = add(agent.metrics, event.usage, at)
    if agent.turn is not None and agent.turn.number != event.turn:
        # It is of an earlier turn and comes late: spent, but not in this one.
        metrics = metrics._replace(turn_cost_nanousd=agent.metrics.turn_cost_nanousd)
    return agent._replace(session=session, metrics=metrics, active_at=at)


def add(metrics: Metrics, usage: Usage, at: float) -> Metrics:
    cost = usage.cost_nanousd or 0
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
    return Metrics(
        input_tokens=metrics.input_tokens + usage.input_tokens,
        output_tokens=metrics.output_tokens + usage.output_tokens,
        cache_read_tokens=metrics.cache_read_tokens + usage.cache_read_tokens,
        cache_creation_tokens=metrics.cache_creation_tokens + usage.cache_creation_tokens,
        context_tokens=usage.context_tokens or metrics.context_tokens,
        context_window=usage.context_window or metrics.context_window,
        turn_cost_nanousd=metrics.turn_cost_nanousd + cost,
        total_cost_nanousd=metrics.total_cost_nanousd + cost,
        cumulative_cost_nanousd=metrics.cumulative_cost_nanousd + cost,
        unpriced_calls=metrics.unpriced_calls + (usage.cost_nanousd is None),
        unpriced_tokens=metrics.unpriced_tokens + (tokens if usage.cost_nanousd is None else 0),
        updated_at=at,
    )


def _trigger_fired(agent: Agent, event: TriggerFired, at: float) -> Agent:
    fired = Fired(event.trigger, event.turn, at, event.evidence, event.numbers, event.rule)
    trail = told(agent.trail, Level.FIRE) if event.trigger is Trigger.SPIN else agent.trail
    return agent._replace(trigger=fired, trail=trail)


def _tool_called(agent: Agent, event: ToolCalled, at: float) -> Agent:
    trail = agent.trail if event.reading is None else follow(agent.trail, event.reading)
    return agent._replace(trail=trail, active_at=at)


def _at(session: Session | None, stage: Stage) -> Session:
    present = _present(session)
    assert stage in STAGE[present.stage], f"the log takes a session from {present.stage} to {stage}"
    return present._replace(stage=stage)


def _present(value: _T | None) -> _T:
    assert value is not None, "the log tells of something that was never begun"
    return value


RULES: Mapping[type, Callable[[Agent, Any, float], Agent]] = {
    StatusChanged: _status_changed,
    PhaseChanged: _phase_changed,
    SessionRequested: _session_requested,
    SessionStarted: _session_started,
    SessionEndRequested: _session_end_requested,
    SessionEnded: _session_ended,
    MessageQueued: _message_queued,
    MailWithdrawn: _mail_withdrawn,
    TurnStarted: _turn_started,
    TurnEnded: _turn_ended,
    RestBegan: _rest_began,
    RestEnded: _rest_ended,
    ToolCalled: _tool_called,
    QuestionAsked: _question_asked,
    QuestionAnswered: _question_answered,
    AnswerGiven: _answer_given,
    FolderChanged: _folder_changed,
    ToolUsed: _tool_used,
    Reminded: _reminded,
    TurnLetThrough: _unchanged,
    UserNotified: _was_active,
    CompletionSignalled: _was_active,
    OutputAppended: _was_active,
    UsageRecorded: _usage_recorded,
    BudgetReserved: _was_active,
    BudgetWarned: _unchanged,
    TriggerFired: _trigger_fired,
    ErrorReported: _was_active,
    ReportIgnored: _unchanged,
    **OF_TRIGGERS,
}
