"""Show what happened."""

import click

from remuda.cli.call import NotUp, write_out
from remuda.cli.project import agent_path, project, read, stream
from remuda.cli.say import json_option, note
from remuda.domain.errors import Refused
from remuda.domain.events import Recorded
from remuda.runtime.place import Place

DATA = b"data: "
MOST = 10_000


@click.command()
@click.argument("agent", required=False, default="")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
@click.option("-n", "--last", type=click.IntRange(0, MOST), default=50, show_default=True, help="Last events.")
@click.option("--after", type=click.IntRange(0), help="All after the event of this number instead.")
@json_option
def events(agent: str, follow: bool, last: int, after: int | None, as_json: bool) -> None:
    """Show what happened, to all agents or to one."""
    place = project()
    if agent:
        agent_path(agent)
    start = {"last": str(last)} if after is None else {"after": str(after), "limit": str(MOST)}
    query: dict[str, object] = {**start, "agent": agent, "follow": follow, "format": "" if as_json else "text"}
    try:
        if follow:
            _follow(place, query, as_json)
        else:
            body = read(place, "/v1/events", query)
            write_out(body + b"\n" if as_json else body)
        return
    except NotUp:
        if follow:
            raise Refused("no runtime is up, so nothing will happen; `remuda up -d` starts it") from None
    _from_log(place, agent, last, after, as_json)


def _follow(place: Place, query: dict[str, object], as_json: bool) -> None:
    for line in stream(place, "/v1/events", query):
        if not as_json:
            write_out(line + b"\n")
        elif line.startswith(DATA):
            write_out(line.removeprefix(DATA) + b"\n")
    note("the runtime has stopped")


def _from_log(place: Place, agent: str, last: int, after: int | None, as_json: bool) -> None:
    import asyncio  # the long way round, without a runtime

    import msgspec

    from remuda.cli.offline import log_file
    from remuda.domain.draft import find
    from remuda.store import select
    from remuda.views.process_events import event_text, process_events

    with log_file(place) as log:
        agents = log.state().agents
        if agent:
            find(agents, agent)

        async def choose() -> tuple[list[Recorded], int]:
            start = await select.last(log.read, log.head()[0], last, agent) if after is None else after
            return await select.page(log.read, start, MOST, agent)

        records, behind = asyncio.run(choose())
        told = [each for record in records for each in process_events(record, lambda name: agents[name].role)]
        if as_json:
            write_out(msgspec.json.encode({"events": told, "next": behind}) + b"\n")
        else:
            write_out("".join(f"{event_text(each)}\n" for each in told).encode())
