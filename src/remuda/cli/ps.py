"""List the agents."""

import click

from remuda.cli import look
from remuda.cli.say import json_option


@click.command()
@click.option("-a", "--all", "dead", is_flag=True, help="The dead too.")
@json_option
def ps(dead: bool, as_json: bool) -> None:
    """List the agents."""
    look.show("/v1/agents", {"all": dead}, as_json=as_json)
