"""The gateway's commands. What speaks to a server is imported when it is used: the others only read and write files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from remuda.cli.call import width, write_out
from remuda.cli.late import Late
from remuda.cli.say import json_option, note, out, out_json
from remuda.domain.errors import Invalid, Refused
from remuda.gateway.approvals import Approvals, Kept, shown_change
from remuda.gateway.config import Configured, find_config, load_config, users_config
from remuda.gateway.foreign import SECRET, Place
from remuda.gateway.imports import PROGRAMS, Source, import_all, program_of, sources
from remuda.gateway.references import refers
from remuda.gateway.writing import add_servers, section
from remuda.runtime.tool_servers import ServerSettings
from remuda.views.table import Column, table

COLUMNS = (
    Column("SERVER"),
    Column("KIND"),
    Column("TOOLS", right=True),
    Column("TOKENS", right=True),
    Column("STATE", elastic=True),
    Column("ABOUT", elastic=True, optional=True),
)

_F = TypeVar("_F", bound=Callable[..., Any])


@click.command(cls=Late, late={"serve": "gateway_serve", "probe": "gateway_probe", "stats": "gateway_stats"})
def gateway() -> None:
    """Tool servers that come on intent and leave after idle turns.

    Servers stand in the project's remuda.toml or a gateway.toml; elsewhere in a gateway.toml of your own.
    """


def config_option(command: _F) -> _F:
    option = click.option("--config", "given", type=click.Path(path_type=Path), help="The file of settings to use.")
    return option(command)


def configured(given: Path | None) -> Configured:
    if given is not None and not given.is_file():
        raise Invalid(f"there is no file {given}")
    return load_config(find_config(Path.cwd(), given))


def nothing_in(config: Configured) -> str:
    return f"no tool servers in {config.path}; `remuda gateway add` adds one, `remuda gateway import` those of others"


def known(config: Configured, name: str) -> ServerSettings:
    if name in config.faults:
        raise Refused(f"{name}: {config.faults[name]}")
    if name not in config.servers:
        raise Refused(f"there is no server {name!r} in {config.path}", possible=sorted(config.servers))
    return config.servers[name]


# --- add ---


class _Adding(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            said = f"there is no option {error.option_name}; the command of a server and its options stand after --"
            raise Invalid(f"{said}: `remuda gateway add NAME -- COMMAND…`") from error


@gateway.command(cls=_Adding)
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", help="The address of a server that runs elsewhere, instead of a command.")
@click.option("--sse", is_flag=True, help="With --url: it speaks the older transport.")
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="A variable; ${env:NAME} refers to your own.")
@click.option(
    "--header", multiple=True, metavar="NAME=VALUE", help="With --url: a header, with references as in --env."
)
@click.option("--keyword", "-k", multiple=True, help="A word by which an intent finds it.")
@click.option("--about", default="", help="What it is for, in a sentence.")
@click.option("--user", is_flag=True, help="In your own gateway.toml rather than the project's settings.")
@config_option
@json_option
def add(name: str, command: Sequence[str], user: bool, given: Path | None, as_json: bool, **fields: Any) -> None:
    """Add a tool server: remuda gateway add git -- uvx mcp-server-git

    All that stands after -- is its command.
    """
    path = users_config() if user else find_config(Path.cwd(), given)
    server = ServerSettings(
        command=tuple(command),
        url=fields["url"],
        transport="sse" if fields["sse"] else None,
        env=_pairs(fields["env"]),
        headers=_pairs(fields["header"]),
        keywords=tuple(fields["keyword"]),
        description=fields["about"],
    )
    if not server.command and not server.url:
        raise Invalid(f"say how it is started: `remuda gateway add {name} -- COMMAND…`, or where it is: --url URL")
    add_servers(path, {name: server})
    plain = [key for key, value in {**server.env, **server.headers}.items() if SECRET.search(key) and not refers(value)]
    if as_json:
        out_json({"added": name, "path": str(path), "plain": plain})
    else:
        for key in plain:
            note(f"{key} stands in {path} as you typed it; a secret is better referred to, as ${{env:NAME}}")
        out(f"{name} stands in {path}; `remuda gateway probe {name}` tries it")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not equals or not name:  # not shown: it may be a secret
            raise Invalid("a variable or header is written NAME=VALUE")
    return {name: value for name, _, value in pairs}


# --- list, validate ---


@gateway.command("list")
@config_option
@json_option
def list_(given: Path | None, as_json: bool) -> None:
    """List the servers, with the tools and tokens of those that were started before."""
    config = configured(given)
    rows = [_row(config, name) for name in sorted({*config.servers, *config.faults})]
    if as_json:
        out_json({"path": str(config.path), "servers": rows})
    elif not rows:
        out(nothing_in(config))
    else:
        cells = [[str(row[key] if row[key] is not None else "") for key in _SHOWN] for row in rows]
        write_out(table(COLUMNS, cells, width=width() or None).encode())


_SHOWN = ("name", "kind", "tools", "tokens", "state", "about")


def _row(config: Configured, name: str) -> dict[str, Any]:
    server = config.servers.get(name)
    kept, state = _kept(config, name)
    if server is None:
        state = config.faults[name]
    elif not server.enabled:
        state = "off"
    return {
        "name": name,
        "kind": server.kind if server else "",
        "tools": len(kept.tools) if kept else None,
        "tokens": kept.tokens if kept else None,
        "state": state,
        "about": server.description if server else "",
    }


def _kept(config: Configured, name: str) -> tuple[Kept | None, str]:
    approvals = Approvals(config.state)
    try:
        if approvals.offered(name) is not None:
            return approvals.kept(name), f"changed: see `remuda gateway approve {name} --show`"
        kept = approvals.kept(name)
    except Refused as error:
        return None, error.message
    return kept, "ready" if kept else "not started yet"


@gateway.command()
@config_option
@json_option
def validate(given: Path | None, as_json: bool) -> int:
    """Check the settings, and that every secret they refer to is there. Nothing is started."""
    config = configured(given)
    faults = dict(config.faults)
    for name in (name for name, server in config.servers.items() if server.enabled):
        try:
            config.resolve(name)
        except Invalid as error:
            faults[name] = error.message
    if as_json:
        out_json({"path": str(config.path), "servers": sorted(config.servers), "faults": faults})
    else:
        for name, why in sorted(faults.items()):
            out(f"{name}: {why}")
        good, every = len(set(config.servers) - set(faults)), len({*config.servers, *config.faults})
        out(f"{good} of {every} servers in {config.path} are well" if every else nothing_in(config))
    return 2 if faults else 0


# --- import ---


@gateway.command("import")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--from", "program", type=click.Choice(list(PROGRAMS)), help="Whose settings they are.")
@click.option("--only", multiple=True, metavar="NAME", help="Take this server only; may be given more than once.")
@click.option("--dry-run", is_flag=True, help="Show what would be added, and add nothing.")
@click.option("--user", is_flag=True, help="Into your own gateway.toml rather than the project's settings.")
@config_option
@json_option
def import_(file: Path | None, program: str | None, given: Path | None, as_json: bool, **options: Any) -> None:
    """Take over the servers of Claude, Codex, Gemini, Cursor or VS Code.

    Without a file, those of all of them that are found in this project and in your home. Secrets are not copied.
    """
    path = users_config() if options["user"] else find_config(Path.cwd(), given)
    place = Place(Path.cwd(), Path.home(), path.parent, os.environ)
    found = import_all(_sources(file, program), place, load_config(path).servers, options["only"])
    taken, notes = found.servers, found.notes
    if not options["dry_run"] and taken:
        add_servers(path, taken)
    if as_json:
        out_json({"path": str(path), "added": sorted(taken), "notes": notes, "dry_run": options["dry_run"]})
        return
    for each in notes:
        note(each)
    if options["dry_run"]:
        out("\n".join(section(name, server) for name, server in taken.items()).rstrip())
    else:
        out(f"{len(taken)} servers were added to {path}" + (f": {', '.join(taken)}" if taken else ""))
        if taken:
            out("`remuda gateway validate` says what they still need, `remuda gateway probe` tries them")


def _sources(file: Path | None, program: str | None) -> list[Source]:
    if file is not None:
        if not file.is_file():
            raise Invalid(f"there is no file {file}")
        return [Source(program or program_of(file), file)]
    found = sources(Path.cwd(), Path.home(), program or "")
    if not found:
        raise Refused(f"no settings of {program or ' or '.join(PROGRAMS)} were found here or in your home; name a file")
    return found


# --- approve ---


@gateway.command()
@click.argument("name")
@click.option("--show", is_flag=True, help="Show what has changed, and approve nothing.")
@config_option
@json_option
def approve(name: str, show: bool, given: Path | None, as_json: bool) -> None:
    """Take the tools of a server that has changed them since they were last approved."""
    config = configured(given)
    known(config, name)
    approvals = Approvals(config.state)
    offered = approvals.offered(name)
    if show and offered is not None:
        before = approvals.kept(name)
        old = {str(tool.get("name")): tool for tool in before.tools} if before else {}
        changed = [tool for tool in offered.tools if old.get(str(tool.get("name"))) != tool]
        were = [old.get(str(tool.get("name"))) for tool in changed]
        if as_json:
            out_json({"server": name, "tools": changed, "were": were})
        else:
            out("\n".join(line for each in zip(changed, were, strict=True) for line in shown_change(*each)))
            out(f"`remuda gateway approve {name}` takes them as they are here")
        return
    difference = approvals.approve(name)
    if as_json:
        out_json({"approved": name, **difference._asdict()})
    else:
        out(f"the tools of {name} are approved as they are now ({difference.in_words()})")
