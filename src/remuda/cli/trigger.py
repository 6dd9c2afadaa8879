"""Triggers, by hand."""

import click

from remuda.cli.project import agent_path, project, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.cli.words import text_of


@click.group()
def trigger() -> None:
    """Stop an agent for a reason, as the watches do: fire."""


@trigger.command()
@agent_argument
@click.option(
    "--trigger",
    "which",
    type=click.Choice(["budget", "spin", "stall", "changeset", "gang"]),
    default="changeset",
    show_default=True,
    help="What is wrong; gang stops all that it spawned as well.",
)
@click.option("--why", required=True, help="The evidence, for whoever is to decide.")
@json_option
def fire(agent: str, which: str, why: str, as_json: bool) -> None:
    """Stop an agent, and ask whoever is responsible for it what is to become of it. For drills too."""
    answer = write(
        project(), agent_path(agent, "trigger"), {"trigger": which, "evidence": text_of("the evidence", why)}
    )
    sought = answer["sought"]
    next_step = (
        f"{sought['judge']} is asked: `remuda verdict {agent}`" if sought else f"`remuda resume {agent}` ends it"
    )
    out_json(answer) if as_json else out(f"{agent} is {answer['agent']['status']}, and {next_step}")
