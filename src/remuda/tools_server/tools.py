"""The table of tools: what each is called, what it takes, who may call it, and what it comes to. Pure.

A tool that changes something comes to commands, which go by the same door as everyone's and may be refused there. One
that only looks answers at once. What is for the record of a turn goes to the record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from remuda.domain import commands, task_commands
from remuda.domain.commands import Command
from remuda.domain.decide import COORDINATOR
from remuda.domain.draft import find, find_task
from remuda.domain.errors import Refused
from remuda.domain.events import AgentSpawned, Event
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent, Sender
from remuda.domain.task import Brief, NewTask, Staff, Task
from remuda.domain.task_events import TaskAdded
from remuda.domain.tools import Tool
from remuda.records.facts import Decision
from remuda.tools_server import arguments, words
from remuda.tools_server.arguments import Arguments, Part

USER = "user"
WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who is calling, by the token of its session."""

    agent: Agent
    epoch: int
    call: str  # an id for this very call

    @property
    def sender(self) -> Sender:
        return Sender.COORDINATOR if self.agent.role == COORDINATOR else Sender.AGENT


@dataclass(frozen=True, slots=True)
class Book:
    """What may be known: agents and tasks, as they are on the disk, and who is wanted for the work."""

    agents: Mapping[str, Agent]
    tasks: Mapping[str, Task]
    staff: Staff


Say = Callable[[Sequence[Event]], str]


class Do(NamedTuple):
    """Commands, in order, and what the model is told when all of them are done, from the events they led to."""

    commands: tuple[Command, ...]
    say: Say


class Note(NamedTuple):
    """For the record of the turn that the agent is in."""

    decision: Decision


Act = Callable[[Speaker, Any, Book], Do | Note | str]


class Row(NamedTuple):
    takes: type[Arguments]
    says: str  # to the model, of what it is for
    act: Act


# --- for everyone ---


def _post_message(speaker: Speaker, said: arguments.PostMessage, book: Book) -> Do:
    to = _addressee(speaker, said.to, book)
    noted = task_commands.NoteToolUse(speaker.agent.name, speaker.epoch, Tool.POST_MESSAGE)
    if to == USER:
        word = task_commands.NotifyUser(speaker.agent.name, speaker.epoch, said.text)
        return Do((word, noted), _plainly("The user will see it."))
    mail = commands.SendMessage(to, speaker.call, speaker.sender, speaker.agent.name, said.text)
    return Do(
        (mail, noted), _plainly(f"{to} will read it in its next turn. An answer comes as a message: do not wait.")
    )


def _addressee(speaker: Speaker, to: str, book: Book) -> str:
    if to and to != COORDINATOR:
        return to
    if not to and (parent := book.agents.get(speaker.agent.parent)) is not None and parent.status not in DEAD:
        return parent.name
    leads = (each.name for each in book.agents.values() if each.role == COORDINATOR and each.status not in DEAD)
    return next((name for name in leads if name != speaker.agent.name), USER)


def _list_tasks(_: Speaker, said: arguments.ListTasks, book: Book) -> str:
    return words.task_list(book.tasks, said.which)


def _show_task(speaker: Speaker, said: arguments.ShowTask, book: Book) -> str:
    return words.task_page(_task(speaker, said.task, book))


def _note_task(speaker: Speaker, said: arguments.NoteTask, book: Book) -> Do:
    task = _task(speaker, said.task, book)
    return Do((task_commands.NoteTask(task.id, said.text, speaker.agent.name),), _plainly(f"Noted on {task.id}."))


def _complete_step(speaker: Speaker, said: arguments.CompleteStep, book: Book) -> Do:
    task = _task(speaker, said.task, book)
    command = task_commands.CompleteStep(task.id, said.step, speaker.agent.name)
    return Do((command,), _plainly(f"Step {said.step} of {task.id} is done."))


def _record_decision(_: Speaker, said: arguments.RecordDecision, __: Book) -> Note:
    reasons = (said.rationale, said.alternatives, said.consequences)
    return Note(Decision(said.title, said.context, said.decision, *reasons))


def _task(speaker: Speaker, name: str, book: Book) -> Task:
    name = name or speaker.agent.task
    if not name:
        raise Refused(f"you have no task; name one: {Tool.LIST_TASKS} shows them")
    return find_task(book.tasks, name)


