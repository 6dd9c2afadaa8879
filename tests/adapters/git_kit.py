"""Real repositories in all the states a user may leave theirs in, and a fingerprint of all that is the user's."""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

HOOKS = (
    "post-checkout",
    "pre-commit",
    "commit-msg",
    "post-commit",
    "post-merge",
    "reference-transaction",
    "pre-rebase",
)


OURS = ("refs/heads/remuda/", "refs/remuda/", "refs/turns/", "refs/tags/turn/", "refs/notes/")  # not the user's


def sh(folder: Path, *argv: str, **env: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, env={**kept, **env})
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name.replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def commit(folder: Path, subject: str, **files: str) -> str:
    """Files are named with `_` for the dot and `__` for the slash."""
    write(folder, **files)
    sh(folder, "git", "add", "--all")
    sh(folder, "git", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "-m", subject)
    return sh(folder, "git", "rev-parse", "HEAD")


def make_repository(folder: Path) -> Path:
    """A repository with one commit on `main`, and a folder of Remuda's that it ignores."""
    folder.mkdir(parents=True, exist_ok=True)
    sh(folder, "git", "init", "--quiet", "--initial-branch=main")
    sh(folder, "git", "config", "user.name", "Una User")
    sh(folder, "git", "config", "user.email", "una@example.org")
    (folder / ".git" / "info" / "exclude").write_text(".remuda/\n")
    commit(folder, "Begin", a_txt="one\ntwo\nthree\n", b_txt="b\n", src__c_txt="c\n")
    (folder / ".remuda").mkdir()
    return folder


def make_dirty(root: Path, *, hooks: Iterable[str] = HOOKS) -> Path:
    """As a user in the middle of things: staged, changed, untracked, ignored and stashed work, a branch, hooks."""
    sh(root, "git", "branch", "feature")
    write(root, a_txt="stashed\n")
    sh(root, "git", "stash")
    write(root, b_txt="staged\n", new_txt="new\n")
    sh(root, "git", "add", "b.txt")
    write(root, src__c_txt="changed\n", _gitignore="*.log\n", noise_log="noise")
    for name in hooks:
        hook = root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> '{root}/hooks-ran'\n")
        hook.chmod(0o755)
    sh(root, "git", "config", "branch.autoSetupMerge", "always")
    sh(root, "git", "status")
    return root


def fingerprint(root: Path) -> dict[str, str]:
    """Every byte that is the user's: files, index, settings, hooks, HEAD and its log, stash, branches but ours."""
    git_folder = root / ".git"
    found = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).parts
        if inside[0] == ".git" or inside[:2] == (".remuda", "worktrees"):
            continue
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(root))] = _hash(path)
    for name in (
        "index",
        "config",
        "HEAD",
        "packed-refs",
        "info/exclude",
        "refs/stash",
        "logs/HEAD",
        "logs/refs/stash",
    ):
        if (git_folder / name).exists():
            found[f".git/{name}"] = _hash(git_folder / name)
    found |= {f"hook {path.name}": _hash(path) for path in sorted((git_folder / "hooks").iterdir())}
    refs = sh(root, "git", "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    found["refs"] = "\n".join(each for each in refs if not each.startswith(OURS))
    return found


def users(root: Path) -> dict[str, str]:
    """The fingerprint without what Remuda keeps in its own folder."""
    return {name: value for name, value in fingerprint(root).items() if not name.startswith(".remuda/")}


def fsck(root: Path) -> None:
    sh(root, "git", "fsck", "--strict", "--no-dangling")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
