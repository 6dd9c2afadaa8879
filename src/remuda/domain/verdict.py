"""Fish or cut bait: what follows when a trigger fires.

An agent whose trigger has fired is stopped where it stands; it costs nothing while it waits. Whoever is responsible
for it is asked, and the first answer counts. Where nobody answers in time it is as the role's policy says.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from remuda.domain import budget, workflow
from remuda.domain.commands import SpawnAgent
from remuda.domain.draft import Decision, Draft, wake
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import MessageQueued, ReportIgnored, SessionEndRequested, TriggerFired, UserNotified
from remuda.domain.ledger import UNLIMITED
from remuda.domain.lifecycle import DEAD, STATUS, WITH_PROCESS, Stage, Status, TaskStatus
from remuda.domain.state import Agent, Message, Outcome, Sender, State
from remuda.domain.task_commands import AssignTask
from remuda.domain.text import LONGEST_REASON, check_text, tidy
from remuda.domain.trigger import Course, Fired, Sought, Strategy, Trigger
from remuda.domain.trigger_commands import (
    FireTrigger,
    GiveVerdict,
    NudgeAgent,
    ReportSaidAgain,
    ReportVerdictOverdue,
    SeekVerdict,
)
from remuda.domain.trigger_events import (
    AgentNudged,
    AgentSucceeded,
    SaidAgain,
    VerdictReached,
    VerdictSought,
)

USER = "user"
COORDINATOR = "coordinator"
MOST_RESTARTS = 100  # that are remembered
LONGEST_WAIT = 30 * 86400.0
READERS = WITH_PROCESS | {Status.HIBERNATING}  # mail wakes the last

Spawn = Callable[[Decision, SpawnAgent], Draft]


# --- before ---


def nudge(decision: Decision, command: NudgeAgent) -> None:
    draft = decision.agent(command.agent)
    agent = _alive(draft.agent)
    turn, epoch = agent.turn.number if agent.turn else 0, agent.session.epoch if agent.session else 0
    text = (
        f"You seem to go in circles: {command.evidence}. Stop and think about why. Try something that you have not "
        f"tried, or say what keeps you from getting on. If this goes on, your work will be stopped."
    )
    cut_short(draft, "it goes in circles, and is told so")
    letter = Message(f"nudge-{decision.seq}", Sender.SYSTEM, "remuda", text, decision.now)
    count = len(draft.agent.queue) + 1
    draft.emit(AgentNudged(agent.name, epoch, turn, command.rule, tidy(command.evidence), letter, count))
    wake(draft)


def said_again(decision: Decision, report: ReportSaidAgain) -> None:
    draft = decision.agent(report.agent)
    turn, session = draft.agent.turn, draft.agent.session
    place = (report.agent, report.epoch, report.turn)
    if turn is None or session is None or (session.epoch, turn.number) != (report.epoch, report.turn):
        draft.emit(ReportIgnored(*place, type(report).__name__, "it is of another turn"))
        return
    draft.emit(SaidAgain(*place, report.reading))


def cut_short(draft: Draft, why: str) -> None:
    """End the turn and its session; the message is given again in a fresh one, which remembers the conversation."""
    agent = draft.agent
    if agent.turn is None or agent.session is None or agent.session.stage is not Stage.STARTED:
        return
    draft.cut_turn(Outcome.INTERRUPTED, why)
    draft.emit(SessionEndRequested(agent.name, agent.session.epoch, why))
    draft.move(Status.READY, why)


# --- the trigger ---


def fire(decision: Decision, command: FireTrigger) -> None:
    check_text("the evidence", command.evidence, longest=LONGEST_REASON)
    check_text("the rule", command.rule, longest=LONGEST_REASON, empty=True)
    draft = decision.agent(command.agent)
    agent = _alive(draft.agent)
    over = agent.override
    if over is not None and over.trigger is command.trigger and decision.now < over.until:
        raise Refused(
            f"{over.by} has said that {agent.name} may go on: {command.trigger} does not fire for another "
            f"{over.until - decision.now:.0f} s; `remuda pause {agent.name}` stops it now"
        )
    fired = agent.trigger
    if agent.sought is not None or (fired is not None and fired.trigger is not Trigger.BUDGET):
        raise Refused(f"{agent.name} waits for a verdict already: `remuda verdict {agent.name}` tells of it")
    turn, epoch = agent.turn.number if agent.turn else 0, agent.session.epoch if agent.session else 0
    draft.emit(TriggerFired(agent.name, epoch, turn, command.trigger, command.evidence, command.numbers, command.rule))
    why = _reason(command.trigger, command.evidence)
    _stop(draft, why)
    if command.trigger is Trigger.GANG:
        for member in below(decision.state, agent.name):
            _stop(decision.agent(member.name), why)


def _reason(trigger: Trigger, evidence: str) -> str:
    return f"{trigger}: {evidence}"[:LONGEST_REASON]


def _alive(agent: Agent) -> Agent:
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status} already; see `remuda body show {agent.name}`")
    return agent


def _stop(draft: Draft, why: str) -> None:
    """Where it can be paused; one that is starting stops when it has started, and one without a process has stopped."""
    if Status.PAUSED in STATUS[draft.agent.status]:
        draft.move(Status.PAUSED, why)
        draft.cut_turn(Outcome.INTERRUPTED, why)


def below(state: State, name: str) -> Iterator[Agent]:
    """All that an agent spawned, and what those spawned, as far as it is alive."""
    for agent in state.agents.values():
        if agent.parent == name:
            if agent.status not in DEAD:
                yield agent
            yield from below(state, agent.name)


# --- the question ---


def seek(decision: Decision, command: SeekVerdict) -> None:
    if not 0 < command.seconds <= LONGEST_WAIT:
        raise Invalid(f"a verdict can be waited for up to {LONGEST_WAIT:.0f} s, not {command.seconds}")
    draft = decision.agent(command.agent)
    agent = draft.agent
    fired = agent.trigger
    if fired is None or agent.sought is not None:
        raise Refused(f"no verdict on {agent.name} is to be asked for")
    judge = responsible(decision.state, agent)
    until = 0.0 if command.otherwise is Course.WAIT else decision.now + command.seconds
    sought = Sought(judge, until, command.otherwise, command.most, command.within, command.seconds)
    draft.emit(VerdictSought(agent.name, fired.trigger, sought))
    otherwise = f" Without an answer in {command.seconds:g} s: {command.otherwise}." if until else ""
    tell(
        decision,
        judge,
        agent.name,
        f"{agent.name} was stopped ({fired.trigger}{f', {fired.rule}' if fired.rule else ''}): {fired.evidence}.\n"
        f"What is to become of it? {answers(agent.name)}.{otherwise}",
    )


def ask_again(decision: Decision) -> None:
    """A new runtime: where the time was up while there was none, nobody could have answered, and it runs once more."""
    for agent in decision.state.agents.values():
        if agent.sought is not None and 0 < agent.sought.until <= decision.now:
            _ask_again(decision.agent(agent.name))


def _ask_again(draft: Draft) -> None:
    agent = draft.agent
    assert agent.trigger is not None
    assert agent.sought is not None
    again = replace(agent.sought, until=draft.now + agent.sought.seconds)
    draft.emit(VerdictSought(agent.name, agent.trigger.trigger, again))


def _gang_waits(state: State, agent: Agent) -> bool:
    """Whether it was stopped with those around it as well, and nobody has judged that: it does not go on before."""
    above = state.agents.get(agent.parent)
    while above is not None:
        if above.sought is not None and above.trigger is not None and above.trigger.trigger is Trigger.GANG:
            return True
        above = state.agents.get(above.parent)
    return False


def responsible(state: State, agent: Agent) -> str:
    """The nearest of those above it that reads its mail; else the coordinator; else the user."""
    above = state.agents.get(agent.parent)
    while above is not None:
        if _reads_mail(above):
            return above.name
        above = state.agents.get(above.parent)
    for other in state.agents.values():
        if other.role == COORDINATOR and _reads_mail(other) and other.name != agent.name:
            return other.name
    return USER


def _reads_mail(agent: Agent) -> bool:
    """One that is paused, or waits for a verdict itself, would let the time pass."""
    return agent.status in READERS and agent.trigger is None


def tell(decision: Decision, judge: str, about: str, text: str) -> None:
    if judge == USER:
        decision.agent(about).emit(UserNotified(about, text))
        return
    draft = decision.agent(judge)
    draft.tell("trigger", Sender.SYSTEM, text)
    wake(draft)


# --- the answer ---


def overdue(decision: Decision, report: ReportVerdictOverdue, spawn: Spawn) -> None:
    draft = decision.agent(report.agent)
    sought = draft.agent.sought
    if sought is None or sought.until != report.until:
        why = "no verdict is awaited until then"
        draft.emit(ReportIgnored(report.agent, report.epoch, 0, type(report).__name__, why))
        return
    if sought.otherwise is not Course.REAP and _gang_waits(decision.state, draft.agent):
        _ask_again(draft)
        return
    why = f"{sought.judge} did not answer in time"
    give(decision, GiveVerdict(report.agent, sought.otherwise, "remuda", why), spawn)


def give(decision: Decision, command: GiveVerdict, spawn: Spawn) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    draft = decision.agent(command.agent)
    agent = draft.agent
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status}; the verdict comes too late: `remuda body show {agent.name}`")
    fired, sought = agent.trigger, agent.sought
    if fired is None or sought is None:
        raise Refused(no_verdict(agent))
    if command.course is not Course.RESTART and _other(command):
        raise Invalid(f"only a restart has a successor; {command.course} goes without {', '.join(_other(command))}")
    match command.course:
        case Course.CONTINUE:
            _continue(decision, draft, fired, command)
        case Course.RESTART:
            _restart(decision, draft, fired, sought, command, spawn)
        case Course.REAP:
            _reap(decision, draft, fired, command)
        case Course.WAIT:
            raise Invalid("to wait is no verdict: reap, restart or continue")
        case _:
            assert_never(command.course)


def answers(name: str) -> str:
    """What can be typed."""
    return f"`remuda verdict {name} reap`, `restart` or `continue`"


def no_verdict(agent: Agent) -> str:
    """Why nobody is asked about an agent that is alive."""
    if agent.trigger is not None and agent.trigger.trigger is Trigger.BUDGET:
        return f"{agent.name} has spent its budget, which needs no verdict: `remuda budget grant {agent.name}`"
    return f"no trigger of {agent.name} waits for a verdict; somebody may have given one already"


def _other(command: GiveVerdict) -> list[str]:
    """What is to be other than it was."""
    said = {
        "a backend": command.backend,
        "a model": command.model,
        "instructions": command.instructions,
        "a message": command.words,
        "a budget": command.budget != UNLIMITED,
        "a strategy": command.strategy is not Strategy.ONE,
    }
    return [name for name, value in said.items() if value]


def _words(fired: Fired, command: GiveVerdict, successor: str = "") -> str:
    took = f", {successor} takes over" if successor else ""
    why = f": {command.why}" if command.why else ""
    return f"{fired.trigger}: {fired.evidence}; {command.course} by {command.by}{took}{why}"


def _continue(decision: Decision, draft: Draft, fired: Fired, command: GiveVerdict) -> None:
    if not 0 < command.seconds <= LONGEST_WAIT:
        raise Invalid(f"an agent can be let go on for up to {LONGEST_WAIT:.0f} s, not {command.seconds}")
    until = decision.now + command.seconds
    place = (draft.agent.name, fired.trigger, Course.CONTINUE, command.by, command.why)
    draft.emit(VerdictReached(*place, until))
    # Of a gang, those that were stopped with it: who rests for another reason goes on resting.
    gang = list(below(decision.state, draft.agent.name)) if fired.trigger is Trigger.GANG else []
    why = _reason(fired.trigger, fired.evidence)
    for each in (draft, *(decision.agent(member.name) for member in gang if member.why == why)):
        if each.agent.status is Status.PAUSED and each.agent.sought is None:
            each.move(Status.READY, f"{command.by} lets it go on")
            wake(each)


def _reap(decision: Decision, draft: Draft, fired: Fired, command: GiveVerdict) -> None:
    place = (draft.agent.name, fired.trigger, Course.REAP, command.by, command.why)
    draft.emit(VerdictReached(*place))
    _cut(decision, draft, fired, _words(fired, command))


def _cut(decision: Decision, draft: Draft, fired: Fired, why: str) -> None:
    """A gang goes as a whole, the youngest first: nobody is left to wait for one that is dead."""
    if fired.trigger is Trigger.GANG:
        for member in reversed(list(below(decision.state, draft.agent.name))):
            _end(decision.agent(member.name), why)
    if draft.agent.status not in DEAD:  # a coordinator has made room for its successor already
        _end(draft, why)


def _end(draft: Draft, why: str) -> None:
    why = why[:LONGEST_REASON]
    if draft.agent.status is Status.PENDING:  # it never began, and the table has no other way out
        draft.request_session(why)
    draft.move(Status.REAPED, why)
    draft.cut_turn(Outcome.INTERRUPTED, why)


# --- another try ---


def _restart(
    decision: Decision, draft: Draft, fired: Fired, sought: Sought, command: GiveVerdict, spawn: Spawn
) -> None:
    if command.strategy is Strategy.REVERT:
        raise Refused(f"there are no checkpoints that {draft.agent.name} could be reverted to; restart it, or reap it")
    agent = draft.agent
    recent = [at for at in agent.restarts if at > decision.now - sought.within]
    if len(recent) >= sought.most:
        _give_up(decision, draft, fired, sought, command)
        return
    restarts = (*agent.restarts, decision.now)[-MOST_RESTARTS:]
    successor = _succeed(decision, draft, fired, command, spawn, restarts)
    place = (agent.name, fired.trigger, Course.RESTART, command.by, command.why)
    draft.emit(VerdictReached(*place, strategy=command.strategy, successor=successor))
    _cut(decision, draft, fired, _words(fired, command, successor))
    if command.strategy is Strategy.ALL:
        for other in list(decision.state.agents.values()):
            sibling = other.parent == agent.parent and other.name != agent.name and other.status not in DEAD
            if sibling and other.role == agent.role:
                each = decision.agent(other.name)
                # It has done nothing wrong itself: this one is not held against it.
                heir = _succeed(decision, each, fired, command, spawn, other.restarts)
                _end(each, f"restarted with {agent.name}: {_words(fired, command, heir)}")


def _give_up(decision: Decision, draft: Draft, fired: Fired, sought: Sought, command: GiveVerdict) -> None:
    agent = draft.agent
    why = f"given up after {sought.most} restart{'' if sought.most == 1 else 's'} within {sought.within:g} s"
    draft.emit(VerdictReached(agent.name, fired.trigger, Course.REAP, command.by, why))
    judge = decision.state.agents.get(sought.judge)
    above = responsible(decision.state, judge) if judge else USER
    tell(decision, above, agent.name, f"{agent.name} was {why}. The last time: {fired.trigger}: {fired.evidence}.")
    _cut(decision, draft, fired, f"{_words(fired, command)}; {why}")


def _succeed(
    decision: Decision, draft: Draft, fired: Fired, command: GiveVerdict, spawn: Spawn, restarts: tuple[float, ...]
) -> str:
    """The successor is there before the agent goes, and takes over its task, its mail and what it may spend."""
    old = draft.agent
    wish = SpawnAgent(
        role=old.role,
        backend=command.backend or old.backend,
        parent=old.parent,
        model=command.model or old.model,
        instructions=command.instructions or old.instructions,
        options=old.options,
        works=old.phase is not None,
        budget=command.budget,
    )
    if old.role == COORDINATOR:  # a project has one: the old one makes room first
        _end(draft, _words(fired, command))
    fresh = spawn(decision, wish)
    name = fresh.agent.name
    if command.budget == UNLIMITED:
        budget.inherit(decision, old.name, name)
    fresh.emit(AgentSucceeded(name, old.name, restarts))
    note = f"You take over from {old.name}, which was stopped ({fired.trigger}): {fired.evidence}. Try another way."
    fresh.tell("takeover", Sender.SYSTEM, f"{note}\n\n{command.words}" if command.words else note)
    for letter in old.queue:
        if not letter.about:
            fresh.emit(MessageQueued(name, letter, len(fresh.agent.queue) + 1))
    task = decision.task(old.task) if old.task else None
    if task is not None and task.holder == old.name:
        workflow.bereave(decision, task, f"{name} takes over")
        if decision.task(task.id).status is TaskStatus.OPEN:  # what is in review needs no holder
            workflow.assign(decision, AssignTask(task.id, name, by="remuda", words=note))
    return name
