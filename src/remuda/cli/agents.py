"""List the programs that can run an agent."""

import asyncio
from collections.abc import Mapping

import click
import msgspec

from remuda.agents.catalog import CATALOG, Row
from remuda.agents.presence import look_closely, versions_kept
from remuda.cli.call import width, write_out
from remuda.cli.project import project
from remuda.cli.say import json_option
from remuda.domain.errors import Invalid
from remuda.runtime.compose import rows
from remuda.runtime.config import load_settings
from remuda.views.backends import backend, backends_text


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """List the programs that can run an agent: which are installed, what each can do, how to get the others."""
    rows = [backend(each) for each in asyncio.run(look_closely(_rows(), versions_kept()))]
    if as_json:
        write_out(msgspec.json.encode({"agents": rows}) + b"\n")
    else:
        write_out(backends_text(rows, width=width() or None).encode())


def _rows() -> Mapping[str, Row]:
    """Those of the project, if we are in one: it may have some of its own."""
    try:
        place = project()
    except Invalid:
        return CATALOG
    return rows(load_settings(place.settings))
