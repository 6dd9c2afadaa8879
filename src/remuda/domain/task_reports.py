"""What the world's reports about worktrees, checks and merges lead to. Each is fenced by the attempt it is of."""

from collections.abc import Mapping
from typing import assert_never

from remuda.domain import prompts, workflow
from remuda.domain.draft import Decision, wake
from remuda.domain.errors import Refused
from remuda.domain.lifecycle import Phase, TaskStatus, Work
from remuda.domain.state import Sender
from remuda.domain.task import Check, Merge, Task
from remuda.domain.task_commands import (
    ApproveCommit,
    ReportAcceptance,
    ReportMerged,
    ReportMergeRefused,
    ReportWorkFailed,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
    TaskReport,
)
from remuda.domain.task_events import (
    AcceptanceRun,
    MergeRefused,
    MergeRequested,
    TaskMerged,
    TaskReportIgnored,
    WorkFailed,
    WorktreeCleared,
    WorktreeReady,
)
from remuda.domain.text import LONGEST_REASON, check_text, tidy

# The stages of work that each can be the answer to.
ANSWERS: Mapping[type, tuple[Work, ...]] = {
    ReportWorktreeReady: (Work.PREPARING,),
    ReportAcceptance: (Work.CHECKING,),
    ReportMerged: (Work.MERGING,),
    ReportMergeRefused: (Work.MERGING,),
    ReportWorktreeRemoved: (Work.CLEARING,),
    ReportWorkFailed: (Work.PREPARING, Work.CHECKING, Work.MERGING),
}

MOST_FILES = 1000  # that are remembered of a check


def decide(decision: Decision, report: TaskReport) -> None:
    task = decision.task(report.task)
    if task.attempt != report.attempt or task.work not in ANSWERS[type(report)]:
        why = f"it is of attempt {report.attempt}, the present one is {task.attempt}, and the work is {task.work}"
        decision.emit(TaskReportIgnored(task.id, report.attempt, type(report).__name__, why))
        return
    match report:
        case ReportWorktreeReady():
            _ready(decision, report)
        case ReportWorkFailed():
            _failed(decision, task, report)
        case ReportAcceptance():
            _checked(decision, task, report)
        case ReportMerged():
            _merged(decision, task, report)
        case ReportMergeRefused():
            _refused(decision, task, report)
        case ReportWorktreeRemoved():
            decision.emit(WorktreeCleared(task.id, report.attempt, tidy(report.kept)))
        case _:
            assert_never(report)


def _ready(decision: Decision, report: ReportWorktreeReady) -> None:
    told = prompts.assignment(decision.task(report.task))
    task = decision.emit(WorktreeReady(report.task, report.attempt, report.folder))
    draft = decision.agent(task.holder)
    workflow.send_to(draft, task.folder)
    draft.tell("task", Sender.COORDINATOR, told, about=task.id)
    wake(draft)


def _failed(decision: Decision, task: Task, report: ReportWorkFailed) -> None:
    error = tidy(report.error)
    task = decision.emit(WorkFailed(task.id, report.attempt, error))
    workflow.put_back(decision, task, TaskStatus.BLOCKED, f"{task.work} failed: {error}"[:LONGEST_REASON])


def _checked(decision: Decision, task: Task, report: ReportAcceptance) -> None:
    told = (tidy(report.commit), tidy(report.evidence), tidy(report.tail), tidy(report.tree))
    check = Check(report.ok, *told, tuple(map(tidy, report.files[:MOST_FILES])))
    task = decision.emit(AcceptanceRun(task.id, report.attempt, check))
    if not check.ok:
        workflow.return_work(decision, task, "it was not accepted", prompts.not_accepted(task, check))


def approve(decision: Decision, command: ApproveCommit) -> None:
    check_text("the message", command.message, empty=True)
    task = decision.task(command.task)
    if task.work is not Work.CHECKED:
        raise Refused(f"{task.id} is {task.status} and {task.work}; only what has passed its checks can be merged")
    if task.verdict is not None and not task.verdict.approved:
        raise Refused(f"{task.verdict.reviewer} has denied {task.id}; give its author the feedback first")
    if task.verdict is None and not command.unreviewed:
        raise Refused(f"nobody has reviewed {task.id}; assign the review first, or say that it is to go unreviewed")
    workflow.check_undisputed(decision, task)
    task = workflow.release_reviewer(decision, task, "it was approved without a review")
    message = command.message or prompts.commit_message(task)
    task = decision.emit(MergeRequested(task.id, task.attempt + 1, message, command.by))
    if task.holder:
        workflow.change_phase(decision.agent(task.holder), Phase.COMMITTING, task.id)


def _merged(decision: Decision, task: Task, report: ReportMerged) -> None:
    merge = Merge(tidy(report.commit), tidy(report.target), tidy(report.next_step))
    task = decision.emit(TaskMerged(task.id, task.attempt + 1, merge))
    task = workflow.release_holder(decision, task, "merged", cut=False)
    task = workflow.move(decision, task, TaskStatus.DONE, f"merged as {merge.commit[:12]} into {merge.target}")
    workflow.close_epics(decision, task)


def _refused(decision: Decision, task: Task, report: ReportMergeRefused) -> None:
    evidence, tail = tidy(report.evidence), tidy(report.tail)
    decision.emit(MergeRefused(task.id, report.attempt, report.reason, evidence, tail))
    words = prompts.not_merged(task, report.reason, tail)
    workflow.return_work(decision, task, f"not merged: {report.reason}", words)
