"""Bury the dead that nobody needs any more."""

import click

from remuda.cli.project import project, write
from remuda.cli.say import json_option, out, out_json
from remuda.cli.words import duration


@click.command()
@click.option("--older-than", "age", required=True, help="As in 7d, 12h or 30m: how long ago they died.")
@json_option
def bury(age: str, as_json: bool) -> None:
    """Remove what dead agents have left, for those that died so long ago. The log keeps their stories."""
    answer = write(project(), "/v1/bury", {"older_than": duration(age)})
    buried = answer["buried"]
    out_json(answer) if as_json else out(
        f"buried: {', '.join(buried)}" if buried else "nobody has been dead for so long"
    )
