"""How work goes from hand to hand: assigned, reported, checked, reviewed, merged, or given back.

Two rules hold throughout. A task in progress has exactly one holder; whatever takes the holder away opens the task
again. And a task in review does not need its holder: its work is on a branch and checked, so it can be reviewed and
merged without the one who wrote it, and goes back to open only when somebody has to go on with it. Unless its changes
are what that one was stopped for: then nothing becomes of them before there is a verdict.
"""

from collections.abc import Mapping

from remuda.domain import prompts
from remuda.domain.draft import Decision, Draft, wake
from remuda.domain.errors import Refused
from remuda.domain.events import FolderChanged, PhaseChanged, SessionEndRequested
from remuda.domain.lifecycle import (
    DEAD,
    FINISHED,
    GIVEN_UP,
    PUT_BACK,
    Phase,
    Status,
    TaskStatus,
    Work,
    check_claim,
    check_free,
    check_phase,
    check_task,
)
from remuda.domain.state import Agent, Outcome, Sender
from remuda.domain.task import Kind, Note, Task, may_review
from remuda.domain.task_commands import AssignFeedback, AssignReview, AssignTask, ReleaseReview, ReleaseTask
from remuda.domain.task_events import (
    ReviewAssigned,
    ReviewReleased,
    TaskAssigned,
    TaskNoted,
    TaskReleased,
    TaskStatusChanged,
    WorkReturned,
    WorktreeGivenUp,
)
from remuda.domain.task_graph import parts_of, unmet
from remuda.domain.text import LONGEST_REASON, check_text
from remuda.domain.trigger import Fired, Trigger

MOST_SETBACKS = 6  # then a person should look at it


# --- moves ---


def move(decision: Decision, task: Task, status: TaskStatus, why: str) -> Task:
    check_task(task.id, task.status, status)
    return decision.emit(TaskStatusChanged(task.id, task.status, status, why))


def change_phase(draft: Draft, phase: Phase, task: str) -> None:
    agent = draft.agent
    if agent.phase is None:
        raise Refused(f"{agent.name} is a {agent.role}; only workers take tasks")
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status}; give the task to somebody alive")
    check_phase(agent.name, agent.phase, phase)
    draft.emit(PhaseChanged(agent.name, agent.phase, phase, task))


def note(decision: Decision, task: Task, text: str) -> None:
    decision.emit(TaskNoted(task.id, Note(decision.now, "remuda", text)))


# --- what is in dispute ---


def dispute(agents: Mapping[str, Agent], task: Task) -> Fired | None:
    """What its holder was stopped for, where that is the very change that would be merged and nobody has judged it."""
    holder = agents.get(task.holder)
    fired = holder.trigger if holder else None
    return fired if fired is not None and fired.trigger is Trigger.CHANGESET else None


def check_undisputed(decision: Decision, task: Task) -> None:
    if dispute(decision.agents(), task):
        raise Refused(
            f"{task.holder} was stopped for what it changes for {task.id}: `remuda verdict {task.holder} continue` "
            "lets it be merged, `reap` sends it back"
        )


# --- to somebody ---


def assign(decision: Decision, command: AssignTask) -> None:
    check_text("what it is told", command.words, empty=True)
    task = decision.task(command.task)
    if task.kind is Kind.EPIC:
        raise Refused(f"{task.id} is an epic; assign its parts: see `remuda task show {task.id}`")
    check_claim(task.id, task.status)
    waits = [each.id for each in unmet(decision.tasks(), task)]
    if waits:
        raise Refused(f"{task.id} waits for {', '.join(waits)}; see `remuda task ready` for what can begin")
    change_phase(decision.agent(command.agent), Phase.IMPLEMENTING, task.id)
    task = decision.emit(TaskAssigned(task.id, command.agent, task.attempt + 1, task.branch, command.by, command.words))
    move(decision, task, TaskStatus.IN_PROGRESS, f"assigned to {command.agent}")


