"""Show what an agent says."""

import json
from typing import Any

import click

from remuda.cli.call import NotUp, write_out
from remuda.cli.project import agent_path, project, read, stream
from remuda.cli.say import agent_argument, json_option, note, out, out_json
from remuda.domain.errors import Refused
from remuda.views.text import neutral


@click.command()
@agent_argument
@click.option("-f", "--follow", is_flag=True, help="Go on with the lines that come.")
@click.option("-n", "--lines", type=click.IntRange(0, 1_000_000), default=100, show_default=True, help="Last lines.")
@json_option
def logs(agent: str, follow: bool, lines: int, as_json: bool) -> None:
    """Show what an agent says, and what it was told."""
    place = project()
    query = {"lines": lines, "follow": follow}
    try:
        if not follow:
            _print(json.loads(read(place, agent_path(agent, "logs"), query)), as_json)
            return
        for line in stream(place, agent_path(agent, "logs"), query):
            write_out(line + b"\n") if as_json else out(neutral(json.loads(line)["line"]))
        note("the runtime has stopped; `remuda logs` reads from the transcripts")
        return
    except NotUp:
        if follow:
            raise Refused("no runtime is up, so no lines will come; `remuda up -d` starts it") from None
    from remuda.cli.offline import log_file  # the long way round, without a runtime
    from remuda.domain.draft import find
    from remuda.store.transcript import last_lines

    with log_file(place) as log:
        find(log.state().agents, agent)
        _print({"agent": agent, "lines": last_lines(place.transcripts, agent, lines)}, as_json)


def _print(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out_json(answer)
    elif answer["lines"]:
        out("\n".join(neutral(line) for line in answer["lines"]))
