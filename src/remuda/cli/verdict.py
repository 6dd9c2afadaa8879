"""Say what is to become of an agent that was stopped by a trigger."""

import click

from remuda.cli.project import agent_path, project, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.cli.words import text_of


@click.command()
@agent_argument
@click.argument("course", type=click.Choice(["reap", "restart", "continue"]))
@click.option("--why", default="", help="Kept in the log and in its body.")
@click.option("--for", "seconds", type=float, default=3600.0, show_default=True, help="Seconds that a continue holds.")
@click.option(
    "--strategy",
    type=click.Choice(["restart-one", "restart-all", "revert"]),
    default="restart-one",
    show_default=True,
    help="Whom a restart is about.",
)
@click.option("--backend", default="", help="What runs the successor.")
@click.option("--model", default="", help="Its model.")
@click.option("--instructions", default="", help="Its instructions.")
@click.option("--tokens", type=int, help="Its budget.")
@click.option("-m", "--message", default="", help="The first that it reads.")
@json_option
def verdict(agent: str, course: str, as_json: bool, **more: object) -> None:
    """Reap it, restart it with other parameters, or let it continue. The first answer counts."""
    words = {name: text_of(f"--{name}", str(more[name])) for name in ("why", "instructions", "message")}
    body = {
        "course": course,
        "why": words["why"],
        "instructions": words["instructions"],
        "words": words["message"],
        **{name: more[name] for name in ("seconds", "strategy", "backend", "model", "tokens")},
    }
    answer = write(project(), agent_path(agent, "verdict"), body)
    out_json(answer) if as_json else out(f"{agent} is {answer['agent']['status']}")
