"""Tell an agent to pause, to go on, to stop or to end."""

import click

from remuda.cli.project import agent_path, project, write
from remuda.cli.say import agent_argument, json_option, out, out_json
from remuda.cli.words import text_of


def _tell(verb: str, agent: str, why: str, as_json: bool) -> None:
    answer = write(project(), agent_path(agent, verb), {"why": text_of("the reason", why)})
    out_json(answer) if as_json else out(f"{agent} is {answer['agent']['status']}")


_why = click.option("--why", default="", help="Kept in the log and shown with its status.")


@click.command()
@agent_argument
@_why
@json_option
def pause(agent: str, why: str, as_json: bool) -> None:
    """Pause an agent. A turn that is under way is cut; its message is delivered again after `resume`."""
    _tell("pause", agent, why, as_json)


@click.command()
@agent_argument
@json_option
def resume(agent: str, as_json: bool) -> None:
    """Let a paused, stopped or held agent go on."""
    _tell("resume", agent, "", as_json)


@click.command()
@agent_argument
@_why
@json_option
def stop(agent: str, why: str, as_json: bool) -> None:
    """Stop an agent and its process; `resume` brings it back."""
    _tell("stop", agent, why, as_json)


@click.command()
@agent_argument
@_why
@json_option
def retire(agent: str, why: str, as_json: bool) -> None:
    """End an agent for good. Its log and transcripts stay."""
    _tell("retire", agent, why, as_json)
