"""What was begun and is not at its end."""

import click

from remuda.cli import look
from remuda.cli.say import json_option


@click.command()
@json_option
def loops(as_json: bool) -> None:
    """List open loops, with who has to see to each: tasks, unmerged work, questions, verdicts, unread mail."""
    look.show("/v1/loops", as_json=as_json)
