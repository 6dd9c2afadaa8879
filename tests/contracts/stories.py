"""Logs as a real project writes them."""

from domain.drive import Project
from remuda.domain.commands import HibernateAgent, PauseAgent, ReportOutput, ResumeAgent, StartRuntime
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import State, Usage


def fold(records: list[Recorded]) -> State:
    state = State()
    for record in records:
        evolve(state, record)
    return state


def story(agents: int = 5, rounds: int = 4) -> list[Recorded]:
    """Some agents at work: every kind of event, crashes and pauses among them."""
    project = Project()
    project.do(StartRuntime("first"), order="start")
    names = [project.ready() for _ in range(agents)]
    for number in range(1, rounds + 1):
        for name in names:
            project.send(f"round {number}", name)
            project.used(Usage(10, 5, cost_nanousd=7), number, name)
            project.do(ReportOutput(name, project.epoch(name), project.turn(name), 100 * number, 100, 3))
            project.answered(name)
        _trouble(project, names[number % agents])
    project.do(StartRuntime("second"), order="start again")
    return project.log


def _trouble(project: Project, name: str) -> None:
    project.send("trouble", name)
    project.ended(name)
    project.started(name)
    project.do(PauseAgent(name))
    project.ended(name)
    project.do(ResumeAgent(name))
    project.started(name)
    project.answered(name)
    project.do(HibernateAgent(name))
    project.ended(name)
    project.send("wake up", name)
    project.started(name)
    project.answered(name)
