"""What agents are told about tasks, made from the task itself. Tools are named by `Tool` alone."""

from remuda.domain.task import Check, Refusal, Task
from remuda.domain.tools import Tool

LAST_LINES = 1500  # characters of output that a worker is shown; the file has the rest


def assignment(task: Task) -> str:
    again = f"\nWork on it was begun before: see `git log` and the notes.\n{_notes(task)}" if _begun(task) else ""
    return (
        f"Your task is {task.id}: {task.brief.title}\n{_facts(task)}{again}{_words(task.words)}\n"
        f"You are in a git worktree of your own, on the branch {task.branch}. Commit your work there, all of it.\n"
        f"{_acceptance(task)}"
        f"When it is done and committed, call {Tool.REPORT_IMPLEMENTATION_COMPLETE} with a summary.\n"
        f"If it is too large for one sitting, call {Tool.DECOMPOSE_TASK} with its parts. "
        f"If you cannot go on, call {Tool.ESCALATE} and say why."
    )


def review(task: Task, words: str) -> str:
    commit = task.check.commit if task.check else "HEAD"
    return (
        f"Review the task {task.id}: {task.brief.title}\n{_facts(task)}\n"
        f"Its author says: {task.summary}\n{_words(words)}"
        f"You are in its worktree, on the branch {task.branch}; what you review is the commit {commit}. "
        "The acceptance commands have passed on it. Read the changes and try them; change nothing: only that very "
        "commit can be merged.\n"
        f"Then call {Tool.REPORT_REVIEW_VERDICT}: approved or denied, with comments that say what to change and why."
    )


def feedback(task: Task, words: str) -> str:
    return (
        f"Your work on {task.id} was reviewed and not accepted yet. Comments:\n\n{words}\n\n"
        f"Address them, commit, and call {Tool.REPORT_IMPLEMENTATION_COMPLETE} again."
    )


def not_accepted(task: Task, check: Check) -> str:
    return (
        f"You reported {task.id} complete, but it was not accepted:\n\n{check.tail[-LAST_LINES:]}\n\n"
        f"Set it right, commit, and call {Tool.REPORT_IMPLEMENTATION_COMPLETE} again."
    )


WHY_NOT = {
    Refusal.CONFLICT: "others have changed the same lines meanwhile. Resolve the conflicts",
    Refusal.ACCEPTANCE: "the acceptance commands fail on the merged result. Make them pass on it",
    Refusal.MOVED: "your branch is no longer at the commit that was approved. Leave on it what is to be merged",
}


def not_merged(task: Task, reason: Refusal, tail: str) -> str:
    return (
        f"{task.id} was approved but could not be merged: {WHY_NOT[reason]}.\n\n{tail[-LAST_LINES:]}\n\n"
        f"Then commit and call {Tool.REPORT_IMPLEMENTATION_COMPLETE} again."
    )


def reminder(task: str, count: int, most: int) -> str:
    return (
        f"Your turn ended without a word on where {task} stands (reminder {count} of {most}). Call "
        f"{Tool.REPORT_IMPLEMENTATION_COMPLETE} if your task is done, {Tool.REPORT_REVIEW_VERDICT} if you were "
        f"reviewing, {Tool.ESCALATE} if you cannot go on, or {Tool.POST_MESSAGE} to say what you wait for."
    )


def commit_message(task: Task) -> str:
    body = f"\n\n{task.summary.strip()}" if task.summary.strip() else ""
    return f"{task.brief.title}{body}\n\nTask: {task.id}"


def _begun(task: Task) -> bool:
    return bool(task.folder)


def _facts(task: Task) -> str:
    lines = [task.brief.description] if task.brief.description else []
    if task.brief.steps:
        lines += ["Steps:", *steps(task)]
    return "".join(f"{line}\n" for line in lines)


def steps(task: Task) -> list[str]:
    """Each with its number and whether it is done."""
    return [
        f"{number}. [{'x' if number in task.steps_done else ' '}] {step}"
        for number, step in enumerate(task.brief.steps, 1)
    ]


def _notes(task: Task) -> str:
    return "".join(f"- {note.by}: {note.text}\n" for note in task.notes)


def _words(words: str) -> str:
    return f"{words}\n" if words else ""


def _acceptance(task: Task) -> str:
    if not task.brief.accept:
        return ""
    commands = "".join(f"    {command}\n" for command in task.brief.accept)
    return f"It is accepted when these succeed, which the runtime will run itself:\n{commands}"
