"""The runtime is killed with SIGKILL around a death: there is one body all the same, and it is of the agent alone."""

from pathlib import Path

import pytest

from e2e.kill_kit import Hunted, hunted
from remuda.domain.burial import unkept
from remuda.domain.lifecycle import DEAD, Status
from remuda.domain.trigger_events import WorkKept
from waiting import until_true

KILLS = 3


def asked_to_end(project: Hunted, name: str, way: str) -> None:
    match way:
        case "retire":
            project.order(f"/v1/agents/{name}/retire")
        case "reap":
            project.order(f"/v1/agents/{name}/trigger", trigger="changeset", evidence="a drill")
            project.order(f"/v1/agents/{name}/verdict", course="reap")
        case _:
            project.send(name, {"crash": 1})


def kept(project: Hunted, name: str) -> bool:
    agent = project.agent(name)
    return agent.status in DEAD and not unkept(agent) and agent.session is not None and agent.left is not None


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["retire", "reap", "fail"])
def test_whenever_the_runtime_is_killed_around_a_death_there_is_one_body_and_it_never_changes(
    tmp_path: Path, way: str
) -> None:
    pace = 4 if way == "fail" else 1  # events between one kill and the next
    with hunted(tmp_path) as project:
        for number in range(KILLS):
            name = f"ada-{number}"
            project.spawn(name)
            project.send(name, {"write": {"path": f"{name}.txt", "text": "the agent's\n"}})
            until_true(lambda name=name: project.agent(name).turns == 1)  # type: ignore[misc]
            seq = project.state.seq
            asked_to_end(project, name, way)
            until_true(lambda name=name, seq=seq + number * pace: project.grown_to(seq)() or kept(project, name))  # type: ignore[misc]
            project.killed_and_started()
            until_true(lambda name=name: kept(project, name))  # type: ignore[misc]
            expected = Status.RETIRED if way == "retire" else Status.REAPED if way == "reap" else Status.FAILED
            assert project.agent(name).status is expected
            shown = project.says("body", "show", name)
            assert shown["diff"].count("+++ ") == 1
            assert f"+++ b/{name}.txt" in shown["diff"]
            for other in (f"{name}.txt", f"user-{number}.txt"):
                (project.place.root / other).write_text("the user's\n")
            assert project.says("body", "show", name) == shown
            epochs = [event.epoch for event in project.of(WorkKept, name)]
            assert epochs == sorted(set(epochs))
            assert project.agent(name).session.epoch == epochs[-1]  # type: ignore[union-attr]
