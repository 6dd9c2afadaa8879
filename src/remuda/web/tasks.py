"""Tasks over HTTP: the workflow as people and coordinators direct it, and what workers say of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.domain.commands import Command
from remuda.domain.draft import find_task
from remuda.domain.errors import Refused
from remuda.domain.state import Sender
from remuda.domain.task import Brief, Kind, NewTask, Staff
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    BlockTask,
    CancelTask,
    CloseTask,
    CompleteStep,
    EditTask,
    EscalateTask,
    NoteTask,
    ReleaseTask,
    ReopenTask,
    ReportImplementationComplete,
    ReportReviewVerdict,
    SetStaff,
    SplitTask,
)
from remuda.domain.task_events import TaskAdded
from remuda.runtime.runtime import Caller, Runtime
from remuda.views.tasks import TaskDetail, task_detail
from remuda.web.door import answer, body_of, caller_of, order_of, runtime_of


class BriefBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `Brief` in which nothing may stand that it does not have."""

    title: str
    description: str = ""
    steps: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    epic: str = ""
    priority: int = 2
    labels: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    target: str = ""


class NewTaskBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    brief: BriefBody
    kind: Kind = Kind.TASK
    id: str = ""
    key: str = ""

    def task(self) -> NewTask:
        return NewTask(Brief(**msgspec.structs.asdict(self.brief)), self.kind, self.id, self.key)


class NewBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tasks: tuple[NewTaskBody, ...]


class EditBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    title: str | None = None
    description: str | None = None
    steps: tuple[str, ...] | None = None
    needs: tuple[str, ...] | None = None
    epic: str | None = None
    priority: int | None = None
    labels: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    accept: tuple[str, ...] | None = None
    target: str | None = None


class DirectBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For every verb the same; each takes of it what it needs."""

    agent: str = ""
    text: str = ""
    step: int = 0
    unreviewed: bool = False
    parts: tuple[NewTaskBody, ...] = ()


class SaidBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    approved: bool = False


class StaffBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workers: int
    backend: str = ""
    model: str = ""
    reviewed: bool | None = None


class AddedAnswer(msgspec.Struct, frozen=True):
    added: list[str]
    seq: int


async def add_tasks(request: Request) -> Response:
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    body = await body_of(request, NewBody)
    new = tuple(each.task() for each in body.tasks)
    accepted = await runtime.submit(AddTasks(new, caller.author), order=order)
    added = [event.task for event in accepted.events if isinstance(event, TaskAdded)]
    if not accepted.events:  # this order came before, and its answer was lost
        records = await runtime.store.read(accepted.seq - 1, len(body.tasks))
        added = [record.event.task for record in records if isinstance(record.event, TaskAdded)]
    return answer(AddedAnswer(added, accepted.seq), 201)


async def edit_task(request: Request) -> Response:
    caller, order, runtime = _director(request), order_of(request), runtime_of(request)
    body = await body_of(request, EditBody)
    name = request.path_params["task"]
    changes = {field: value for field, value in msgspec.structs.asdict(body).items() if value is not None}
    brief: Brief = replace(find_task(runtime.loop.shown.tasks, name).brief, **changes)
    await runtime.submit(EditTask(name, brief, caller.author), order=order)
    return answer(_detail(runtime, name))


async def note_task(request: Request) -> Response:
    """Anybody may."""
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    body = await body_of(request, DirectBody)
    name, done = request.path_params["task"], request.url.path.endswith("/step")
    command = CompleteStep(name, body.step, caller.author) if done else NoteTask(name, body.text, caller.author)
    await runtime.submit(command, order=order)
    return answer(_detail(runtime, name))


DIRECTED: dict[str, Callable[[str, DirectBody, str], Command]] = {
    "close": lambda task, body, _by: CloseTask(task, body.text),
    "cancel": lambda task, body, _by: CancelTask(task, body.text),
    "block": lambda task, body, _by: BlockTask(task, body.text),
    "reopen": lambda task, body, _by: ReopenTask(task, body.text),
    "split": lambda task, body, by: SplitTask(task, tuple(each.task() for each in body.parts), by),
    "assign": lambda task, body, by: AssignTask(task, body.agent, by, body.text),
    "review": lambda task, body, by: AssignReview(task, body.agent, by, body.text),
    "feedback": lambda task, body, by: AssignFeedback(task, body.text, by),
    "approve": lambda task, body, by: ApproveCommit(task, by, body.text, body.unreviewed),
    "release": lambda task, body, _by: ReleaseTask(task, body.text),
}


async def direct_task(request: Request) -> Response:
    caller, order, runtime = _director(request), order_of(request), runtime_of(request)
    body = await body_of(request, DirectBody)
    name = request.path_params["task"]
    make = DIRECTED[request.url.path.rpartition("/")[2]]
    if body.unreviewed and caller.sender is not Sender.USER:
        raise Refused("only the user may have something merged that nobody has reviewed")
    await runtime.submit(make(name, body, caller.author), order=order)
    return answer(_detail(runtime, name))


SAID: dict[str, Callable[[Caller, SaidBody], Command]] = {
    "complete": lambda caller, body: ReportImplementationComplete(caller.author, caller.epoch, body.text),
    "verdict": lambda caller, body: ReportReviewVerdict(caller.author, caller.epoch, body.approved, body.text),
    "escalate": lambda caller, body: EscalateTask(caller.author, caller.epoch, body.text),
}


async def say_of_task(request: Request) -> Response:
    """What a worker says of the task that it has: who it is comes from its token, and with it which task."""
    caller, order, runtime = caller_of(request), order_of(request), runtime_of(request)
    if caller.sender is Sender.USER:
        raise Refused("only an agent can say this of its own task; you may assign, approve, close or cancel it")
    body = await body_of(request, SaidBody)
    task = runtime.agent(caller.author).task
    await runtime.submit(SAID[request.url.path.rpartition("/")[2]](caller, body), order=order)
    return answer(_detail(runtime, task))


async def set_staff(request: Request) -> Response:
    if caller_of(request).sender is not Sender.USER:
        raise Refused("only the user may say how many workers there are and whether work is reviewed")
    order, runtime = order_of(request), runtime_of(request)
    body = await body_of(request, StaffBody)
    if body.backend:
        runtime.known_backend(body.backend)
    staff = Staff(body.workers, body.backend, body.model, body.reviewed)
    accepted = await runtime.submit(SetStaff(staff), order=order)
    return answer({"workers": body.workers, "seq": accepted.seq})


def _director(request: Request) -> Caller:
    caller = caller_of(request)
    if caller.sender is Sender.AGENT:
        raise Refused(f"{caller.author} may not direct the work; it may note on tasks and write to the coordinator")
    return caller


def _detail(runtime: Runtime, name: str) -> TaskDetail:
    tasks = runtime.loop.shown.tasks
    return task_detail(tasks, find_task(tasks, name))


Endpoint = Callable[[Request], Any]


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])


ROUTES = [
    _post("/v1/tasks", add_tasks),
    _post("/v1/staff", set_staff),
    *(_post(f"/v1/own-task/{verb}", say_of_task) for verb in SAID),
    _post("/v1/tasks/{task}/edit", edit_task),
    _post("/v1/tasks/{task}/note", note_task),
    _post("/v1/tasks/{task}/step", note_task),
    *(_post(f"/v1/tasks/{{task}}/{verb}", direct_task) for verb in DIRECTED),
]
