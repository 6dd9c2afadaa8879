"""How a project wants its records kept: the few settings that a hook must know."""

import os

from remuda.records.files import read
from remuda.records.identity import tail
from remuda.records.repository import Repository

OFF, BESIDE, FILES, BRANCH = "off", "beside", "files", "branch"
WAYS = (OFF, BESIDE, FILES, BRANCH)
FOLDER = "ai/agentic-pipeline"
DIRECTORY = "turn-{number}"


class BadKeeping(Exception):
    """A setting that cannot be kept to; the message names it."""


class Keeping:
    """`records`: off; beside (in git, under tags, the work tree untouched); files (also in the work tree); branch (also
    committed on the branch that is checked out). `folder` holds the ledger, `directory` names a turn in it."""

    def __init__(self, records: str = BESIDE, folder: str = FOLDER, directory: str = DIRECTORY) -> None:
        if records not in WAYS:
            raise BadKeeping(f"turns.records must be one of {', '.join(WAYS)}, not {records!r}")
        parts = folder.split("/")
        if not folder or any(part in ("", ".", "..", ".git") for part in parts) or not folder.isprintable():
            raise BadKeeping(f"turns.folder must be a path inside the repository, not {folder!r}")
        if "{number}" not in directory or not set(directory) <= _NAME or directory.strip("." + "/") != directory:
            raise BadKeeping(f"turns.directory must hold {{number}} and be one plain name, not {directory!r}")
        self.records, self.folder, self.directory = records, folder, directory

    def path(self, number: int, uuid: str) -> str:
        """Of a turn's directory, from the top of the work tree."""
        name = self.directory.replace("{number}", str(number)).replace("{id}", tail(uuid))
        return f"{self.folder}/turns/{name}"


_NAME = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.{}")


def keeping_of(repository: Repository) -> Keeping:
    """From `remuda.toml` at the top of the work tree, or of the repository's first one. The runtime checks the file key
    by key; here a hook wants to know three of them."""
    data = read(f"{repository.top}/remuda.toml") or read(f"{os.path.dirname(repository.common)}/remuda.toml")
    if not data or b"[turns]" not in data:
        return Keeping()
    import tomllib  # costs as much as half of a start of Python

    try:
        turns = tomllib.loads(data.decode()).get("turns", {})
    except ValueError as error:
        raise BadKeeping(f"remuda.toml cannot be read: {error}") from error
    known = {name: turns[name] for name in ("records", "folder", "directory") if isinstance(turns.get(name), str)}
    return Keeping(**known)
