"""`remuda dev model`: the scripted model as a process of its own, with what each agent program needs to find it."""

import asyncio
import json
import shlex
import signal

import click

from remuda.scripted_model import ScriptedModel, Usage
from remuda.scripted_model.clients import CLIENTS, Client, pointed

EXAMPLE = '[[model: [{"say": "I look. "}, {"shell": "ls"}, {"say": "Done."}]]]'


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address; no other is taken.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes any free one.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON instead of text for people.")
@click.option("--input", "given", type=int, default=1200, show_default=True, help="Input tokens of each call.")
@click.option("--cached", type=int, default=100, show_default=True, help="How many of them come from the cache.")
@click.option("--output", type=int, default=34, show_default=True, help="Output tokens of each call.")
def model(host: str, port: int, as_json: bool, given: int, cached: int, output: int) -> None:
    """Play the model for real agent programs, scripted by the prompt, until interrupted."""
    try:
        scripted = ScriptedModel(host=host, port=port, usage=Usage(given, cached, output))
        asyncio.run(_serve(scripted, as_json))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"port {port} cannot be taken: {error.strerror}") from None


async def _serve(scripted: ScriptedModel, as_json: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with scripted:
        click.echo(_in_json(scripted.url) if as_json else _in_words(scripted.url))
        await stop.wait()


def _in_json(url: str) -> str:
    clients = [pointed(each, url) for each in CLIENTS]
    told = {each.name: {"api": each.api, "argv": each.argv, "env": each.env, "files": each.files} for each in clients}
    return json.dumps({"url": url, "calls": f"{url}/calls", "example": EXAMPLE, "clients": told})


def _in_words(url: str) -> str:
    lines = [f"The scripted model listens on {url}", f"What it was asked: {url}/calls", f"A prompt: {EXAMPLE}", ""]
    for each in CLIENTS:
        lines += [*_client_lines(pointed(each, url)), ""]
    return "\n".join((*lines, "Ctrl-C ends it."))


def _client_lines(client: Client) -> list[str]:
    files = [f"  ~/{path}: {text}" for path, text in client.files.items()]
    env = [f"  {name}={shlex.quote(value)} \\" for name, value in client.env.items()]
    return [f"{client.name}:", *files, *env, f"  {shlex.join(client.argv)}"]
