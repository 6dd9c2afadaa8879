"""Groups of commands of which some are imported when they are used, because each brings much with it."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class Late(click.Group):
    def __init__(self, *arguments: Any, late: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._late = late  # name -> module

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._late])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._late:
            command: click.Command = getattr(import_module(f"remuda.cli.{self._late[cmd_name]}"), cmd_name)
            return command
        return super().get_command(ctx, cmd_name)