def assign_review(decision: Decision, command: AssignReview) -> None:
    check_text("what it is told", command.words, empty=True)
    task = decision.task(command.task)
    if task.work is not Work.CHECKED:
        raise Refused(f"{task.id} is {task.status} and {task.work}; only what has passed its checks can be reviewed")
    if task.reviewer:
        raise Refused(f"{task.reviewer} reviews {task.id} already")
    if not may_review(command.agent, task):
        raise Refused(f"{command.agent} has worked on {task.id}; nobody reviews their own work")
    check_undisputed(decision, task)
    draft = decision.agent(command.agent)
    change_phase(draft, Phase.REVIEWING, task.id)
    decision.emit(ReviewAssigned(task.id, command.agent, command.by))
    send_to(draft, task.folder)
    draft.tell("review", Sender.COORDINATOR, prompts.review(task, command.words), about=task.id)
    wake(draft)


def send_to(draft: Draft, folder: str) -> None:
    draft.emit(FolderChanged(draft.agent.name, folder))


# --- back to work ---


def assign_feedback(decision: Decision, command: AssignFeedback) -> None:
    check_text("the feedback", command.words, empty=True)
    task = decision.task(command.task)
    if task.work is not Work.CHECKED:
        raise Refused(f"{task.id} is {task.status} and {task.work}; only what waits for its review can get feedback")
    words = command.words or (task.verdict.comments if task.verdict else "")
    if not words:
        raise Refused(f"say what is to be done about {task.id}: nobody has reviewed it, so there are no comments")
    return_work(decision, task, "denied", prompts.feedback(task, words))


def return_work(decision: Decision, task: Task, why: str, words: str) -> None:
    """To its holder, or to whoever takes it up next. Too often, and nobody gets it before a person has looked."""
    release_reviewer(decision, task, why)
    task = decision.emit(WorkReturned(task.id, why, setback=True))
    if task.setbacks >= MOST_SETBACKS:
        note(decision, task, words)
        task = release_holder(decision, decision.task(task.id), why)
        move(decision, task, TaskStatus.BLOCKED, f"{task.setbacks} setbacks; the last: {why}")
        return
    if not task.holder:
        note(decision, task, words)
        move(decision, decision.task(task.id), TaskStatus.OPEN, why)
        return
    move(decision, task, TaskStatus.IN_PROGRESS, why)
    draft = decision.agent(task.holder)
    if draft.agent.phase is Phase.COMMITTING:
        change_phase(draft, Phase.IDLE, "")
        change_phase(draft, Phase.IMPLEMENTING, task.id)
    else:
        change_phase(draft, Phase.ADDRESSING_FEEDBACK, task.id)
    draft.tell("feedback", Sender.COORDINATOR, words, about=task.id)
    wake(draft)


# --- away from somebody ---


def release(decision: Decision, command: ReleaseTask) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    task = decision.task(command.task)
    if not task.holder:
        raise Refused(f"nobody holds {task.id}; it is {task.status}")
    bereave(decision, task, command.why or "released", setback=command.setback)


def bereave(decision: Decision, task: Task, why: str, *, setback: bool = False) -> None:
    """Its holder goes. In review it needs none, unless it goes for what it made; in progress it is open again."""
    wrong = dispute(decision.agents(), task)
    task = release_holder(decision, task, why)
    if wrong is not None and task.status is TaskStatus.IN_REVIEW and task.work is not Work.MERGING:
        note(decision, task, f"Not merged as it is: {wrong.evidence}. What was made is on the branch.")
        put_back(decision, decision.task(task.id), TaskStatus.OPEN, why)
        return
    if task.status is not TaskStatus.IN_PROGRESS:
        return
    task = decision.emit(WorkReturned(task.id, why, setback))
    if task.setbacks >= MOST_SETBACKS:
        move(decision, task, TaskStatus.BLOCKED, f"{task.setbacks} setbacks; the last: {why}")
    else:
        move(decision, task, TaskStatus.OPEN, why)


def release_review(decision: Decision, command: ReleaseReview) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    task = decision.task(command.task)
    if not task.reviewer:
        raise Refused(f"nobody reviews {task.id}; it is {task.status}")
    why = command.why or "released"
    reviewer = task.reviewer
    task = decision.emit(ReviewReleased(task.id, reviewer, why, command.setback))
    go_free(decision.agent(reviewer), task.id, why, cut=True)
    if task.setbacks >= MOST_SETBACKS:
        block(decision, task, f"{task.setbacks} setbacks; the last: {why}")


