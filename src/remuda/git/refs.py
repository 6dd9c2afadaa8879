"""Moving a ref, from where it is thought to be and from nowhere else: Remuda's own, and the branch to merge into."""

from pathlib import Path

from remuda.git import GitFailed, ask
from remuda.git.locks import clear_stale
from remuda.git.repository import NOTHING, Repository, commit_of


def move(repository: Repository, ref: str, new: str, old: str = "", why: str = "remuda") -> bool:
    """Whether it moved: not when it was elsewhere than at `old`."""
    arguments = ("update-ref", "-m", why, ref, new, *((old,) if old else ()))
    answer = ask(repository.root, *arguments)
    if answer.code and "File exists" in answer.said and clear_stale(_lock(repository, ref), repository.root):
        answer = ask(repository.root, *arguments)
    if not answer.code:
        return True
    if old and (commit_of(repository, ref) or NOTHING) != old:
        return False
    raise GitFailed(arguments, answer.code, answer.said)


def _lock(repository: Repository, ref: str) -> Path:
    return repository.common / f"{ref}.lock"
