"""The commands, by name. Each is imported when it is used."""

import gc
import os
import sys
from importlib import import_module

import click
from click.exceptions import NoArgsIsHelpError

from remuda.cli.call import Broken
from remuda.domain.errors import RemudaError

INTERRUPTED = 130

# name -> (module, what it does); in the order in which people meet them.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Make the project in this directory ready for agents"),
    "up": ("up", "Start the runtime, here or in the background (-d)"),
    "down": ("down", "Stop the runtime; agents go on where they were at the next `up`"),
    "run": ("run", "Turn an idea into reviewed, verified commits, and see it done"),
    "ps": ("ps", "List the agents"),
    "spawn": ("spawn", "Make a new agent"),
    "send": ("send", "Write to an agent"),
    "show": ("show", "Show one agent in full"),
    "logs": ("logs", "Show what an agent says"),
    "pause": ("tell", "Pause an agent; resume brings it back"),
    "resume": ("tell", "Let a paused, stopped or held agent go on"),
    "stop": ("tell", "Stop an agent; resume brings it back"),
    "retire": ("tell", "End an agent for good"),
    "answer": ("answer", "Answer what an agent asks before it uses a tool"),
    "task": ("task", "The list of work: add, list, show, assign, import, export …"),
    "budget": ("budget", "Show, set and grant what agents may spend"),
    "loops": ("loops", "List what is not at its end, and who has to see to it"),
    "trigger": ("trigger", "Stop an agent for a reason, and ask what is to become of it"),
    "verdict": ("verdict", "Reap, restart or let go on an agent that was stopped"),
    "body": ("body", "What the dead have left: show, export, bury"),
    "bury": ("bury", "Remove what the long dead have left"),
    "events": ("events", "Show what happened"),
    "turn": ("turn", "The records of turns: list, show, verify, index, export, recover"),
    "hooks": ("hooks", "Let agents that you start by hand keep the same records"),
    "agents": ("agents", "List the programs that can run an agent, and how to get those that are missing"),
    "gateway": ("gateway", "Tool servers that come on intent and leave after idle turns: serve, add, list, import …"),
    "doctor": ("doctor", "Check that all is well, and repair what is not"),
    "demo": ("demo", "Watch scripted agents at work, and a hard kill in the middle of it"),
    "version": ("version", "Say which version this is"),
    "completion": ("completion", "Print the completion script for a shell"),
    "dev": ("dev", "For developers of Remuda"),
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"remuda.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        gc.freeze()  # see entry.py
        gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def remuda() -> None:
    """Runs coding agents on your repository: lasting agents, disposable sessions, nothing lost.

    Start with `remuda up -d`, then `remuda spawn` and `remuda ps`. Exit codes: 0 done, 1 the work failed, 2 wrong
    usage, 3 refused by the state.
    """


def run(arguments: list[str]) -> int:
    """Run one command; what went wrong is told in one line."""
    try:
        result = remuda.main(arguments or ["--help"], prog_name="remuda", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except (click.ClickException, RemudaError, Broken, OSError) as error:
        sentence, code = explain(error)
        click.echo(f"remuda: {sentence}", err=True)
        return code


def explain(error: Exception) -> tuple[str, int]:
    match error:
        case RemudaError():
            return str(error), error.exit_code
        case click.UsageError():
            where = error.ctx.command_path if error.ctx else "remuda"
            return f"{error.format_message().rstrip('.')}. See `{where} --help`.", error.exit_code
        case click.ClickException():
            return error.format_message(), error.exit_code
        case Broken():
            return "the runtime went away before it had answered; see `remuda doctor`", 1
        case TimeoutError():
            return "the runtime does not answer; see `remuda doctor`", 1
        case OSError():
            return f"{error.filename or 'the system'}: {error.strerror or error}", 1
        case _:
            return str(error), 1
