"""For developers of Remuda."""

import click


@click.group()
def dev() -> None:
    """For developers of Remuda."""
