"""Bringing what was merged meanwhile into a task's worktree, for its worker to resolve.

Many agents run in a sandbox that lets them write files but not git's own folder: they can neither rebase nor merge. So
the runtime begins the merge, conflicts marked in the files; the worker edits them and reports, and the commit is the
runtime's again (commit.py). One that may use git can end the merge itself, or drop it and rebase.

It is begun only in a worktree where nothing is uncommitted, and written down first. So what a crash left in the middle
is known to be ours, and is taken back before the next try.
"""

from pathlib import Path

from remuda.git import GitFailed, ask, git, line, names
from remuda.git.commit import TAKING_IN, identity, unfinished
from remuda.git.keeping import dirt
from remuda.git.locks import clear_stale_of
from remuda.git.worktree import Worktree, git_folder

_ENDED = (0, 1, 2)  # done, with conflicts, or not begun because it would overwrite something


def take_in(tree: Worktree, commit: str) -> str:
    """Why it could not be begun; nothing when it has been. Done again it finds it begun. It blocks."""
    folder = git_folder(tree.path)
    begun, merging = folder / TAKING_IN, folder / "MERGE_HEAD"
    if merging.exists():
        same = merging.read_text().strip() == commit
        return "" if same else "another merge is unfinished in the worktree"
    clear_stale_of(folder, tree.path)
    if begun.exists():
        _take_back(tree, begun.read_text())
    if why := "; ".join(filter(None, (unfinished(tree.path), *dirt(tree.path)))):
        return why
    begun.write_text(commit)
    arguments = ("merge", "--no-commit", "--no-ff", "--quiet", commit)
    answer = ask(tree.path, *arguments, env=identity(tree.path), within=600)
    if answer.code not in _ENDED:
        raise GitFailed(arguments, answer.code, answer.said)
    begun.unlink()
    return "" if merging.exists() or _holds(tree, commit) else answer.said.strip()[-300:]


def _take_back(tree: Worktree, commit: str) -> None:
    """Of what a killed git left: nothing but its own was in the worktree when it began."""
    git(tree.path, "reset", "--quiet", "--hard")
    brought = set(names(tree.path, "diff", "--name-only", "-z", "--no-renames", "HEAD", commit))
    for name in names(tree.path, "ls-files", "--others", "-z"):
        if name in brought:
            Path(tree.path, name).unlink()


def _holds(tree: Worktree, commit: str) -> bool:
    return ask(tree.path, "merge-base", "--is-ancestor", commit, line(tree.path, "rev-parse", "HEAD")).code == 0
