"""Where an agent's program is on this machine, and what it is given: variables and files."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from remuda.agents.programs import bundled


def find(program: str, brought_by: Sequence[tuple[str, str]], env: Mapping[str, str]) -> str | None:
    """On PATH, or else in a Python package that brings it along."""
    found = (bundled(package, inside) for package, inside in brought_by)
    return shutil.which(program, path=env.get("PATH")) or next(filter(None, found), None)


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
