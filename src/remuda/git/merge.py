"""Where merged work goes, and how it gets there exactly once.

Nothing is merged in anybody's checkout. The result is made of objects alone (rebase.py), tried out in a worktree that
nobody works in, and then one ref moves, from the value that the result was made for and from no other. Before it moves,
a ref of our own says which result belongs to which commit of the task: if the crash comes after the move and before
the report, the next try finds the result in the branch and reports the same.

A branch that somebody has checked out is not moved: their files would be those of yesterday, and their next commit
would take back what was merged. Its work then waits on `remuda/merged`, and the user is told what to type.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from remuda.domain.errors import Refused
from remuda.git import GitFailed, git, line
from remuda.git.locks import clear_stale_of
from remuda.git.refs import move
from remuda.git.repository import NOTHING, REGISTER, Repository, branch, commit_of, head, is_ancestor, worktrees
from remuda.git.worktree import FOLDER, MERGED, PREFIX, git_folder, is_registered

Mode = Literal["local", "branch-only", "pull-request-text"]

INTEGRATION = PREFIX + MERGED
RESULTS = "refs/remuda/merges"
TRIAL = ".merge"  # the worktree in which results are tried out; no task can have this name


@dataclass(frozen=True, slots=True)
class Destination:
    ref: str
    tip: str  # what the next result is made for
    exists: bool  # whether the ref is there yet
    held: str = ""  # why it cannot be moved now
    next_step: str = ""  # how the user takes what is merged

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/")


def destination(repository: Repository, mode: Mode, target: str = "") -> Destination:
    """The branch that moves, and its tip. Without a target it is the branch that the user is on."""
    at = head(repository)
    target = target or branch(repository)
    wanted = commit_of(repository, f"refs/heads/{target}") if target else at
    if not wanted:
        raise Refused(f"there is no branch {target} to merge into; correct merge.target in remuda.toml")
    if mode != "local":
        return _integration(repository, wanted, target)
    if not target:
        raise Refused("HEAD is detached, so there is no branch to merge into; set merge.target in remuda.toml")
    where = checked_out(repository, target)
    if where is None:
        return Destination(f"refs/heads/{target}", wanted, True)
    to = _integration(repository, wanted, target)
    return replace(to, next_step=f"{target} is checked out at {where} and was not moved; {to.next_step}")


def _integration(repository: Repository, wanted: str, target: str) -> Destination:
    ref = f"refs/heads/{INTEGRATION}"
    tip = commit_of(repository, ref)
    where = checked_out(repository, INTEGRATION)
    return Destination(
        ref,
        wanted if not tip or is_ancestor(repository, tip, wanted) else tip,  # the user may have taken all of it
        bool(tip),
        f"{INTEGRATION} is checked out at {where}, and to move it would change files under whoever is there; "
        "leave it there (`git switch -`), and the merge goes on"
        if where
        else "",
        f"`git merge {INTEGRATION}` on {target or 'your branch'} takes it",
    )


def checked_out(repository: Repository, name: str) -> Path | None:
    """Where somebody has a branch checked out."""
    return next((each.path for each in worktrees(repository) if each.branch == name and not each.bare), None)


def earlier(repository: Repository, task: str, commit: str, to: Destination) -> str:
    """The result of an earlier try that got through; or nothing."""
    result = commit_of(repository, f"{RESULTS}/{task}/{commit}")
    return result if result and is_ancestor(repository, result, to.tip) else ""


def intend(repository: Repository, task: str, commit: str, result: str) -> None:
    move(repository, f"{RESULTS}/{task}/{commit}", result)


def land(repository: Repository, to: Destination, result: str, why: str) -> bool:
    """Move the branch to the result, if it still is where the result was made for."""
    before = commit_of(repository, to.ref)
    if before not in (to.tip, "") and not is_ancestor(repository, before, to.tip):
        return False
    if to.exists != bool(before):
        return False
    return move(repository, to.ref, result, before or NOTHING, f"remuda: {why}")


# --- trying it out ---


def stand(repository: Repository, commit: str) -> Path:
    """The worktree for trying out, with the files of that commit and no others but ignored ones: what the set-up put
    there stays. Nobody works in it, so whatever is wrong with it is mended by making it anew."""
    path = repository.state / FOLDER / TRIAL
    if is_registered(repository, path) and path.is_dir():
        try:
            clear_stale_of(git_folder(path), path)
            git(path, "checkout", "--quiet", "--force", "--detach", commit, within=1800)
            git(path, "clean", "-ffdq")
            return path
        except (GitFailed, Refused):
            pass
    drop_stand(repository)
    with REGISTER:
        git(repository.root, "worktree", "add", "--quiet", "--no-checkout", "--detach", str(path), commit)
    git(path, "reset", "--quiet", "--hard", within=1800)
    return path


def drop_stand(repository: Repository) -> None:
    path = repository.state / FOLDER / TRIAL
    if is_registered(repository, path):
        with REGISTER:
            git(repository.root, "worktree", "remove", "--force", "--force", str(path))
    shutil.rmtree(path, ignore_errors=True)


# --- telling of it ---


def pull_request_text(repository: Repository, target: str, commit: str, accepted: Sequence[str]) -> str:
    """What to write into a pull request of all that waits: what it does, which files, and how it was tried out."""
    base = commit_of(repository, f"refs/heads/{target}") if target else head(repository)
    subjects = line(repository.root, "log", "--reverse", "--format=## %s%n%n%b", f"{base}..{commit}")
    files = line(repository.root, "diff", "--stat=100", "--no-color", f"{base}...{commit}")
    tried = "\n".join(f"- `{each}`" for each in accepted) or "- nothing: there are no acceptance commands"
    return f"{subjects.strip()}\n\n## Files\n\n```\n{files}\n```\n\n## Passed on the merged result\n\n{tried}\n"
