"""What must be true of the log and of the world, whatever happened."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from domain.drive import replay
from domain.invariants import check, check_agent, stage
from domain.owed import all_due
from domain.waits import check_questions
from remuda.domain.events import (
    MessageQueued,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    Reminded,
    SessionRequested,
    SessionStarted,
    StatusChanged,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from remuda.domain.evolve import evolve
from remuda.domain.lifecycle import STATUS, Phase, Stage, Status
from remuda.domain.state import Agent, Metrics, State
from simulation.user import User
from simulation.world import Witness, World

DEAD = (Status.RETIRED, Status.FAILED, Status.REAPED)
ALIVE = (
    StatusChanged,
    MessageQueued,
    SessionRequested,
    SessionStarted,
    TurnStarted,
)  # only they do these


def check_step(touched: Iterable[Agent], world: World) -> None:
    """After every durable batch."""
    for agent in touched:
        check_agent(agent)
        process = world.live.get(agent.name)
        if stage(agent) in (None, Stage.ENDED):
            assert process is None, f"the log says that {agent.name} has no process, and {process} lives"


def check_log(log: list[Recorded], state: State) -> None:
    assert replay(log) == state, "the log and the state tell different stories"
    check(state)
    assert [record.seq for record in log] == list(range(1, len(log) + 1))
    turns = [record.event.turn for record in log if isinstance(record.event, TurnStarted)]
    assert turns == sorted(set(turns)), "turn numbers repeat or go back"
    statuses: dict[str, Status] = {}
    epochs: Counter[str] = Counter()
    for event in (record.event for record in log):
        if statuses.get(getattr(event, "agent", "")) in DEAD:
            assert not isinstance(event, ALIVE), f"{event} of an agent that is dead"
            # What it had is taken from it when it dies; nothing is given to it.
            assert not isinstance(event, PhaseChanged) or event.now is Phase.IDLE, f"{event} of an agent that is dead"
        match event:
            case StatusChanged():
                was = statuses.get(event.agent, Status.PENDING)
                assert (event.was, event.now in STATUS[was]) == (was, True), f"{event} after {was}"
                statuses[event.agent] = event.now
            case SessionRequested():
                epochs[event.agent] += 1
                assert event.epoch == epochs[event.agent], f"{event} is not session {epochs[event.agent]}"


def check_messages(log: list[Recorded], user: User, witness: Witness) -> None:
    queued: list[str] = []
    answered: Counter[str] = Counter()
    for event in (record.event for record in log):
        match event:
            case MessageQueued() | Reminded():
                queued.append(event.message.id)
            case TurnEnded() if event.outcome.answered:
                answered[event.message_id] += 1
                truly = (event.agent, event.epoch, event.turn, event.message_id)
                assert truly in witness.answered, f"{event} never happened"
    assert len(queued) == len(set(queued)), "a message was queued twice"
    assert max(answered.values(), default=0) <= 1, "a message was answered twice"
    acknowledged = {order.id for order in user.orders if order.accepted and hasattr(order.command, "message_id")}
    assert acknowledged <= set(queued), f"acknowledged and lost: {acknowledged - set(queued)}"


def check_deliveries(log: list[Recorded], witness: Witness) -> None:
    """Each was begun as a turn, and in that order; none twice in one session."""
    twice = [each for each, count in Counter(witness.deliveries).items() if count > 1]
    assert not twice, f"delivered twice in one session: {twice}"
    begun: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for record in log:
        if isinstance(record.event, TurnStarted):
            begun[record.event.agent].append((record.event.epoch, record.event.message_id))
    given: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for agent, epoch, message in witness.deliveries:
        given[agent].append((epoch, message))
    for agent, messages in given.items():
        rest = iter(begun[agent])
        assert all(message in rest for message in messages), f"{agent} was not given its mail in order"


def check_answers(log: list[Recorded], witness: Witness) -> None:
    """What was said reached who asked, once for each time it asked, and nobody else."""
    twice = [each for each, count in witness.given.items() if count > 1]
    assert not twice, f"given twice for one asking: {twice}"
    check_questions(log, witness.given)
    said: set[tuple[str, str, bool]] = set()
    wishes: dict[tuple[str, str], str] = {}
    for event in (record.event for record in log):
        match event:
            case QuestionAsked():
                wishes[event.agent, event.question.id] = event.question.arguments
            case QuestionAnswered():
                said.add((event.agent, wishes[event.agent, event.question_id], event.allow))
    for agent, arguments, answer in witness.heard:
        told = f"{agent} heard {answer} to {arguments}"
        assert answer.why == "so be it", told
        assert (agent, arguments, answer.allow) in said, f"{told}, and nobody said so"


def check_letters(log: list[Recorded]) -> None:
    """What a watch asks for is in the log with its cause, whenever the runtime died."""
    state = State()
    owed: list[str] = []
    told: list[str] = []
    for record in log:
        evolve(state, record)
        match record.event:
            case StatusChanged() as event if event.now in DEAD:
                parent = state.agents.get(state.agents[event.agent].parent)
                if parent is not None and parent.status not in DEAD:
                    owed.append(f"obituary-{event.agent}")
            case QuestionAsked(question=asked) as event if asked.asking == 1:
                parent = state.agents.get(state.agents[event.agent].parent)
                if parent is not None and parent.role == "coordinator" and parent.status not in DEAD:
                    owed.append(f"question-{event.agent}-{asked.id}-{event.turn}")
            case MessageQueued() as event if event.message.id.startswith(("obituary-", "question-")):
                told.append(event.message.id)
    assert told == owed, f"the parents should have been told {owed}, and were told {told}"


def check_usage(log: list[Recorded], state: State, witness: Witness) -> None:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    counted: Counter[tuple[str, int, int]] = Counter()
    for event in (record.event for record in log):
        if isinstance(event, UsageRecorded):
            call = (event.agent, event.epoch, event.call)
            counted[call] += 1
            assert witness.used.get(call) == event.usage, f"{event} was never used"
            assert counted[call] == 1, f"{event} was counted twice"
            sums[event.agent].update(
                input_tokens=event.usage.input_tokens,
                output_tokens=event.usage.output_tokens,
                cache_read_tokens=event.usage.cache_read_tokens,
                cache_creation_tokens=event.usage.cache_creation_tokens,
                cumulative_cost_nanousd=event.usage.cost_nanousd or 0,
                unpriced_calls=event.usage.cost_nanousd is None,
            )
    for name, agent in state.agents.items():
        check_sums(agent.metrics, sums[name], name)


def check_sums(metrics: Metrics, sums: Counter[str], name: str) -> None:
    for field in (
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_creation_tokens",
        "cumulative_cost_nanousd",
        "unpriced_calls",
    ):
        assert getattr(metrics, field) == sums[field], f"{field} of {name} is not the sum of what was counted"


def check_end(state: State, user: User, world: World) -> None:
    """When all faults have stopped and everybody was resumed."""
    assert not user.unanswered(), "somebody was never answered"
    assert list(all_due(state)) == [], "something is owed and was never done"
    for agent in state.agents.values():
        if agent.status not in DEAD:
            assert agent.status in (Status.READY, Status.HIBERNATING), f"{agent.name} is still {agent.status}"
            assert agent.queue == (), f"{agent.name} never read its mail"
            assert (agent.rest_until, agent.questions) == (0, ()), f"{agent.name} waits for nothing"
    for name in world.live:
        assert state.agents[name].status is Status.READY, f"a process of {name} lives, and it is {state.agents[name]}"
