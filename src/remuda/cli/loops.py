"""What was begun and is not at its end."""

import time

import click

from remuda.cli.call import NotUp, width, write_out
from remuda.cli.project import project, read
from remuda.cli.say import json_option


@click.command()
@json_option
def loops(as_json: bool) -> None:
    """List open loops, with who has to see to each: tasks, unmerged work, questions, verdicts, unread mail."""
    place = project()
    try:
        body = read(place, "/v1/loops", {"format": "" if as_json else "text", "width": width()})
        write_out(body + b"\n" if as_json else body)
        return
    except NotUp:
        pass
    import msgspec  # the long way round, without a runtime

    from remuda.cli.offline import log_file
    from remuda.views.loops import loops_text, open_loops

    with log_file(place) as log:
        state = log.state()
        found = open_loops(state.agents, state.tasks)
        text = msgspec.json.encode({"loops": found}) + b"\n" if as_json else loops_text(found, time.time()).encode()
        write_out(text)
