"""SPEAKS to git: through the user's own git, from an argument list, deaf to whatever git variables surround us.

Nothing here runs a hook of the user's, asks their file monitor or tidies their repository: those are theirs, for what
they do themselves. And nothing here takes git's words apart where it has a form for programs: names come with `-z`.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from remuda.domain.errors import EffectFailed

WITHIN = 120.0  # seconds
LONGEST_EVIDENCE = 2000  # characters of what git said, in an error

# A hook or an agent may run us with these set, and then every command would speak of another repository.
_OURS = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_STILL = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "checkout.workers": "0",  # as many as there are cores
}
_OPTIONS = tuple(part for name, value in _STILL.items() for part in ("-c", f"{name}={value}"))


class GitFailed(EffectFailed):
    """git would not; `said` is what it wrote to stderr."""

    def __init__(self, arguments: tuple[str, ...], returncode: int, said: str) -> None:
        self.returncode = returncode
        self.said = said.strip()
        super().__init__(
            f"git {arguments[0]} failed ({returncode}): {self.said[-LONGEST_EVIDENCE:] or 'it did not say why'}"
        )


class Answer(NamedTuple):
    """For questions whose answer is the exit code."""

    code: int
    out: bytes
    said: str


def ask(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    within: float = WITHIN,
    still: bool = True,
) -> Answer:
    """What git answered, whatever its exit code. It blocks: in the loop, call it through `asyncio.to_thread`. Not
    `still` is only for asking how the user has set what we switch off."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *(_OPTIONS if still else ()), *arguments],
            input=stdin,
            capture_output=True,
            env={**surroundings, **_OURS, **(env or {})},
            timeout=within,
            check=False,
        )
    except FileNotFoundError as error:
        raise EffectFailed("git was not found on PATH; install git") from error
    except subprocess.TimeoutExpired as error:
        raise EffectFailed(f"git {arguments[0]} took more than {within:g} s and was ended") from error
    return Answer(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def git(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, within: float = WITHIN
) -> bytes:
    """What git wrote to stdout; GitFailed when it would not. It blocks, like `ask`."""
    answer = ask(folder, *arguments, stdin=stdin, env=env, within=within)
    if answer.code:
        raise GitFailed(arguments, answer.code, answer.said)
    return answer.out


def hooks_folder(folder: Path) -> Path:
    """Where the user's hooks are, which everything else here is deaf to."""
    theirs = ask(folder, "rev-parse", "--git-path", "hooks", still=False)
    if theirs.code:
        raise GitFailed(("rev-parse",), theirs.code, theirs.said)
    return folder / text(theirs.out).rstrip("\n")


def line(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """The one line that git answers."""
    return text(git(folder, *arguments, env=env)).rstrip("\n")


def names(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """What git lists with `-z`: file names may hold anything else."""
    return [name for name in text(git(folder, *arguments, env=env)).split("\0") if name]


def text(said: bytes) -> str:
    """File names are bytes; those that are no UTF-8 come back as they were when they are given to the system again."""
    return said.decode(errors="surrogateescape")
