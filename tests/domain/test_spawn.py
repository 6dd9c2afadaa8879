"""How agents come to be."""

import pytest

from domain.drive import Project
from remuda.domain.commands import RetireAgent, SpawnAgent
from remuda.domain.errors import Invalid, Refused, UnknownAgent
from remuda.domain.events import AgentSpawned, SessionRequested, StatusChanged
from remuda.domain.lifecycle import Phase, Status


@pytest.fixture
def project() -> Project:
    return Project()


def test_a_spawned_agent_is_starting_and_asks_for_its_first_session(project: Project) -> None:
    options = (("effort", "high"),)
    events = project.do(SpawnAgent("worker", "scripted", "ada", model="m", instructions="be brief", options=options))
    assert events == (
        AgentSpawned("ada", "worker", "scripted", "", "m", "be brief", options),
        SessionRequested("ada", 1, ""),
        StatusChanged("ada", Status.PENDING, Status.STARTING, "spawned"),
    )
    assert (project.agent("ada").model, project.agent("ada").options) == ("m", options)


def test_a_held_agent_is_pending_without_a_session(project: Project) -> None:
    name = project.spawn(hold=True)
    assert project.agent(name).status is Status.PENDING
    assert project.agent(name).session is None


def test_agents_without_a_name_are_numbered_by_their_role(project: Project) -> None:
    assert [project.spawn("worker"), project.spawn("crew"), project.spawn("worker")] == [
        "worker-1",
        "crew-1",
        "worker-2",
    ]


def test_a_number_that_somebody_took_by_name_is_passed_over(project: Project) -> None:
    project.spawn("crew", "worker-1")
    project.spawn("crew", "worker-2")
    assert project.spawn("worker") == "worker-3"


def test_the_first_coordinator_is_called_so_and_its_successor_is_numbered(project: Project) -> None:
    assert project.ready("coordinator") == "coordinator"
    project.do(RetireAgent("coordinator"))
    assert project.spawn("coordinator") == "coordinator-2"


def test_a_project_has_one_living_coordinator(project: Project) -> None:
    project.ready("coordinator", "boss")
    with pytest.raises(Refused, match=r"boss is the coordinator.*retire it first"):
        project.spawn("coordinator", "chief")
    project.do(RetireAgent("boss"))
    assert project.spawn("coordinator", "chief") == "chief"


def test_a_name_is_never_used_twice_not_even_a_dead_ones(project: Project) -> None:
    project.ready("worker", "ada")
    with pytest.raises(Refused, match="already an agent 'ada'"):
        project.spawn("worker", "ada")
    project.do(RetireAgent("ada"))
    with pytest.raises(Refused, match="also not those of the dead"):
        project.spawn("worker", "ada")


@pytest.mark.parametrize("bad", ["Ada", "1ada", "-a", "a b", "a/b", "a\n", "ä", "a" * 41, "a_b", "..", "\ud800"])
def test_a_bad_name_or_role_is_invalid_and_says_what_a_good_one_is(project: Project, bad: str) -> None:
    with pytest.raises(Invalid, match="not a good name: use a lower-case letter"):
        project.spawn("worker", bad)
    with pytest.raises(Invalid, match="not a good role: use a lower-case letter"):
        project.spawn(bad, "ada")
    assert project.log == []


def test_a_role_must_be_given(project: Project) -> None:
    with pytest.raises(Invalid, match="'' is not a good role"):
        project.spawn("", "ada")


def test_forty_characters_make_a_name(project: Project) -> None:
    assert project.spawn("worker", "a" * 40) == "a" * 40


def test_a_parent_must_exist_and_live(project: Project) -> None:
    with pytest.raises(UnknownAgent, match="no agent 'boss'"):
        project.spawn(parent="boss")
    project.ready("coordinator", "boss")
    project.spawn("worker", "ada", parent="boss")
    assert project.agent("ada").parent == "boss"
    project.do(RetireAgent("boss"))
    with pytest.raises(Refused, match="the parent boss is retired"):
        project.spawn(parent="boss")


def test_only_workers_have_a_phase(project: Project) -> None:
    project.spawn("worker", "ada")
    project.spawn("crew", "bob")
    assert project.agent("ada").phase is Phase.IDLE
    assert project.agent("bob").phase is None
