"""Say what is to become of an agent that was stopped by a trigger."""

import click
import msgspec

from remuda.cli.budget import limit_options, limits_of
from remuda.cli.call import write_out
from remuda.cli.look import look
from remuda.cli.project import agent_path, project, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.cli.words import duration, from_file, text_of
from remuda.domain.errors import Invalid, Refused
from remuda.views.agent import Detail, verdict_text


@click.command()
@agent_argument
@click.argument("course", required=False, type=click.Choice(["reap", "restart", "continue"]))
@click.option("--why", default="", help="Kept in the log and in its body.")
@click.option("--for", "length", metavar="N[s|m|h|d]", help="How long a continue holds.  [default: 1h]")
@click.option(
    "--strategy",
    type=click.Choice(["restart-one", "restart-all", "revert"]),
    default="restart-one",
    show_default=True,
    help="Whom a restart is about.",
)
@click.option("--backend", default="", help="What runs the successor.")
@click.option("--model", default="", help="Its model.")
@click.option("--instructions", default="", metavar="TEXT|@FILE", help="Its instructions.")
@limit_options
@click.option("-m", "--message", default="", help="The first that it reads.")
@json_option
def verdict(agent: str, course: str | None, as_json: bool, **more: str) -> None:
    """Reap it, restart it with other parameters, or let it continue. The first answer counts.

    Without a course: show what is asked about it, and what follows without an answer.
    """
    if course is None:
        _show(agent, as_json)
        return
    if more["length"] and course != "continue":
        raise Invalid(f"--for says how long a continue holds; {course} is for good")
    words = more["instructions"]
    instructions = from_file("the instructions", words[1:]) if words.startswith("@") else words
    body: dict[str, object] = {
        "course": course,
        "instructions": text_of("the instructions", instructions),
        "words": text_of("the message", more["message"]),
        **{name: text_of(f"--{name}", more[name]) for name in ("why", "strategy", "backend", "model")},
        **limits_of(more),
    }
    if more["length"]:
        body["seconds"] = duration(more["length"])
    answer = write(project(), agent_path(agent, "verdict"), body)
    then = ""
    if course == "restart":  # or it was given up, and why tells
        then = f"; {answer['successor']} takes over" if answer["successor"] else f": {answer['agent']['why']}"
    out_json(answer) if as_json else out(f"{agent} is {answer['agent']['status']}{then}")


def _show(agent: str, as_json: bool) -> None:
    shown = msgspec.json.decode(look(project(), agent_path(agent), {}), type=Detail)
    if shown.sought is None:
        page = "show" if shown.agent.alive else "body show"
        raise Refused(f"no verdict on {agent} is awaited; it is {shown.agent.status}: see `remuda {page} {agent}`")
    write_out(msgspec.json.encode(shown) + b"\n" if as_json else verdict_text(shown).encode())
