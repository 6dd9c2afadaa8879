"""Where an agent's program is on this machine, and what it is given: variables and files."""

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path


def find(program: str, brought_by: Sequence[tuple[str, str]], env: Mapping[str, str]) -> str | None:
    """The user's own, on the PATH that the agent will see, or else one that a Python package brings along."""
    found = (_inside(package, path) for package, path in brought_by)
    return shutil.which(program, path=env.get("PATH")) or next(filter(None, found), None)


def _inside(package: str, path: str) -> str | None:
    spec = find_spec(package)  # finds a top-level package without running any of its code
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if os.access(program := Path(folder) / path, os.X_OK):
            return str(program)
    return None


def passed(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that may pass to the agent. Everything else the user has in the environment stays here."""
    return {name: value for name, value in environ.items() if _is_one_of(names, name)}


def without(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not _is_one_of(names, name)}


def _is_one_of(names: Sequence[str], name: str) -> bool:
    """A name that ends in * stands for all that begin so."""
    return any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in names)


def furnish(home: Path, files: Mapping[str, str]) -> None:
    """Write the files that an agent wants in its home; what is there already stays."""
    for inside, text in files.items():
        path = home / inside
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
