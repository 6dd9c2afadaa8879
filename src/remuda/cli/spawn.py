"""Make a new agent."""

import click

from remuda.cli.budget import MEASURES, limit_options, limits_of
from remuda.cli.project import project, write
from remuda.cli.say import json_option, out, out_json
from remuda.cli.words import from_file, text_of
from remuda.domain.errors import Invalid


@click.command()
@click.argument("role", default="worker")
@click.option("--name", default="", help="Otherwise the role's next free name, such as worker-3.")
@click.option("--backend", default="", help="Who runs it; otherwise the project's own (remuda.toml).")
@click.option("--parent", default="", help="The agent that is told when this one dies.")
@click.option("--model", default="", help="The backend's name of a model.")
@click.option("--instructions", default="", metavar="TEXT|@FILE", help="What it is told before its first message.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="For the backend; may be repeated.")
@click.option("--hold", is_flag=True, help="Do not start it yet; `remuda resume` does.")
@limit_options
@click.option("-m", "--message", default="", help="Its first message.")
@json_option
def spawn(role: str, options: tuple[str, ...], instructions: str, message: str, as_json: bool, **rest: object) -> None:
    """Make a new agent of a ROLE (worker, unless you say otherwise) and print its name."""
    if instructions.startswith("@"):
        instructions = from_file("the instructions", instructions[1:])
    body = {
        "role": text_of("the role", role),
        "options": dict(_pair(each) for each in options),
        "instructions": text_of("the instructions", instructions),
        "message": text_of("the message", message),
        **{name: text_of(name, value) if isinstance(value, str) else value for name, value in rest.items()},
        **dict.fromkeys(MEASURES),
        **limits_of(rest),
    }
    answer = write(project(), "/v1/agents", body)
    out_json(answer) if as_json else out(answer["agent"]["name"])


def _pair(option: str) -> tuple[str, str]:
    key, equals, value = option.partition("=")
    if not equals or not key:
        raise Invalid(f"--option {option!r} must read KEY=VALUE")
    return text_of("an option", key), text_of("an option", value)
