"""Show what the gateways of a file of settings keep out of the context."""

from pathlib import Path
from typing import Any

import click
import msgspec

from remuda.cli.gateway import config_option, configured
from remuda.cli.say import json_option, out, out_json
from remuda.gateway.books import Books, table, to_json


@click.command()
@config_option
@json_option
def stats(given: Path | None, as_json: bool) -> None:
    """Show the turn clock, the servers and the tokens saved, of each gateway that runs and of the last that ended."""
    config = configured(given)
    found = _read(config.state / "stats")
    if as_json:
        out_json({"path": str(config.path), "gateways": {name: _plain(books) for name, books in found.items()}})
    elif not found:
        out(f"no gateway of {config.path} has run yet; `remuda gateway serve` is what an MCP client starts")
    else:
        out("\n\n".join(f"{_title(name)}\n{table(books)}" for name, books in found.items()))


def _read(folder: Path) -> dict[str, Books]:
    found: dict[str, Books] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found[path.stem] = msgspec.json.decode(path.read_bytes(), type=Books)
        except (OSError, msgspec.MsgspecError):
            continue  # it ended meanwhile, or was never written whole: the others are not less true for it
    return found


def _plain(books: Books) -> dict[str, Any]:
    return dict(to_json(books))


def _title(name: str) -> str:
    if name == "last":
        return "the last that ended"
    return f"process {name}" if name.isdigit() else f"session {name}"