# --- for workers ---


def _signal_ready(speaker: Speaker, _: arguments.Nothing, __: Book) -> Do:
    command = task_commands.SignalReady(speaker.agent.name, speaker.epoch)
    return Do((command,), _plainly("Good. End your turn: work comes as a message."))


def _complete(speaker: Speaker, said: arguments.ReportImplementationComplete, _: Book) -> Do:
    command = task_commands.ReportImplementationComplete(speaker.agent.name, speaker.epoch, said.summary)
    told = "The runtime checks it now, and somebody else reviews it. End your turn: the outcome comes as a message."
    return Do((command,), _plainly(told))


def _verdict(speaker: Speaker, said: arguments.ReportReviewVerdict, _: Book) -> Do:
    approved = said.verdict == "APPROVED"
    command = task_commands.ReportReviewVerdict(speaker.agent.name, speaker.epoch, approved, said.comments)
    return Do((command,), _plainly(f"{said.verdict} it is. End your turn."))


def _decompose(speaker: Speaker, said: arguments.DecomposeTask, book: Book) -> Do:
    accept = _task(speaker, "", book).brief.accept
    parts = tuple(_new_task(each, accept=accept) for each in said.parts)
    command = task_commands.DecomposeTask(speaker.agent.name, speaker.epoch, parts)
    return Do((command,), lambda events: f"{_added(events)} End your turn: one of them may come to you as a message.")


def _escalate(speaker: Speaker, said: arguments.Escalate, _: Book) -> Do:
    command = task_commands.EscalateTask(speaker.agent.name, speaker.epoch, said.why)
    return Do((command,), _plainly("The task is blocked until somebody has looked at it. End your turn."))


# --- for the coordinator ---


def _spawn_worker(speaker: Speaker, said: arguments.SpawnWorker, book: Book) -> Do:
    """On what the run was told to use, where the coordinator says nothing: nobody tells it what that is."""
    backend, model = said.backend, said.model
    if not backend:
        backend, model = book.staff.backend, model or book.staff.model
    command = commands.SpawnAgent(WORKER, backend, said.name, speaker.agent.name, model, instructions=said.instructions)
    return Do((command,), lambda events: f"{_spawned(events)} is there and idle; {Tool.ASSIGN_TASK} gives it work.")


def _list_workers(_: Speaker, __: arguments.Nothing, book: Book) -> str:
    return words.worker_list(each for each in book.agents.values() if each.phase is not None)


def _replace_worker(_: Speaker, said: arguments.ReplaceWorker, book: Book) -> Do:
    old = _worker(said.worker, book)
    command = task_commands.ReplaceWorker(old, said.why, said.backend, said.model)
    return Do((command,), lambda events: f"{_spawned(events)} has taken over from {old}, which is retired.")


def _retire_worker(_: Speaker, said: arguments.OneWorker, book: Book) -> Do:
    name = _worker(said.worker, book)
    return Do((commands.RetireAgent(name, said.why),), _plainly(f"{name} is retired; what it held is open again."))


def _stop_worker(_: Speaker, said: arguments.OneWorker, book: Book) -> Do:
    name = _worker(said.worker, book)
    return Do((commands.StopAgent(name, said.why),), _plainly(f"{name} is stopped; the user can resume it."))


def _worker(name: str, book: Book) -> str:
    agent = find(book.agents, name)
    if agent.phase is None:
        raise Refused(f"{name} is a {agent.role}, and only workers are yours to direct; tell the user if it must go")
    return name


def _add_tasks(speaker: Speaker, said: arguments.AddTasks, book: Book) -> Do:
    accept = _task(speaker, said.epic, book).brief.accept if said.epic else ()
    new = tuple(_new_task(each, accept=accept, epic=said.epic) for each in said.tasks)
    return Do((task_commands.AddTasks(new, speaker.agent.name),), _added)


def _split_task(speaker: Speaker, said: arguments.SplitTask, book: Book) -> Do:
    task = _task(speaker, said.task, book)
    parts = tuple(_new_task(each, accept=task.brief.accept) for each in said.parts)
    return Do((task_commands.SplitTask(task.id, parts, speaker.agent.name),), _added)


