"""Completion for shells."""

import click
from click.shell_completion import get_completion_class

from remuda.cli.say import out

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    In ~/.bashrc: eval "$(remuda completion bash)", and so for zsh. For fish: remuda completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None
    out(kind(context.find_root().command, {}, "remuda", "_REMUDA_COMPLETE").source())
