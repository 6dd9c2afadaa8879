"""The console script. `remuda ps` and the hooks of agents are answered before anything slow is imported; the rest is
click's."""

import gc
import os
import sys

from remuda.cli.call import Broken, NotUp, exchange, roster_target, write_out

STATE, SETTINGS = ".remuda", "remuda.toml"
PS_FLAGS = {"--all", "-a", "--json"}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["ps"] and PS_FLAGS.issuperset(arguments[1:]) and _ps_at_once(set(arguments[1:])):
        return 0
    if arguments[:1] == ["hook"]:
        from remuda.cli.hook import hook

        return hook(arguments[1:])
    # What is imported stays: to look through it for garbage again and again takes a tenth of every start.
    gc.disable()
    from remuda.cli.group import run  # click alone takes longer than the whole answer above

    return run(arguments)


def _ps_at_once(flags: set[str]) -> bool:
    """Show the agents as the runtime renders them. Whatever is not as usual is left to the long way."""
    as_json = "--json" in flags
    try:
        status, body = exchange(
            _state_folder(), "GET", roster_target(dead=bool(flags & {"--all", "-a"}), as_json=as_json)
        )
        if status != 200:
            return False
        write_out(body + b"\n" if as_json else body)
    except BrokenPipeError:
        return True
    except (OSError, NotUp, Broken, ValueError):
        return False
    return True


def _state_folder() -> str:
    """Of the nearest project; the same rule as `find_place`."""
    folder = os.environ.get("REMUDA_PROJECT") or os.getcwd()
    while not os.path.isdir(f"{folder}/{STATE}") and not os.path.isfile(f"{folder}/{SETTINGS}"):
        if folder in ("/", ""):
            raise FileNotFoundError
        folder = os.path.dirname(folder)
    return f"{folder}/{STATE}"


if __name__ == "__main__":
    sys.exit(main())
