"""One agent in full."""

import click

from remuda.cli import look
from remuda.cli.project import agent_path
from remuda.cli.say import agent_argument, json_option


@click.command()
@agent_argument
@json_option
def show(agent: str, as_json: bool) -> None:
    """Show one agent in full: session, turn, queue, tokens and money."""
    look.show(agent_path(agent), as_json=as_json)