def _new_task(part: Part, *, accept: tuple[str, ...], epic: str = "") -> NewTask:
    """Acceptance commands are run by the runtime, so they come from people: a part is accepted as its whole is."""
    brief = Brief(
        title=part.title,
        description=part.description,
        steps=tuple(part.steps),
        needs=tuple(part.needs),
        epic=epic,
        priority=part.priority,
        labels=tuple(part.labels),
        paths=tuple(part.paths),
        accept=accept,
    )
    return NewTask(brief, key=part.key)


def _cancel_task(_: Speaker, said: arguments.OneTask, __: Book) -> Do:
    return Do((task_commands.CancelTask(said.task, said.why),), _plainly(f"{said.task} is cancelled."))


def _block_task(_: Speaker, said: arguments.BlockTask, __: Book) -> Do:
    told = f"{said.task} is blocked; {Tool.REOPEN_TASK} brings it back."
    return Do((task_commands.BlockTask(said.task, said.why),), _plainly(told))


def _reopen_task(_: Speaker, said: arguments.OneTask, __: Book) -> Do:
    return Do((task_commands.ReopenTask(said.task, said.why),), _plainly(f"{said.task} is open again."))


def _release_task(_: Speaker, said: arguments.OneTask, __: Book) -> Do:
    return Do((task_commands.ReleaseTask(said.task, said.why),), _plainly(f"Nobody holds {said.task} any more."))


def _assign_task(speaker: Speaker, said: arguments.Assign, _: Book) -> Do:
    command = task_commands.AssignTask(said.task, said.worker, speaker.agent.name, said.words)
    return Do((command,), _plainly(f"{said.worker} has {said.task}; you get a message when it needs you. Do not wait."))


def _assign_review(speaker: Speaker, said: arguments.Assign, _: Book) -> Do:
    command = task_commands.AssignReview(said.task, said.worker, speaker.agent.name, said.words)
    return Do((command,), _plainly(f"{said.worker} reviews {said.task}; its verdict comes as a message. Do not wait."))


def _assign_feedback(speaker: Speaker, said: arguments.AssignFeedback, _: Book) -> Do:
    command = task_commands.AssignFeedback(said.task, said.words, speaker.agent.name)
    return Do((command,), _plainly(f"{said.task} is back at work. Do not wait."))


def _approve_commit(speaker: Speaker, said: arguments.ApproveCommit, _: Book) -> Do:
    command = task_commands.ApproveCommit(said.task, speaker.agent.name, said.message)
    return Do((command,), _plainly(f"{said.task} is being merged; the outcome comes as a message. Do not wait."))


def _notify_user(speaker: Speaker, said: arguments.NotifyUser, _: Book) -> Do:
    command = task_commands.NotifyUser(speaker.agent.name, speaker.epoch, said.text)
    return Do((command,), _plainly("The user will see it."))


def _signal_complete(speaker: Speaker, said: arguments.SignalComplete, _: Book) -> Do:
    command = task_commands.SignalComplete(speaker.agent.name, speaker.epoch, said.summary)
    return Do((command,), _plainly("All is done. End your turn."))


# --- words ---


def _plainly(text: str) -> Say:
    return lambda _: text


def _spawned(events: Sequence[Event]) -> str:
    return next((event.agent for event in events if isinstance(event, AgentSpawned)), "the worker")


def _added(events: Sequence[Event]) -> str:
    added = [f"{event.task}: {event.brief.title}" for event in events if isinstance(event, TaskAdded)]
    return "Added:\n" + "\n".join(added)


# --- the table ---

