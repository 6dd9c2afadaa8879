"""Show one agent."""

import time

import click

from remuda.cli.call import NotUp, write_out
from remuda.cli.project import agent_path, project, read
from remuda.cli.say import agent_argument, json_option


@click.command()
@agent_argument
@json_option
def show(agent: str, as_json: bool) -> None:
    """Show one agent in full: session, turn, queue, tokens and money."""
    place = project()
    try:
        body = read(place, agent_path(agent), {"format": "" if as_json else "text"})
        write_out(body + b"\n" if as_json else body)
        return
    except NotUp:
        pass
    import msgspec  # the long way round, without a runtime

    from remuda.cli.offline import log_file
    from remuda.domain.draft import find
    from remuda.views.agent import detail, detail_text

    with log_file(place) as log:
        agents = log.state().agents
        shown = detail(find(agents, agent), time.time(), agents)
        write_out(msgspec.json.encode(shown) + b"\n" if as_json else detail_text(shown).encode())