def release_holder(decision: Decision, task: Task, why: str, *, cut: bool = True) -> Task:
    if task.holder:
        holder = task.holder
        task = decision.emit(TaskReleased(task.id, holder, why))
        go_free(decision.agent(holder), task.id, why, cut=cut)
    return task


def release_reviewer(decision: Decision, task: Task, why: str, *, cut: bool = True) -> Task:
    if task.reviewer:
        reviewer = task.reviewer
        task = decision.emit(ReviewReleased(task.id, reviewer, why))
        go_free(decision.agent(reviewer), task.id, why, cut=cut)
    return task


def go_free(draft: Draft, task: str, why: str, *, cut: bool) -> None:
    """To idle. A turn about a task that was taken away is cut, for it would be work for nothing; one in which the
    agent itself has ended its part comes to its own end."""
    agent = draft.agent
    assert agent.phase is not None
    check_phase(agent.name, agent.phase, Phase.IDLE)
    draft.emit(PhaseChanged(agent.name, agent.phase, Phase.IDLE, ""))
    if agent.status in DEAD:
        return
    if cut and agent.turn is not None and agent.turn.message.about == task and agent.session is not None:
        draft.cut_turn(Outcome.INTERRUPTED, why)
        draft.emit(SessionEndRequested(agent.name, agent.session.epoch, why))
        draft.move(Status.READY, why)
    draft.withdraw(task)
    if agent.folder:
        send_to(draft, "")
    wake(draft)


# --- to an end ---


def finish(decision: Decision, task: Task, status: TaskStatus, why: str) -> None:
    """Done by hand or cancelled. What somebody has of it is taken away, and its worktree goes; the branch stays."""
    check_free(task.id, task.work)
    check_task(task.id, task.status, status)
    task = release_reviewer(decision, task, why)
    task = release_holder(decision, task, why)
    task = give_up_worktree(decision, task)
    task = move(decision, task, status, why)
    close_epics(decision, task)


def give_up_worktree(decision: Decision, task: Task) -> Task:
    if GIVEN_UP[task.work] is not task.work:
        return decision.emit(WorktreeGivenUp(task.id, task.attempt + 1))
    return task


def close_epics(decision: Decision, task: Task) -> None:
    """An epic ends with the last of its parts, and so may the epic that it is a part of itself."""
    name = task.brief.epic
    if not name:
        return
    epic = decision.task(name)
    ends = {part.status for part in parts_of(decision.tasks(), name)}
    if epic.status in FINISHED or not ends or not ends <= FINISHED:
        return
    status = TaskStatus.DONE if TaskStatus.DONE in ends else TaskStatus.CANCELLED
    close_epics(decision, move(decision, epic, status, "all its parts are finished"))


def block(decision: Decision, task: Task, why: str, *, cut: bool = True) -> None:
    check_free(task.id, task.work)
    check_task(task.id, task.status, TaskStatus.BLOCKED)
    put_back(decision, task, TaskStatus.BLOCKED, why, cut=cut)


def reopen(decision: Decision, task: Task, why: str) -> None:
    check_free(task.id, task.work)
    check_task(task.id, task.status, TaskStatus.OPEN)
    put_back(decision, task, TaskStatus.OPEN, why)


def put_back(decision: Decision, task: Task, status: TaskStatus, why: str, *, cut: bool = True) -> None:
    task = release_reviewer(decision, task, why, cut=cut)
    task = release_holder(decision, task, why, cut=cut)
    if task.work is Work.MERGING or PUT_BACK[task.work] is not task.work:
        task = decision.emit(WorkReturned(task.id, why, setback=False))
    move(decision, task, status, why)


def take_apart(decision: Decision, task: Task, why: str, *, cut: bool) -> None:
    check_task(task.id, task.status, TaskStatus.DECOMPOSED)
    task = release_holder(decision, task, why, cut=cut)
    task = give_up_worktree(decision, task)
    move(decision, task, TaskStatus.DECOMPOSED, why)