ROWS: Mapping[Tool, Row] = {
    Tool.POST_MESSAGE: Row(arguments.PostMessage, "Write to another agent or to the user.", _post_message),
    Tool.LIST_TASKS: Row(arguments.ListTasks, "The tasks at a glance.", _list_tasks),
    Tool.SHOW_TASK: Row(arguments.ShowTask, "All about one task: steps, notes, checks, verdicts.", _show_task),
    Tool.NOTE_TASK: Row(arguments.NoteTask, "Leave a note on a task for whoever goes on with it.", _note_task),
    Tool.COMPLETE_STEP: Row(arguments.CompleteStep, "Tick off a step of a task.", _complete_step),
    Tool.RECORD_DECISION: Row(
        arguments.RecordDecision,
        "Put a decision and its reasons on the turn's record.",
        _record_decision,
    ),
    Tool.SIGNAL_READY: Row(arguments.Nothing, "Say that you are ready for work and have none.", _signal_ready),
    Tool.REPORT_IMPLEMENTATION_COMPLETE: Row(
        arguments.ReportImplementationComplete,
        "Say that your task is done and committed. The runtime then runs the acceptance commands itself.",
        _complete,
    ),
    Tool.REPORT_REVIEW_VERDICT: Row(
        arguments.ReportReviewVerdict, "Give your verdict on the work that you review.", _verdict
    ),
    Tool.DECOMPOSE_TASK: Row(
        arguments.DecomposeTask, "Take your own task apart because it is too large for one sitting.", _decompose
    ),
    Tool.ESCALATE: Row(arguments.Escalate, "Say that you cannot go on with your task.", _escalate),
    Tool.SPAWN_WORKER: Row(arguments.SpawnWorker, "Get one more worker.", _spawn_worker),
    Tool.LIST_WORKERS: Row(arguments.Nothing, "The workers: what each is at, and who is idle.", _list_workers),
    Tool.REPLACE_WORKER: Row(
        arguments.ReplaceWorker, "Let a successor take over a worker's task, then retire the worker.", _replace_worker
    ),
    Tool.RETIRE_WORKER: Row(arguments.OneWorker, "End a worker for good; its task is open again.", _retire_worker),
    Tool.STOP_WORKER: Row(arguments.OneWorker, "Stop a worker; the user can resume it.", _stop_worker),
    Tool.ADD_TASKS: Row(arguments.AddTasks, "Add tasks, all of them or none.", _add_tasks),
    Tool.SPLIT_TASK: Row(arguments.SplitTask, "Make a task an epic of smaller ones.", _split_task),
    Tool.CANCEL_TASK: Row(arguments.OneTask, "Give a task up, with its parts.", _cancel_task),
    Tool.BLOCK_TASK: Row(arguments.BlockTask, "Set a task aside until something has happened.", _block_task),
    Tool.REOPEN_TASK: Row(arguments.OneTask, "Open a task again that was blocked or is in review.", _reopen_task),
    Tool.RELEASE_TASK: Row(arguments.OneTask, "Take a task away from its worker.", _release_task),
    Tool.ASSIGN_TASK: Row(arguments.Assign, "Give an idle worker a task that is ready.", _assign_task),
    Tool.ASSIGN_REVIEW: Row(
        arguments.Assign,
        "Let an idle worker review a task that has passed its checks; never its author.",
        _assign_review,
    ),
    Tool.ASSIGN_FEEDBACK: Row(
        arguments.AssignFeedback, "Send a reviewed task back to its worker with what to change.", _assign_feedback
    ),
    Tool.APPROVE_COMMIT: Row(arguments.ApproveCommit, "Merge a task whose review approved it.", _approve_commit),
    Tool.NOTIFY_USER: Row(arguments.NotifyUser, "Tell the user something that matters now.", _notify_user),
    Tool.SIGNAL_COMPLETE: Row(
        arguments.SignalComplete,
        "Say that the whole work is done. Refused while a task is unfinished.",
        _signal_complete,
    ),
}

EVERYONE = (
    Tool.POST_MESSAGE,
    Tool.LIST_TASKS,
    Tool.SHOW_TASK,
    Tool.NOTE_TASK,
    Tool.COMPLETE_STEP,
    Tool.RECORD_DECISION,
)
WORKERS = (
    Tool.SIGNAL_READY,
    Tool.REPORT_IMPLEMENTATION_COMPLETE,
    Tool.REPORT_REVIEW_VERDICT,
    Tool.DECOMPOSE_TASK,
    Tool.ESCALATE,
)
COORDINATORS = tuple(tool for tool in ROWS if tool not in (*EVERYONE, *WORKERS))


def tools_of(role: str) -> tuple[Tool, ...]:
    """What an agent of the role may call."""
    return (*EVERYONE, *(COORDINATORS if role == COORDINATOR else WORKERS))
