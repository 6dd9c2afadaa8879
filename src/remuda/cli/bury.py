"""Bury the dead that nobody needs any more."""

import re

import click

from remuda.cli.project import project, write
from remuda.cli.say import json_option, out, out_json
from remuda.domain.errors import Invalid

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@click.command()
@click.option("--older-than", "age", required=True, help="As in 7d, 12h or 30m: how long ago they died.")
@json_option
def bury(age: str, as_json: bool) -> None:
    """Remove what dead agents have left, for those that died so long ago. The log keeps their stories."""
    answer = write(project(), "/v1/bury", {"older_than": seconds_of(age)})
    buried = answer["buried"]
    out_json(answer) if as_json else out(
        f"buried: {', '.join(buried)}" if buried else "nobody has been dead for so long"
    )


def seconds_of(age: str) -> float:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smhdw])", age.strip())
    if found is None:
        raise Invalid(f"{age[:40]!r} is no length of time; say it as in 7d, 12h or 30m")
    return float(found[1]) * UNITS[found[2]]
