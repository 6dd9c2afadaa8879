"""What each state owes to the world: one thing at most for each process, and never nothing where work would stop."""

from domain.drive import WORKER, Project
from domain.explore import Kind, reachable
from domain.owed import all_due
from remuda.domain.commands import PauseAgent, ReapAgent, SpawnAgent
from remuda.domain.due import due
from remuda.domain.effects import Effect, EndSession, GiveAnswer, KeepWork, Rest, RunTurn, StartSession, key
from remuda.domain.lifecycle import WITH_PROCESS, Stage, Status
from remuda.domain.state import Agent

# Written out by hand: what is owed to the process when a session is at a stage, in a status it can go with.
OWED: dict[tuple[Status, Stage | None], type[StartSession | RunTurn | EndSession] | None] = {
    (Status.PENDING, None): None,
    (Status.STARTING, Stage.REQUESTED): StartSession,
    (Status.READY, Stage.STARTED): None,
    (Status.READY, Stage.ENDING): EndSession,
    (Status.READY, Stage.ENDED): None,
    (Status.WORKING, Stage.STARTED): RunTurn,
    (Status.PAUSED, Stage.ENDING): EndSession,
    (Status.PAUSED, Stage.ENDED): None,
    (Status.STOPPED, Stage.ENDING): EndSession,
    (Status.STOPPED, Stage.ENDED): None,
    (Status.HIBERNATING, Stage.ENDING): EndSession,
    (Status.HIBERNATING, Stage.ENDED): None,
    (Status.RETIRED, Stage.ENDING): EndSession,
    (Status.RETIRED, Stage.ENDED): None,
    (Status.FAILED, Stage.ENDED): None,
    (Status.REAPED, Stage.ENDING): EndSession,
    (Status.REAPED, Stage.ENDED): None,
}


def states() -> list[tuple[Kind, Agent]]:
    return [(kind, steps[0].before.agent()) for kind, steps in reachable().items() if kind is not None]


def test_each_reachable_state_owes_exactly_what_is_written_here() -> None:
    assert {(kind.status, kind.stage) for kind, _ in states()} == set(OWED)
    for kind, agent in states():
        of_process = OWED[kind.status, kind.stage]
        expected: list[type[Effect]] = [of_process] if of_process else []
        if kind.asks and kind.asks.here and kind.asks.answered and not kind.asks.given and agent.turn:
            expected.append(GiveAnswer)
        if kind.rests:
            expected.append(Rest)
        left = agent.left is not None and agent.left.epoch == agent.session.epoch if agent.session else False
        if kind.stage is Stage.ENDED and kind.status not in WITH_PROCESS and not left:
            expected.append(KeepWork)
        assert [type(effect) for effect in due(agent)] == expected, kind


def test_an_answer_is_owed_in_a_turn_and_a_rest_beside_any_kind_of_waiting() -> None:
    """Or the table above would hold of a world in which neither ever comes to pass."""
    owed: dict[type[Effect], set[Status]] = {}
    for kind, agent in states():
        for effect in due(agent):
            owed.setdefault(type(effect), set()).add(kind.status)
    assert owed[GiveAnswer] == {Status.WORKING}
    assert owed[Rest] == {Status.READY, Status.PAUSED, Status.STOPPED, Status.HIBERNATING}


def test_what_is_owed_names_the_present_session() -> None:
    for kind, agent in states():
        for effect in due(agent):
            assert agent.session is not None
            assert (effect.agent, effect.epoch) == (agent.name, agent.session.epoch), kind


def test_a_session_is_started_with_all_that_its_agent_was_spawned_with() -> None:
    project = Project()
    project.do(SpawnAgent("crew", "claude", "ada", model="m", instructions="be brief", options=(("a", "b"),)))
    start = StartSession("ada", 1, "claude", "crew", "m", "be brief", (("a", "b"),), "")
    assert due(project.agent("ada")) == (start,)


def test_a_later_session_is_started_where_the_last_one_left_off() -> None:
    project = Project()
    project.ready()
    project.ended()
    project.send()
    (effect,) = due(project.agent())
    assert isinstance(effect, StartSession)
    assert (effect.epoch, effect.resumes) == (2, "ref-1")


def test_a_turn_is_run_with_its_number_and_its_message() -> None:
    project = Project()
    project.ready()
    project.send("hello")
    (effect,) = due(project.agent())
    assert isinstance(effect, RunTurn)
    assert (effect.turn, effect.message.id, effect.message.text) == (1, "m1", "hello")


def test_a_resting_agents_process_is_ended_gently_and_a_reaped_ones_is_not() -> None:
    project = Project()
    project.ready()
    project.do(PauseAgent(WORKER))
    assert due(project.agent()) == (EndSession(WORKER, 1, gentle=True),)
    project.do(ReapAgent(WORKER, "it spins"))
    assert due(project.agent()) == (EndSession(WORKER, 1, gentle=False),)


def test_to_end_a_session_without_manners_is_another_thing_than_to_end_it_gently() -> None:
    """Or an agent that is reaped while it takes its time to leave would go on taking it."""
    assert key(EndSession(WORKER, 1, gentle=True)) != key(EndSession(WORKER, 1, gentle=False))


def test_each_result_has_its_own_key() -> None:
    project = Project()
    project.ready()
    keys = [key(StartSession(WORKER, epoch, "", "", "", "", (), "")) for epoch in (1, 2)]
    for _ in range(2):
        project.send()
        (effect,) = due(project.agent())
        keys.append(key(effect))
        project.answered()
    keys += [key(EndSession(WORKER, epoch, gentle=True)) for epoch in (1, 2)]
    keys.append(key(EndSession("worker-2", 1, gentle=True)))
    keys += [key(Rest(WORKER, epoch, until)) for epoch in (1, 2) for until in (5.0, 6.0)]
    places = [(epoch, question, asking) for epoch in (1, 2) for question in ("q1", "q2") for asking in (1, 2)]
    keys += [key(GiveAnswer(WORKER, *place, allow=True, why="")) for place in places]
    assert len(keys) == len(set(keys))


def test_all_that_is_owed_is_one_thing_for_each_agent_that_owes_any() -> None:
    project = Project()
    names = [project.spawn(), project.ready(), project.ready(), project.spawn(hold=True)]
    project.send(name=names[1])
    assert [type(effect) for effect in all_due(project.state)] == [StartSession, RunTurn]
