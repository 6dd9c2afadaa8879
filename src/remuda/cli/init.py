"""Make a project."""

import shutil
from pathlib import Path

import click

from remuda.cli.say import note, out
from remuda.domain.errors import Invalid, RemudaError, StoreFailed
from remuda.runtime.place import Place, find_place, make_place, repository_of
from remuda.runtime.template import TEMPLATE


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
def init(folder: Path | None) -> None:
    """Make the project in this directory, or the git repository it is in, ready for agents."""
    here = folder or Path.cwd()
    try:
        if folder is None:
            out(f"{find_place(here).root} is a Remuda project already")
            return
    except Invalid:
        pass
    if folder is not None:
        _make_folder(folder)
    place = init_place(folder or repository_of(here) or here)
    out(f"{place.root} is ready; `remuda up -d` starts the runtime")


def init_place(root: Path) -> Place:
    if shutil.which("git") is None:
        raise NoGit("git was not found on PATH; install git and try again: Remuda keeps agents' work in git")
    place = make_place(root)
    try:
        if not place.settings.exists():
            place.settings.write_text(TEMPLATE)
    except OSError as error:
        raise StoreFailed(f"{place.settings} cannot be written: {error.strerror}") from error
    if repository_of(place.root) is None:
        note(f"{place.root} is not in a git repository; `git init` makes it one, and agents' work needs it")
    return place


class NoGit(RemudaError):
    """The machine lacks what we stand on."""


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreFailed(f"{folder} cannot be made: {error.strerror}") from error
