"""What each tool takes. The descriptions are what the model reads."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
TaskId = Annotated[str, Meta(description="The task's id, such as t3.")]
Worker = Annotated[str, Meta(description="The worker's name, such as worker-1.")]
Why = Annotated[str, Meta(description="The reason, for whoever looks at it later.")]
Words = Annotated[str, Meta(description="What to tell it beyond the task itself.")]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Nothing(Arguments, frozen=True):
    pass


class PostMessage(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, description="The message.")]
    to: Annotated[
        str, Meta(description="An agent's name, or `coordinator`, or `user`. Left out: whoever directs your work.")
    ] = ""


class ListTasks(Arguments, frozen=True):
    which: Annotated[
        Literal["ready", "unfinished", "all"], Meta(description="ready: open, and all that it needs is done.")
    ] = "unfinished"


class ShowTask(Arguments, frozen=True):
    task: Annotated[str, Meta(description="The task's id, such as t3. Left out: the one that you have.")] = ""


class NoteTask(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, description="What whoever goes on with the task should know.")]
    task: Annotated[str, Meta(description="The task's id. Left out: the one that you have.")] = ""


class CompleteStep(Arguments, frozen=True):
    step: Annotated[int, Meta(ge=1, description="The step's number, from 1.")]
    task: Annotated[str, Meta(description="The task's id. Left out: the one that you have.")] = ""


class RecordDecision(Arguments, frozen=True):
    title: Annotated[str, Meta(min_length=1, description="One line: what was decided.")]
    context: Annotated[str, Meta(min_length=1, description="What made a decision necessary.")]
    decision: Annotated[str, Meta(min_length=1, description="What was chosen.")]
    rationale: Annotated[list[str], Meta(description="Why.")] = []
    alternatives: Annotated[list[str], Meta(description="What else was weighed, and why not.")] = []
    consequences: Annotated[list[str], Meta(description="What follows from it, for better or worse.")] = []


class ReportImplementationComplete(Arguments, frozen=True):
    summary: Annotated[
        str, Meta(min_length=1, description="What was done and how it was tried, for the reviewer and the commit.")
    ]


class ReportReviewVerdict(Arguments, frozen=True):
    verdict: Annotated[
        Literal["APPROVED", "DENIED"], Meta(description="APPROVED only if it may be merged just as it is.")
    ]
    comments: Annotated[str, Meta(description="What to change and why; must be given with DENIED.")] = ""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, description="One line.")]
    description: str = ""
    steps: Annotated[list[str], Meta(description="In order.")] = []
    needs: Annotated[
        list[str], Meta(description="What must be done before: ids of tasks, or keys of others given with this one.")
    ] = []
    key: Annotated[str, Meta(description="A name by which the others given with this one can need it.")] = ""
    priority: Annotated[int, Meta(ge=0, le=4, description="0 is the most urgent, 4 the least.")] = 2
    labels: list[str] = []
    paths: Annotated[list[str], Meta(description="The files it is about, as patterns.")] = []


class DecomposeTask(Arguments, frozen=True):
    parts: Annotated[list[Part], Meta(min_length=1, description="Each small enough for one sitting.")]


class Escalate(Arguments, frozen=True):
    why: Annotated[str, Meta(min_length=1, description="What is in the way, and what would help.")]


class SpawnWorker(Arguments, frozen=True):
    backend: Annotated[
        str, Meta(description="The program that runs it. Left out: the one that was chosen for this work.")
    ] = ""
    model: str = ""
    name: Annotated[str, Meta(description="Left out: the next free one.")] = ""
    instructions: Annotated[str, Meta(description="What it should always keep in mind.")] = ""


class OneWorker(Arguments, frozen=True):
    worker: Worker
    why: Why = ""


class ReplaceWorker(Arguments, frozen=True):
    worker: Worker
    why: Why = ""
    backend: Annotated[str, Meta(description="The program that runs the successor. Left out: the same.")] = ""
    model: str = ""


class AddTasks(Arguments, frozen=True):
    tasks: Annotated[list[Part], Meta(min_length=1)]
    epic: Annotated[str, Meta(description="The task that they are parts of, if any.")] = ""


class SplitTask(Arguments, frozen=True):
    task: TaskId
    parts: Annotated[list[Part], Meta(min_length=1)]


class OneTask(Arguments, frozen=True):
    task: TaskId
    why: Why = ""


class BlockTask(Arguments, frozen=True):
    task: TaskId
    why: Annotated[str, Meta(min_length=1, description="What it waits for.")]


class Assign(Arguments, frozen=True):
    task: TaskId
    worker: Worker
    words: Words = ""


class AssignFeedback(Arguments, frozen=True):
    task: TaskId
    words: Annotated[str, Meta(description="What to change. Left out: the comments of the last verdict.")] = ""


class ApproveCommit(Arguments, frozen=True):
    task: TaskId
    message: Annotated[str, Meta(description="Of the commit. Left out: made from the task and its summary.")] = ""


class NotifyUser(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, description="Short, and of use to a person who does other things.")]


class SignalComplete(Arguments, frozen=True):
    summary: Annotated[str, Meta(min_length=1, description="What came out, for the user.")]


def read(kind: type[Arguments], raw: bytes) -> Arguments:
    return msgspec.json.decode(raw, type=kind)
