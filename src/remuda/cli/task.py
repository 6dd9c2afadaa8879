"""The list of work, and who has what of it."""

import json
from typing import Any

import click

from remuda.cli import look
from remuda.cli.project import project, read, write
from remuda.cli.say import agent_argument, json_option, names_of, out, out_json
from remuda.cli.task_files import export, import_
from remuda.cli.words import from_file, text_of
from remuda.domain.errors import Invalid, UnknownTask
from remuda.domain.text import NAME


def task_path(name: str, *rest: str) -> str:
    if not NAME.fullmatch(name):  # it cannot exist, and might not survive as part of an address
        raise UnknownTask(f"there is no task {name[:60]!r}; see `remuda task list --all`")
    return "/".join(("/v1/tasks", name, *rest))


task_argument = click.argument("task", shell_complete=names_of("/v1/tasks", "tasks", "id"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def task() -> None:
    """The list of work: tasks, what they wait for, who has them and how far they are."""


# --- looking ---


@task.command("list")
@click.option("-a", "--all", "finished", is_flag=True, help="The finished too.")
@json_option
def list_(finished: bool, as_json: bool) -> None:
    """List the tasks that are not finished."""
    look.show("/v1/tasks", {"all": finished}, as_json=as_json)


@task.command()
@json_option
def ready(as_json: bool) -> None:
    """List what somebody could begin now, the most urgent first."""
    look.show("/v1/tasks", {"ready": True}, as_json=as_json)


@task.command()
@task_argument
@json_option
def show(task: str, as_json: bool) -> None:
    """Show one task in full: what is asked, who has it, checks, verdicts, notes."""
    look.show(task_path(task), as_json=as_json)


# --- writing ---


def _brief_options(command: Any) -> Any:
    for option in reversed(
        (
            click.option("-d", "--description", metavar="TEXT|@FILE", help="What is to be done, in full."),
            click.option("--step", "steps", multiple=True, help="In order; may be repeated."),
            click.option(
                "--need", "needs", multiple=True, metavar="TASK", help="Must be done before; may be repeated."
            ),
            click.option("--epic", metavar="TASK", help="That it is a part of."),
            click.option("-p", "--priority", type=click.IntRange(0, 4), help="0 is the most urgent; 2 unless you say."),
            click.option("--label", "labels", multiple=True, help="For the routing; may be repeated."),
            click.option("--path", "paths", multiple=True, help="A file it is about; may be repeated."),
            click.option("--accept", multiple=True, metavar="COMMAND", help="Must succeed before it is done."),
            click.option("--target", metavar="BRANCH", help="Merged into this one; otherwise as the settings say."),
        )
    ):
        command = option(command)
    return command


def brief_of(given: dict[str, Any]) -> dict[str, Any]:
    """What was said, without what was not."""
    brief = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    text = brief.get("description")
    if isinstance(text, str):
        brief["description"] = from_file("the description", text[1:]) if text.startswith("@") else text
    for name, value in brief.items():
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str):
                text_of(name, each)
    return {name: value for name, value in brief.items() if value not in (None, [])}


@task.command()
@click.argument("title")
@click.option("--id", "task_id", default="", help="Otherwise the next free one, such as t7.")
@click.option("--kind", type=click.Choice(["task", "epic"]), default="task")
@_brief_options
@json_option
def add(title: str, task_id: str, kind: str, as_json: bool, **given: Any) -> None:
    """Add a task and print its id."""
    new = {"id": task_id, "kind": kind, "brief": {"title": text_of("the title", title), **brief_of(given)}}
    answer = write(project(), "/v1/tasks", {"tasks": [new]})
    out_json(answer) if as_json else out(answer["added"][0])


@task.command()
@task_argument
@click.option("--title")
@_brief_options
@json_option
def edit(task: str, as_json: bool, **given: Any) -> None:
    """Change what is asked for. A list that you give replaces the old one; an empty string empties it."""
    changes = brief_of(given)
    for name, value in changes.items():
        if value == [""]:
            changes[name] = []
    if not changes:
        raise Invalid("say what to change; see `remuda task edit --help`")
    _told(task, "edit", changes, as_json)


@task.command()
@task_argument
@click.argument("needs", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="It needs them no longer.")
@json_option
def dep(task: str, needs: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Say what a task needs: TASK waits until NEEDS are done."""
    place = project()
    before: list[str] = json.loads(read(place, task_path(task)))["needs"]
    unknown = [each for each in needs if remove and each not in before]
    if unknown:
        raise Invalid(f"{task} does not need {', '.join(unknown)}")
    after = [each for each in before if each not in needs] if remove else [*before, *needs]
    _told(task, "edit", {"needs": list(dict.fromkeys(after))}, as_json)


@task.command()
@task_argument
@click.argument("text")
@json_option
def note(task: str, text: str, as_json: bool) -> None:
    """Note something on a task, for whoever takes it up."""
    _told(task, "note", {"text": text_of("the note", text)}, as_json)


@task.command()
@task_argument
@click.argument("number", type=int)
@json_option
def step(task: str, number: int, as_json: bool) -> None:
    """Mark a step as done."""
    _told(task, "step", {"step": number}, as_json)


# --- directing ---


def _told(task: str, verb: str, body: dict[str, Any], as_json: bool) -> None:
    answer = write(project(), task_path(task, verb), body)
    shown = answer["task"]
    why = f" ({shown['why']})" if shown["why"] else ""
    out_json(answer) if as_json else out(f"{task} is {shown['status']}{why}")


def _directing(verb: str, summary: str, *, needs_why: bool = False) -> None:
    @task.command(verb, help=summary)
    @task_argument
    @click.option("--why", default="", required=needs_why, help="Kept in the log and shown with its status.")
    @json_option
    def told(task: str, why: str, as_json: bool) -> None:
        _told(task, verb, {"text": text_of("the reason", why)}, as_json)


_directing("close", "Call a task done that no agent has.")
_directing("cancel", "Give a task up, and with an epic its parts. Its branch stays.")
_directing("block", "Let nobody go on with a task until it is reopened.", needs_why=True)
_directing("reopen", "Open a task again that is blocked or in review.")
_directing("release", "Take a task from its holder; somebody else may go on with it.")


def _giving(verb: str, summary: str) -> None:
    @task.command(verb, help=summary)
    @task_argument
    @agent_argument
    @click.option("-m", "--message", default="", help="Added to what the agent is told.")
    @json_option
    def told(task: str, agent: str, message: str, as_json: bool) -> None:
        _told(task, verb, {"agent": agent, "text": text_of("the message", message)}, as_json)


_giving("assign", "Give a task to a worker.")
_giving("review", "Have a worker review a task that is not its own.")


@task.command()
@task_argument
@click.option("-m", "--message", default="", help="Of the commit; otherwise made from the task.")
@click.option("--unreviewed", is_flag=True, help="Though nobody has reviewed it.")
@json_option
def approve(task: str, message: str, unreviewed: bool, as_json: bool) -> None:
    """Have a task merged that was reviewed and approved."""
    _told(task, "approve", {"text": text_of("the message", message), "unreviewed": unreviewed}, as_json)


@task.command()
@task_argument
@click.argument("comments", default="")
@json_option
def feedback(task: str, comments: str, as_json: bool) -> None:
    """Send a task back to its author; without COMMENTS, with those of the review."""
    _told(task, "feedback", {"text": text_of("the comments", comments)}, as_json)


# --- said by agents of their own task ---


def _said(verb: str, text: str, as_json: bool, **more: object) -> None:
    answer = write(project(), f"/v1/own-task/{verb}", {"text": text_of("the text", text), **more})
    shown = answer["task"]
    out_json(answer) if as_json else out(f"{shown['id']} is {shown['status']}")


@task.command()
@click.argument("summary")
@json_option
def complete(summary: str, as_json: bool) -> None:
    """For workers: your task is done and committed; have it checked."""
    _said("complete", summary, as_json)


@task.command()
@click.option("--approve/--deny", "approved", default=None, help="What you decide.")
@click.argument("comments", default="")
@json_option
def verdict(approved: bool | None, comments: str, as_json: bool) -> None:
    """For reviewers: what you think of the task that you review."""
    if approved is None:
        raise Invalid("say what you decide: --approve or --deny")
    _said("verdict", comments, as_json, approved=approved)


@task.command()
@click.argument("why")
@json_option
def escalate(why: str, as_json: bool) -> None:
    """For workers: you cannot go on; your task is blocked until somebody looks at it."""
    _said("escalate", why, as_json)


task.add_command(export)
task.add_command(import_)
