"""Every kind of state that commands can reach, found by trying every command in each, breadth first."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from domain.drive import WORKER, Project
from domain.invariants import stage
from remuda.domain.commands import (
    AnswerQuestion,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    Report,
    ReportAnswerGiven,
    ReportError,
    ReportOutput,
    ReportQuestion,
    ReportRested,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportToolCall,
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
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Agent, Outcome, Sender, Usage
from remuda.domain.trigger_commands import ReportWorkKept

QUESTION = "q1"
MOST_LETTERS = 2  # in a queue: none, one and more than one is all that can make a difference


@dataclass(frozen=True, slots=True)
class Asks:
    """What can be true of its question; of more than one the same holds for each."""

    here: bool  # the present session asks it
    answered: bool
    given: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells two states of one agent apart, as far as a rule about its status could care."""

    status: Status
    stage: Stage | None
    letters: int
    crashes: int
    resumes: bool
    rests: bool
    asks: Asks | None
    kept: bool  # what its last session left


def kind_of(project: Project) -> Kind | None:
    agent = project.state.agents.get(WORKER)
    if agent is None:
        return None
    # How often it crashed and where its session came from is no matter to a rest or a question: without this the kinds
    # would be five times as many.
    rests, asks = bool(agent.rest_until), _asks(agent)
    plain = not rests and asks is None
    return Kind(
        agent.status,
        stage(agent),
        min(len(agent.queue), MOST_LETTERS),
        agent.crashes if plain else 0,
        plain and bool(agent.session and agent.session.resumes),
        rests,
        asks,
        plain and agent.left is not None and stage(agent) is Stage.ENDED and agent.left.epoch == project.epoch(),
    )


def _asks(agent: Agent) -> Asks | None:
    for question in agent.questions:
        here = agent.session is not None and question.epoch == agent.session.epoch
        return Asks(here, question.allow is not None, question.given)
    return None


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
    for allow in (True, False):
        yield AnswerQuestion(WORKER, QUESTION, allow, "user")
    yield AnswerQuestion(WORKER, "never asked", True, "user")
    yield AnswerQuestion(WORKER, QUESTION, True, WORKER)
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
        yield ReportRested(WORKER, each)
        yield ReportWorkKept(WORKER, each, "commit", "", 7)
        for question, asking in ((QUESTION, _asking(project)), (QUESTION, 99), ("never asked", 1)):
            yield ReportAnswerGiven(WORKER, each, question, asking)
        for number in {turn, turn - 1, turn + 7, 0}:
            for outcome in Outcome:
                yield ReportTurnEnded(WORKER, each, number, outcome)
            for failure in (Failure.RATE_LIMITED, Failure.OVERLOADED, Failure.MODEL_ERROR):
                yield ReportTurnEnded(WORKER, each, number, Outcome.FAILED, failure=failure)
            yield ReportQuestion(WORKER, each, number, QUESTION, "bash")
            yield ReportToolCall(WORKER, each, number, "call-1", "bash", True, 0.5)
            yield ReportOutput(WORKER, each, number, 0, 10, 1)
            yield ReportError(WORKER, each, number, "a tool failed")


def _asking(project: Project) -> int:
    agent = project.state.agents.get(WORKER)
    return next((each.asking for each in agent.questions), 1) if agent else 1


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
