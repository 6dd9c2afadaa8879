"""Check that all is well."""

import click


@click.command()
def doctor() -> None:
    """Check that all is well, and repair what is not."""
