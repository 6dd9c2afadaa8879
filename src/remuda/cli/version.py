"""Say which version this is."""

import platform

import click

import remuda
from remuda.cli.say import json_option, out, out_json


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Say which version this is."""
    python = platform.python_version()
    out_json({"remuda": remuda.__version__, "python": python}) if as_json else out(f"remuda {remuda.__version__}")
