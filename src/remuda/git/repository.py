"""The user's repository, as far as Remuda has to know it. Nothing here writes."""

import threading
from dataclasses import dataclass
from pathlib import Path

from remuda.domain.errors import Refused
from remuda.git import ask, git, line, text

# git makes its folder of a worktree file by file, and stops at one that another git is just making. So whoever adds,
# removes or lists worktrees holds this; a checkout takes longer, and does not.
REGISTER = threading.RLock()

NOTHING = "0" * 40  # as git writes a ref that is not there
OLDEST = (2, 38)  # the first whose `merge-tree` merges without a checkout


@dataclass(frozen=True, slots=True)
class Repository:
    root: Path  # the project's folder, in the repository or at its top
    common: Path  # the git folder, which all worktrees share
    prefix: str  # where the project lies below the top, with a slash at its end; empty at the top
    bare: bool = False
    shallow: bool = False

    @property
    def state(self) -> Path:
        return self.root / ".remuda"


@dataclass(frozen=True, slots=True)
class Entry:
    """One worktree that git knows of: the user's checkout, one of the user's own, or one of ours."""

    path: Path
    head: str = ""
    branch: str = ""  # short; empty when detached
    locked: str | None = None
    bare: bool = False


def open_repository(root: Path) -> Repository:
    """Refused where there is none, or none in which work could begin."""
    root = root.resolve()
    found = ask(root, "rev-parse", "--is-bare-repository", "--is-shallow-repository", "--git-common-dir")
    if found.code:
        what = found.said.strip().splitlines()[-1:] or ["git would not say why"]
        raise Refused(f"{root} is in no git repository that can be used ({what[0]}); `git init` makes one")
    bare, shallow, common = text(found.out).splitlines()[:3]
    prefix = "" if bare == "true" else line(root, "rev-parse", "--show-prefix")
    check_version(line(root, "version"))
    return Repository(root, (root / common).resolve(), prefix, bare == "true", shallow == "true")


def check_version(said: str) -> None:
    numbers = said.removeprefix("git version ").split(".")
    if tuple(int(each) for each in numbers[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Refused(f"{said} is too old: Remuda merges without a checkout, which needs git {oldest} or newer")


def head(repository: Repository) -> str:
    """The commit that the user is at."""
    found = commit_of(repository, "HEAD")
    if not found:
        raise Refused(
            "the repository has no commit yet, so there is nothing to begin from; make the first one: "
            '`git commit --allow-empty -m "Begin"`'
        )
    return found


def commit_of(repository: Repository, name: str) -> str:
    """The commit that a name stands for, or nothing."""
    found = ask(repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return "" if found.code else text(found.out).strip()


def branch(repository: Repository) -> str:
    """The branch that the user is on; nothing when HEAD is detached."""
    found = ask(repository.root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return "" if found.code else text(found.out).strip()


def is_ancestor(repository: Repository, older: str, newer: str) -> bool:
    asked = ask(repository.root, "merge-base", "--is-ancestor", older, newer)
    if asked.code > 1:
        raise Refused(f"git cannot tell whether {older} is in {newer}: {asked.said.strip()}")
    return asked.code == 0


def worktrees(repository: Repository) -> list[Entry]:
    with REGISTER:
        said = text(git(repository.root, "worktree", "list", "--porcelain", "-z"))
    return [_entry(block.split("\0")) for block in said.split("\0\0") if block.strip("\0")]


def _entry(lines: list[str]) -> Entry:
    facts = {name: value for name, _, value in (each.partition(" ") for each in lines if each)}
    return Entry(
        Path(facts["worktree"]),
        facts.get("HEAD", ""),
        facts.get("branch", "").removeprefix("refs/heads/"),
        facts.get("locked"),
        "bare" in facts,
    )
