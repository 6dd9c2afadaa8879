"""For developers of Remuda."""

from importlib import import_module
from pathlib import Path

import click

from remuda.views.diagrams import lifecycle_page

LATE = {"model": "dev_model", "spin": "dev_spin"}  # each brings much with it, and is imported when it is used


class Dev(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *LATE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATE:
            command: click.Command = getattr(import_module(f"remuda.cli.{LATE[cmd_name]}"), cmd_name)
            return command
        return super().get_command(ctx, cmd_name)


@click.command(cls=Dev)
def dev() -> None:
    """For developers of Remuda."""


@dev.command()
@click.option("--write", type=click.Path(path_type=Path), help="Write to this file instead of the terminal.")
def diagrams(write: Path | None) -> None:
    """Draw the lifecycle from its tables."""
    if write is None:
        click.echo(lifecycle_page(), nl=False)
    else:
        write.write_text(lifecycle_page())
