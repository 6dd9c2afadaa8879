"""Answer what agents ask before they use a tool."""

import json
from typing import Any

import click

from remuda.cli import look
from remuda.cli.call import NotUp
from remuda.cli.project import agent_path, project, read, write
from remuda.cli.say import json_option, out, out_json
from remuda.cli.words import text_of
from remuda.domain.errors import Invalid, Refused
from remuda.runtime.place import Place


@click.command()
@click.argument("question", required=False)
@click.option("--allow/--deny", "allow", default=None, help="What you decide.")
@click.option("--why", default="", help="Told to the agent, and kept in the log.")
@json_option
def answer(question: str | None, allow: bool | None, why: str, as_json: bool) -> None:
    """Answer a question of an agent; without one, list those that wait."""
    place = project()
    if question is None:
        look.show("/v1/questions", as_json=as_json)
        return
    if allow is None:
        raise Invalid("say what you decide: --allow or --deny")
    agent = _who_asked(place, question)
    path = agent_path(agent, "questions", question)
    left = write(place, path, {"allow": allow, "why": text_of("the reason", why)})
    out_json(left) if as_json else out(f"{agent} is told: {'allowed' if allow else 'denied'}")


def _who_asked(place: Place, question: str) -> str:
    try:
        waiting: list[dict[str, Any]] = json.loads(read(place, "/v1/questions"))["questions"]
    except NotUp as error:
        raise Refused(f"no runtime is up for {place.root}; `remuda up -d` starts it") from error
    for each in waiting:
        if each["question"] == question:
            return str(each["agent"])
    raise Refused(f"no question {question!r} waits for an answer", possible=[each["question"] for each in waiting])
