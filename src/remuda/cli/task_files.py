"""Tasks in files: ours as JSON or Markdown, a checklist, the issues of beads."""

import json
from pathlib import Path
from typing import Any

import click

from remuda.cli.call import write_out
from remuda.cli.look import look
from remuda.cli.project import project, read, write
from remuda.cli.say import json_option, note, out, out_json
from remuda.cli.words import from_file, from_stdin
from remuda.domain.errors import Invalid
from remuda.views.task_files import NewTasks, parse, to_markdown


@click.command("export")
@click.option("--format", "form", type=click.Choice(["json", "markdown"]), default="json")
@click.option("-a", "--all", "finished", is_flag=True, help="The finished too.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Otherwise standard output.")
def export(form: str, finished: bool, output: Path | None) -> None:
    """Write the tasks to a file that `import` reads."""
    tasks = _all_tasks(finished)
    text = (
        to_markdown(tasks) if form == "markdown" else json.dumps({"tasks": tasks}, ensure_ascii=False, indent=2) + "\n"
    )
    if output is None:
        write_out(text.encode())
    else:
        output.write_text(text)
        note(f"{len(tasks)} tasks are in {output}")


def _all_tasks(finished: bool) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(look(project(), "/v1/tasks", {"all": finished, "full": True}))["tasks"]
    return tasks


@click.command("import")
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "beads"]),
    help="Otherwise by the file's name: .md is a checklist, .jsonl is of beads, anything else is ours.",
)
@click.option("--in-order", is_flag=True, help="Each waits for the one before it (a checklist only).")
@click.option("--accept", multiple=True, metavar="COMMAND", help="Added to every task; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Say what would be added, and add nothing.")
@json_option
def import_(file: str, form: str | None, in_order: bool, accept: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Add the tasks in FILE (- is standard input): all of them or none. Those whose id is there already are left."""
    text = from_stdin("the tasks") if file == "-" else from_file("the tasks", file)
    new = parse(text, form or form_of(file), in_order=in_order, accept=accept)
    _add(new, dry_run, as_json)


def form_of(file: str) -> str:
    return {".md": "markdown", ".markdown": "markdown", ".jsonl": "beads"}.get(Path(file).suffix.lower(), "json")


def _add(new: NewTasks, dry_run: bool, as_json: bool) -> None:
    for remark in new.remarks:
        note(remark)
    place = project()
    known = {each["id"] for each in json.loads(read(place, "/v1/tasks", {"all": True}))["tasks"]} if not dry_run else {}
    tasks = [each for each in new.tasks if not each["id"] or each["id"] not in known]
    if len(tasks) < len(new.tasks):
        note(f"{len(new.tasks) - len(tasks)} are there already and are left as they are")
    if not tasks:
        raise Invalid("there is no task to add in that file")
    if dry_run:
        out_json({"tasks": tasks}) if as_json else out("\n".join(each["brief"]["title"] for each in tasks))
        return
    answer = write(place, "/v1/tasks", {"tasks": tasks})
    out_json(answer) if as_json else out("\n".join(answer["added"]))
