"""Where an agent's program is: on PATH, or inside the Python package that brings it along."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    package: str  # an importable package that carries the program ...
    inside: str  # ... at this path
    install: str  # what to type to get it


def find(program: Program, env: Mapping[str, str]) -> str:
    """The program's path. The user's own, on the PATH that the agent will see, goes before a bundled copy."""
    on_path = shutil.which(program.name, path=env.get("PATH", os.environ.get("PATH")))
    found = on_path or bundled(program.package, program.inside)
    if found is None:
        raise AgentFault(
            f"{program.name} is not installed: it is neither on PATH nor in the Python package {program.package}; "
            f"`{program.install}` installs it",
            Failure.NOT_INSTALLED,
        )
    return found


def bundled(package: str, inside: str) -> str | None:
    spec = find_spec(package)  # finds a top-level package without running any of its code
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / inside
        if os.access(path, os.X_OK):
            return str(path)
    return None
