"""What the dead leave: kept, shown until they are buried, and then removed."""

from remuda.domain.draft import Decision
from remuda.domain.errors import Refused
from remuda.domain.events import ReportIgnored
from remuda.domain.lifecycle import DEAD, WITH_PROCESS, Stage
from remuda.domain.state import Agent
from remuda.domain.text import tidy
from remuda.domain.trigger_commands import BuryAgent, ReportBodyRemoved, ReportWorkKept
from remuda.domain.trigger_events import AgentBuried, BodyRemoved, WorkKept


def unkept(agent: Agent) -> bool:
    """Whether it has no process for now, or for ever, and nobody has kept what its last session made."""
    session = agent.session
    if session is None or session.stage is not Stage.ENDED or agent.status in WITH_PROCESS:
        return False
    return (agent.left is None or agent.left.epoch != session.epoch) and not agent.buried_at


def kept(decision: Decision, report: ReportWorkKept) -> None:
    draft = decision.agent(report.agent)
    session = draft.agent.session
    if session is None or session.epoch != report.epoch or not unkept(draft.agent):
        why = "it goes on already, or all of that is kept"
        draft.emit(ReportIgnored(report.agent, report.epoch, 0, type(report).__name__, why))
        return
    draft.emit(WorkKept(report.agent, report.epoch, report.commit, tidy(report.note), max(0, report.size)))


def bury(decision: Decision, command: BuryAgent) -> None:
    draft = decision.agent(command.agent)
    agent = draft.agent
    if agent.status not in DEAD:
        raise Refused(f"{agent.name} is {agent.status}; only the dead are buried")
    if agent.session is not None and agent.session.stage is not Stage.ENDED:
        raise Refused(f"the process of {agent.name} is still on its way out; try again in a moment")
    if agent.buried_at:
        raise Refused(f"{agent.name} is buried already")
    if unkept(agent):
        raise Refused(f"what {agent.name} has left is just being kept; try again in a moment")
    draft.emit(AgentBuried(agent.name, command.by))


def removed(decision: Decision, report: ReportBodyRemoved) -> None:
    draft = decision.agent(report.agent)
    if not draft.agent.buried_at or draft.agent.body_removed:
        draft.emit(ReportIgnored(report.agent, report.epoch, 0, type(report).__name__, "no body is to be removed"))
        return
    draft.emit(BodyRemoved(report.agent, report.files))
