"""Run by path: `python -I -S .../scripted [--playbook FILE] [--memory DIR]`, on stdin and stdout."""

import os
import sys
import types


def main() -> None:
    # Importing `remuda.agents.scripted.agent` would run the parents' __init__ too, and they load what the runtime
    # needs. Empty parents in their place keep this process small and quick, and independent of an installation.
    here = os.path.dirname(os.path.abspath(__file__))
    agents = os.path.dirname(here)
    for name, path in (
        ("remuda", os.path.dirname(agents)),
        ("remuda.agents", agents),
        ("remuda.agents.scripted", here),
    ):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package

    from remuda.agents.scripted.agent import serve

    serve(sys.argv[1:])


main()
