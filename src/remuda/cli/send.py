"""Write to an agent."""

import click

from remuda.cli.project import agent_path, project, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.cli.words import from_stdin, text_of


@click.command(context_settings={"ignore_unknown_options": True})
@agent_argument
@click.argument("text", nargs=-1, required=True)
@json_option
def send(agent: str, text: tuple[str, ...], as_json: bool) -> None:
    """Write a message to an agent; a TEXT of - is read from standard input.

    It is kept before this command ends, and delivered when the agent is ready for it.
    """
    words = from_stdin("the message") if text == ("-",) else text_of("the message", " ".join(text))
    answer = write(project(), agent_path(agent, "messages"), {"text": words})
    if as_json:
        out_json(answer)
        return
    row = answer["agent"]["agent"]
    waiting = f"; {row['queue_count']} waiting" if row["queue_count"] else ""
    out(f"{agent} has it and is {row['status']}{waiting}")
