"""What is true of tasks in every state that commands can lead to, whatever they are."""

from remuda.domain.due import due_for
from remuda.domain.events import (
    AgentEvent,
    CompletionSignalled,
    Event,
    FolderChanged,
    MailWithdrawn,
    PhaseChanged,
    Reminded,
    ToolUsed,
    TurnLetThrough,
    UserNotified,
)
from remuda.domain.lifecycle import DEAD, FINISHED, Phase, TaskStatus, Work
from remuda.domain.state import State
from remuda.domain.task import Brief, Kind, Task
from remuda.domain.task_events import (
    ImplementationReported,
    TaskAdded,
    TaskAssigned,
    TaskEdited,
    TaskMerged,
    TaskNoted,
    TaskReleased,
    TaskReportIgnored,
    TaskStatusChanged,
    VerdictGiven,
    WorktreeCleared,
)

# Written out here on its own, not worked out from the code.
WORKS: dict[TaskStatus, set[Work]] = {
    TaskStatus.OPEN: {Work.NONE, Work.PREPARED},
    TaskStatus.IN_PROGRESS: {Work.PREPARING, Work.PREPARED},
    TaskStatus.IN_REVIEW: {Work.CHECKING, Work.CHECKED, Work.MERGING},
    TaskStatus.BLOCKED: {Work.NONE, Work.PREPARED},
    TaskStatus.DONE: {Work.NONE, Work.CLEARING},
    TaskStatus.DECOMPOSED: {Work.NONE, Work.CLEARING},
    TaskStatus.CANCELLED: {Work.NONE, Work.CLEARING},
}
HOLDING = {
    TaskStatus.IN_PROGRESS: (Phase.IMPLEMENTING, Phase.ADDRESSING_FEEDBACK),
    TaskStatus.IN_REVIEW: (Phase.AWAITING_REVIEW, Phase.COMMITTING),
}
OWING = {Work.PREPARING, Work.CHECKING, Work.MERGING, Work.CLEARING}


# What happens to agents because of their tasks: another machine plays that.
OF_WORK: set[type[Event]] = {
    PhaseChanged,
    FolderChanged,
    MailWithdrawn,
    ToolUsed,
    Reminded,
    TurnLetThrough,
    UserNotified,
    CompletionSignalled,
}


def check_tasks(state: State) -> None:
    for name, task in state.tasks.items():
        assert task.id == name
        check_task(state, task)
    holders = [task.holder for task in state.tasks.values() if task.holder]
    reviewers = [task.reviewer for task in state.tasks.values() if task.reviewer]
    busy = holders + reviewers
    assert len(busy) == len(set(busy)), f"somebody has two tasks: {busy}"
    for agent in state.agents.values():
        assert bool(agent.task) == (agent.name in busy), f"{agent.name} has {agent.task!r}, and tasks say {busy}"
        if agent.task:
            task = state.tasks[agent.task]
            assert agent.name in (task.holder, task.reviewer), f"{agent.name} has {task.id}, which has others"


def check_task(state: State, task: Task) -> None:
    told = f"{task.id} is {task.status} and {task.work}, held by {task.holder!r}, reviewed by {task.reviewer!r}"
    assert task.work in WORKS[task.status], told
    assert bool(due_for(task)) == (task.work in OWING), told
    assert (task.ended_at > 0) == (task.status in FINISHED), told
    if task.status is TaskStatus.IN_PROGRESS:
        assert task.holder, f"{told}: work without an owner"
    if task.holder:
        holder = state.agents[task.holder]
        assert holder.status not in DEAD, f"{told}, and its holder is {holder.status}"
        assert holder.phase in HOLDING[task.status], f"{told}, and its holder is {holder.phase}"
        assert (holder.phase is Phase.COMMITTING) == (task.work is Work.MERGING), told
    if task.reviewer:
        reviewer = state.agents[task.reviewer]
        assert (task.work, reviewer.phase) == (Work.CHECKED, Phase.REVIEWING), told
        assert reviewer.status not in DEAD, f"{told}, and its reviewer is {reviewer.status}"
        assert task.reviewer not in (task.holder, *task.authors), f"{told}: somebody reviews their own work"
    if task.status in (TaskStatus.IN_PROGRESS, TaskStatus.IN_REVIEW):
        assert task.kind is Kind.TASK, told
    if task.work in (Work.CHECKED, Work.MERGING):
        assert task.check is not None, told
        assert task.check.ok, told
    if task.work is Work.MERGING:
        assert task.verdict is None or task.verdict.approved, f"{told}, and it was denied"


class Told:
    """What the log says of tasks, read from the events alone."""

    def __init__(self) -> None:
        self.briefs: dict[str, Brief] = {}
        self.done: set[str] = set()
        self.finished: set[str] = set()
        self.merged: set[str] = set()
        self.holders: dict[str, str] = {}
        self.authors: dict[str, set[str]] = {}

    def hear(self, event: Event) -> None:
        task = getattr(event, "task", "")
        if not isinstance(event, TaskAdded | TaskNoted | WorktreeCleared | TaskReportIgnored | AgentEvent):
            assert task not in self.finished, f"{event}, and it was finished"
        match event:
            case TaskAdded():
                assert task not in self.briefs, f"{task} was added twice"
                self.briefs[task] = event.brief
            case TaskEdited():
                self.briefs[task] = event.brief
            case TaskAssigned():
                assert task not in self.holders, f"{event}, and {self.holders.get(task)} holds it"
                assert self.needs(task) <= self.done, f"{event} before what it needs: {self.needs(task)}"
                self.holders[task] = event.holder
            case TaskReleased():
                assert self.holders.pop(task) == event.holder
            case ImplementationReported():
                self.authors.setdefault(task, set()).add(event.holder)
            case VerdictGiven():
                assert event.verdict.reviewer not in self.authors[task], f"{event} of its own work"
            case TaskMerged():
                assert task not in self.merged, f"{task} was merged twice"
                self.merged.add(task)
            case TaskStatusChanged() if event.now in FINISHED:
                self.finished.add(task)
                self.done |= {task} if event.now is TaskStatus.DONE else set()

    def needs(self, task: str) -> set[str]:
        needs = set(self.briefs[task].needs)
        while task := self.briefs[task].epic:
            needs |= set(self.briefs[task].needs)
        return needs
