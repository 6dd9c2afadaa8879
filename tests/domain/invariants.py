"""What is true of every state that commands can lead to, whatever they are."""

from collections import Counter

from domain.owed import all_due, whose
from domain.work import check_tasks
from remuda.domain.due import due, due_for
from remuda.domain.effects import EndSession, GiveAnswer, Rest, RunTurn, StartSession, key
from remuda.domain.lifecycle import Phase, Stage, Status
from remuda.domain.state import Agent, State

GONE = frozenset({None, Stage.ENDED})
NO_PROCESS = frozenset({None, Stage.ENDING, Stage.ENDED})
OF_PROCESS = (StartSession, RunTurn, EndSession)
RESTED = (Status.READY, Status.PAUSED, Status.STOPPED, Status.HIBERNATING)

# Which stages of a session go with which status: written out here on its own, not worked out from the code.
STAGES: dict[Status, frozenset[Stage | None]] = {
    Status.PENDING: frozenset({None}),
    Status.STARTING: frozenset({Stage.REQUESTED}),
    Status.READY: frozenset({Stage.STARTED, Stage.ENDING, Stage.ENDED}),
    Status.WORKING: frozenset({Stage.STARTED}),
    Status.PAUSED: NO_PROCESS - {None},
    Status.STOPPED: NO_PROCESS - {None},
    Status.HIBERNATING: NO_PROCESS - {None},
    Status.RETIRED: NO_PROCESS - {None},
    Status.FAILED: frozenset({Stage.ENDED}),
    Status.REAPED: NO_PROCESS - {None},
}


def stage(agent: Agent) -> Stage | None:
    return agent.session.stage if agent.session else None


def check(state: State) -> None:
    for name, agent in state.agents.items():
        assert agent.name == name
        check_agent(agent)
        assert agent.turn is None or agent.turn.number <= state.clock
    open_turns = [agent.turn.number for agent in state.agents.values() if agent.turn]
    assert len(open_turns) == len(set(open_turns)), "two agents share a turn"
    effects = list(all_due(state))
    owed = Counter(whose(effect) for effect in effects if isinstance(effect, OF_PROCESS))
    assert all(count == 1 for count in owed.values()), "an agent owes its process two things"
    assert len({key(effect) for effect in effects}) == len(effects), "two things that are owed count as one"
    debtors = [agent.name for agent in state.agents.values() if due(agent)]
    debtors += [task.id for task in state.tasks.values() if due_for(task)]
    assert {whose(effect) for effect in effects} == set(debtors)
    check_tasks(state)


def check_agent(agent: Agent) -> None:
    told = f"{agent.name} is {agent.status} with a session that is {stage(agent)}"
    assert stage(agent) in STAGES[agent.status], told
    assert (agent.turn is not None) == (agent.status is Status.WORKING), f"{told} and turn {agent.turn}"
    dead = agent.status in (Status.RETIRED, Status.FAILED, Status.REAPED)
    assert (agent.ended_at > 0) == dead, told
    if agent.queue and agent.status in (Status.READY, Status.HIBERNATING):
        # Mail never lies unread beside a free agent: only the old process's way out may hold it up, or a rest.
        assert stage(agent) is Stage.ENDING or agent.rest_until, f"{told}, and nobody reads its mail"
    letters = [message.id for message in agent.queue] + ([agent.turn.message.id] if agent.turn else [])
    assert len(letters) == len(set(letters)), f"{told}: a message is in two places: {letters}"
    assert agent.phase is not None or agent.role != "worker", told
    assert (agent.phase in (None, Phase.IDLE)) == (not agent.task), f"{told}: {agent.phase} of {agent.task!r}"
    check_rest(agent, told)
    check_questions(agent, told)


def check_rest(agent: Agent, told: str) -> None:
    rests = [effect for effect in due(agent) if isinstance(effect, Rest)]
    assert bool(rests) == bool(agent.rest_until), f"{told}: it rests until {agent.rest_until} and owes {rests}"
    if agent.rest_until:
        assert agent.status in RESTED, f"{told} and rests"
        assert stage(agent) in (Stage.ENDING, Stage.ENDED), f"{told} and rests"
        assert agent.limits > 0, f"{told} and rests from nothing"


def check_questions(agent: Agent, told: str) -> None:
    owed = {effect.question_id for effect in due(agent) if isinstance(effect, GiveAnswer)}
    assert len({each.id for each in agent.questions}) == len(agent.questions), f"{told}: a question is there twice"
    assert not agent.questions or agent.turn or agent.queue, f"{told} and asks for nobody's sake"
    for question in agent.questions:
        assert agent.session is not None
        assert question.epoch <= agent.session.epoch, f"{told}: {question} is of a session that never was"
        assert question.allow is not None or not question.given, f"{told}: {question} was given no answer"
        waits = agent.turn is not None and question.epoch == agent.session.epoch and not question.given
        assert (question.id in owed) == (waits and question.allow is not None), f"{told}: {question}, owed {owed}"
