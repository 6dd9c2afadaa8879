"""What the dead have left."""

import asyncio
import io
import tarfile
from pathlib import Path

import click
import msgspec

from remuda.cli.call import NotUp, write_out
from remuda.cli.project import agent_path, project, read, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.domain.errors import Invalid
from remuda.runtime.place import Place
from remuda.views.body import Body, body_text


@click.group()
def body() -> None:
    """What the dead have left: show, export, bury."""


@body.command()
@agent_argument
@json_option
def show(agent: str, as_json: bool) -> None:
    """Why an agent died, what it cost, what it did, and how to go on."""
    shown = _body(project(), agent)
    write_out(msgspec.json.encode(shown) + b"\n" if as_json else body_text(shown).encode())


@body.command()
@agent_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(agent: str, file: Path) -> None:
    """Write a body to a .tar.gz file: its account, its diff, its transcripts."""
    place = project()
    shown = _body(place, agent)
    parts = {
        "body.json": msgspec.json.format(msgspec.json.encode(shown)),
        "body.txt": body_text(shown).encode(),
        "diff.patch": shown.diff.encode(),
    }
    try:
        with tarfile.open(file, "x:gz") as archive:
            for name, data in parts.items():
                entry = tarfile.TarInfo(f"{agent}/{name}")
                entry.size, entry.mtime = len(data), int(shown.ended_at)
                archive.addfile(entry, io.BytesIO(data))
            folder = place.transcripts / agent
            for path in sorted(folder.glob("*")):
                archive.add(path, f"{agent}/transcripts/{path.name}", recursive=False)
    except FileExistsError as error:
        raise Invalid(f"{file} is there already; name another file") from error
    out(f"{file} has what {agent} left")


@body.command()
@agent_argument
@json_option
def bury(agent: str, as_json: bool) -> None:
    """Remove what a dead agent has left. The log keeps its story; its name stays taken."""
    answer = write(project(), agent_path(agent, "bury"))
    out_json(answer) if as_json else out(f"{agent} is buried")


def _body(place: Place, agent: str) -> Body:
    try:
        return msgspec.json.decode(read(place, agent_path(agent, "body")), type=Body)
    except NotUp:
        pass
    from remuda.cli.offline import log_file  # the long way round, without a runtime
    from remuda.runtime.bodies import body_of

    with log_file(place) as log:
        return asyncio.run(body_of(place, log.read, log.state(), agent))
