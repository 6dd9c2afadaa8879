"""Drives tasks as people, coordinators, agents and the world do. No state is ever built by hand."""

from domain.drive import Project
from remuda.domain.due import due_for
from remuda.domain.effects import MergeTask, PrepareWorktree, RemoveWorktree, RunAcceptance
from remuda.domain.events import Event
from remuda.domain.state import Outcome
from remuda.domain.task import Brief, Kind, NewTask, Refusal, Task
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportMerged,
    ReportMergeRefused,
    ReportReviewVerdict,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
    TaskReport,
)

ADA, BOB = "worker-1", "worker-2"


class Crew(Project):
    """A project with two workers that are ready."""

    def __init__(self, workers: int = 2) -> None:
        super().__init__()
        for _ in range(workers):
            self.ready()

    # --- the list of work ---

    def add(self, title: str = "Parse dates", *, needs: tuple[str, ...] = (), epic: str = "", priority: int = 2) -> str:
        accept = ("make test",)
        self.do(AddTasks((NewTask(Brief(title, needs=needs, epic=epic, priority=priority, accept=accept)),)))
        return next(reversed(self.state.tasks))

    def epic(self, title: str = "Dates", *, needs: tuple[str, ...] = (), epic: str = "") -> str:
        self.do(AddTasks((NewTask(Brief(title, needs=needs, epic=epic), Kind.EPIC),)))
        return next(reversed(self.state.tasks))

    def task(self, name: str = "t1") -> Task:
        return self.state.tasks[name]

    # --- the workflow ---

    def assign(self, task: str = "t1", agent: str = ADA) -> None:
        self.do(AssignTask(task, agent))

    def at_work(self, task: str = "t1", agent: str = ADA) -> None:
        """Assigned, in its worktree, and told so."""
        self.assign(task, agent)
        self.prepared(task)

    def prepared(self, task: str = "t1") -> None:
        self.do(ReportWorktreeReady(task, self.task(task).attempt, f"w/{task}"))
        self.settle(self.task(task).holder)

    def settle(self, name: str) -> None:
        """Its old process goes, a new one comes, and it is in its turn, where it has mail and can have one."""
        agent = self.agent(name)
        if agent.session and agent.session.stage == "ending":
            self.ended(name)
        if self.agent(name).status == "starting":
            self.started(name)

    def reports(self, agent: str = ADA, summary: str = "It parses dates.") -> tuple[Event, ...]:
        return self.do(ReportImplementationComplete(agent, self.epoch(agent), summary))

    def ends_turn(self, agent: str = ADA, outcome: Outcome = Outcome.COMPLETED) -> tuple[Event, ...]:
        events = self.answered(agent, outcome)
        self.settle(agent)
        return events

    def accepted(self, task: str = "t1", *, ok: bool = True, commit: str = "c1") -> tuple[Event, ...]:
        return self.do(ReportAcceptance(task, self.task(task).attempt, ok, commit, "log/t1.txt", "" if ok else "red"))

    def in_review(self, task: str = "t1", agent: str = ADA) -> None:
        """Reported, its turn over, and checked."""
        self.at_work(task, agent)
        self.reports(agent)
        self.ends_turn(agent)
        self.accepted(task)

    def reviewing(self, task: str = "t1", agent: str = ADA, reviewer: str = BOB) -> None:
        self.in_review(task, agent)
        self.review(task, reviewer)

    def review(self, task: str = "t1", reviewer: str = BOB) -> None:
        self.do(AssignReview(task, reviewer))
        self.settle(reviewer)

    def says_of_it(self, *, approved: bool, reviewer: str = BOB, comments: str = "see line 3") -> None:
        self.do(ReportReviewVerdict(reviewer, self.epoch(reviewer), approved, comments))
        self.ends_turn(reviewer)

    def denied(self, task: str = "t1") -> None:
        self.reviewing(task)
        self.says_of_it(approved=False)
        self.do(AssignFeedback(task))
        self.settle(ADA)

    def committing(self, task: str = "t1") -> None:
        self.reviewing(task)
        self.says_of_it(approved=True)
        self.do(ApproveCommit(task))

    def merged(self, task: str = "t1") -> tuple[Event, ...]:
        return self.do(ReportMerged(task, self.task(task).attempt, "m1", "main", "git merge remuda/merged"))

    def refused(self, task: str = "t1", reason: Refusal = Refusal.CONFLICT) -> tuple[Event, ...]:
        return self.do(ReportMergeRefused(task, self.task(task).attempt, reason, "log/m1.txt", "<<<<"))

    def done(self, task: str = "t1") -> None:
        self.committing(task)
        self.merged(task)

    def answer_to(self, task: str, *, well: bool = True) -> TaskReport | None:
        """What the world would report of what the task owes."""
        place = (task, self.task(task).attempt)
        for effect in due_for(self.task(task)):
            match effect:
                case PrepareWorktree():
                    return ReportWorktreeReady(*place, f"w/{task}")
                case RunAcceptance():
                    return ReportAcceptance(*place, well, f"c{effect.attempt}", "log", "" if well else "red")
                case MergeTask():
                    if not well:
                        return ReportMergeRefused(*place, Refusal.CONFLICT, "log", "<<<<")
                    return ReportMerged(*place, f"m-{effect.commit}", "main")
                case RemoveWorktree():
                    return ReportWorktreeRemoved(*place, "" if well else "dirty")
        return None
