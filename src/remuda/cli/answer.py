"""Answer what agents ask before they use a tool."""

import json
import time
from typing import Any

import click

from remuda.cli.call import NotUp, write_out
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
        _list(place, as_json)
        return
    if allow is None:
        raise Invalid("say what you decide: --allow or --deny")
    agent = _who_asked(place, question)
    path = agent_path(agent, "questions", question)
    left = write(place, path, {"allow": allow, "why": text_of("the reason", why)})
    out_json(left) if as_json else out(f"{agent} is told: {'allowed' if allow else 'denied'}")


def _list(place: Place, as_json: bool) -> None:
    try:
        body = read(place, "/v1/questions", {"format": "" if as_json else "text"})
        write_out(body + b"\n" if as_json else body)
        return
    except NotUp:
        pass
    import msgspec  # the long way round, without a runtime

    from remuda.cli.offline import log_file
    from remuda.views.questions import open_questions, questions_text

    with log_file(place) as log:
        rows = open_questions(log.state().agents)
        text = (
            msgspec.json.encode({"questions": rows}) + b"\n" if as_json else questions_text(rows, time.time()).encode()
        )
        write_out(text)


def _who_asked(place: Place, question: str) -> str:
    try:
        waiting: list[dict[str, Any]] = json.loads(read(place, "/v1/questions"))["questions"]
    except NotUp as error:
        raise Refused(f"no runtime is up for {place.root}; `remuda up -d` starts it") from error
    for each in waiting:
        if each["question"] == question:
            return str(each["agent"])
    raise Refused(f"no question {question!r} waits for an answer", possible=[each["question"] for each in waiting])
