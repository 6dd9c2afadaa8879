"""For developers of Remuda."""

from pathlib import Path

import click

from remuda.cli.late import Late
from remuda.views.diagrams import lifecycle_page


@click.command(cls=Late, late={"model": "dev_model", "spin": "dev_spin"})
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
