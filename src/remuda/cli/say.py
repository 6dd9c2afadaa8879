"""What commands print: answers to standard output, remarks to standard error."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from remuda.cli.call import write_out

_F = TypeVar("_F", bound=Callable[..., Any])
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def out(text: str) -> None:
    write_out(f"{text}\n".encode("utf-8", "replace"))


def out_json(value: object) -> None:
    out(json.dumps(value, ensure_ascii=False))


def note(text: str) -> None:
    click.echo(f"remuda: {text}", err=True)


def json_option(command: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def agent_argument(command: _F) -> _F:
    return click.argument("agent", shell_complete=names_of("/v1/agents", "agents", "name", all=True))(command)


def names_of(path: str, kind: str, key: str, **query: object) -> Complete:
    """Lets a shell complete with what the runtime lists there."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        from remuda.cli.project import project, read  # only when a shell asks for names

        try:
            listed = json.loads(read(project(), path, query))[kind]
            return [each[key] for each in listed if each[key].startswith(incomplete)]
        except Exception:
            return []  # a shell that completes has no place to show an error

    return complete
