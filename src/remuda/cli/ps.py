"""List the agents."""

import time

import click

from remuda.cli.call import NotUp, colour, exchange, roster_target, width, write_out
from remuda.cli.project import checked, project
from remuda.cli.say import json_option


@click.command()
@click.option("-a", "--all", "dead", is_flag=True, help="The dead too.")
@json_option
def ps(dead: bool, as_json: bool) -> None:
    """List the agents."""
    place = project()
    try:
        body = checked(*exchange(str(place.state), "GET", roster_target(dead=dead, as_json=as_json)))
        write_out(body + b"\n" if as_json else body)
        return
    except NotUp:
        pass
    import msgspec  # the long way round, without a runtime: these take longer than the usual answer

    from remuda.cli.offline import log_file
    from remuda.views.roster import chosen, roster, roster_text

    with log_file(place) as log:
        state = log.state()
        agents, now = chosen(state.agents, dead=dead), time.time()
        if as_json:
            answer = {"project": str(place.root), "seq": state.seq, "agents": roster(agents, now)}
            write_out(msgspec.json.encode(answer) + b"\n")
        else:
            write_out(roster_text(agents, now, width=width() or None, colour=colour()).encode())
