"""SPEAKS to git: through the user's own git, from an argument list, deaf to whatever git variables surround us."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from remuda.domain.errors import EffectFailed

WITHIN = 120.0  # seconds
LONGEST_EVIDENCE = 2000  # characters of what git said, in an error

# A hook or an agent may run us with these set, and then every command would speak of another repository.
_OURS = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


class GitFailed(EffectFailed):
    """git would not; `said` is what it wrote to stderr."""

    def __init__(self, arguments: tuple[str, ...], returncode: int, said: str) -> None:
        self.returncode = returncode
        self.said = said.strip()
        super().__init__(
            f"git {arguments[0]} failed ({returncode}): {self.said[-LONGEST_EVIDENCE:] or 'it did not say why'}"
        )


def git(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, within: float = WITHIN
) -> bytes:
    """What git wrote to stdout. It blocks: in the loop, call it through `asyncio.to_thread`."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
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
    if done.returncode:
        raise GitFailed(arguments, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


def line(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """The one line that git answers."""
    return git(folder, *arguments, env=env).decode(errors="surrogateescape").rstrip("\n")
