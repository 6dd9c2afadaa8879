"""Every kind of state that commands can reach, found by trying every command in each, breadth first."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from domain.drive import WORKER, Project
from domain.invariants import stage
from remuda.domain.commands import (
    ChangePhase,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    Report,
    ReportError,
    ReportOutput,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
    ReportUsage,
    ResumeAgent,
    RetireAgent,
    SendMessage,
    SpawnAgent,
    StartRuntime,
    StopAgent,
    StopRuntime,
)
from remuda.domain.errors import RemudaError
from remuda.domain.events import Event
from remuda.domain.lifecycle import Phase, Stage, Status
from remuda.domain.state import Outcome, Sender, Usage

MOST_LETTERS = 2  # in a queue: none, one and more than one is all that can make a difference


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells two states of one agent apart, as far as a rule about its status could care."""

    status: Status
    stage: Stage | None
    letters: int
    crashes: int
    resumes: bool


def kind_of(project: Project) -> Kind | None:
    agent = project.state.agents.get(WORKER)
    if agent is None:
        return None
    return Kind(
        agent.status,
        stage(agent),
        min(len(agent.queue), MOST_LETTERS),
        agent.crashes,
        bool(agent.session and agent.session.resumes),
    )


def asked(project: Project) -> Iterator[Command]:
    """Everything that people, agents and watches may ask of the worker."""
    yield SpawnAgent("worker", "scripted", name=WORKER)
    yield SpawnAgent("worker", "scripted", name=WORKER, hold=True)
    yield SendMessage(WORKER, f"m{project.state.seq}", Sender.USER, "user", "go on")
    yield PauseAgent(WORKER)
    yield ResumeAgent(WORKER)
    yield StopAgent(WORKER, "enough")
    yield HibernateAgent(WORKER)
    yield RetireAgent(WORKER)
    yield ReapAgent(WORKER, "it spins")
    for phase in Phase:
        yield ChangePhase(WORKER, phase, "task-1")
    yield StartRuntime("the next")
    yield StopRuntime("this")


def reported(project: Project) -> Iterator[Report]:
    """Everything the world may report: of the present session and turn, of an earlier one, of none there ever was."""
    known = WORKER in project.state.agents
    epoch, turn = (project.epoch(), project.turn()) if known else (0, 0)
    for each in (epoch, epoch - 1, epoch + 7):
        yield ReportSessionStarted(WORKER, each, "ref")
        yield ReportSessionEnded(WORKER, each, "it died", -9)
        yield ReportSessionFailed(WORKER, each, "no such program")
        yield ReportUsage(WORKER, each, turn, 1, Usage(1, 1, 1, 1, 1, 1, 1))
        for number in {turn, turn - 1, turn + 7, 0}:
            for outcome in Outcome:
                yield ReportTurnEnded(WORKER, each, number, outcome)
            yield ReportOutput(WORKER, each, number, 0, 10, 1)
            yield ReportError(WORKER, each, number, "a tool failed")


def everything(project: Project) -> Iterator[Command]:
    yield from asked(project)
    yield from reported(project)


@dataclass(frozen=True, slots=True)
class Step:
    """A command given in some state: the project after it, or the refusal."""

    command: Command
    before: Project
    after: Project | RemudaError

    @property
    def events(self) -> list[Event]:
        if isinstance(self.after, RemudaError):
            return []
        return [record.event for record in self.after.log[len(self.before.log) :]]


@cache
def reachable() -> dict[Kind | None, list[Step]]:
    """For each kind of state, found by commands alone, what each command leads to from it."""
    found: dict[Kind | None, list[Step]] = {}
    frontier: dict[Kind | None, Project] = {None: Project()}
    while frontier:
        kind, project = frontier.popitem()
        found[kind] = [_step(project, command) for command in everything(project)]
        for step in found[kind]:
            if isinstance(step.after, Project) and (after := kind_of(step.after)) not in found:
                frontier.setdefault(after, step.after)
    return found


def _step(project: Project, command: Command) -> Step:
    after = project.branch()
    try:
        after.do(command)
    except RemudaError as refusal:
        return Step(command, project, refusal)
    return Step(command, project, after)
