"""Which repository a folder is in, read off the files as git lays them out: to ask git takes longer than to look."""

import os

from remuda.records.files import read

LONGEST_LINK = 4  # symbolic refs in a row


class NoRepository(Exception):
    """There is nothing here to keep records in; the message says why."""


class Repository:
    """A work tree and its two git folders: its own, and the one that all work trees of the repository share."""

    def __init__(self, top: str, git_dir: str, common: str) -> None:
        self.top, self.git_dir, self.common = top, git_dir, common

    @property
    def shared(self) -> str:
        """Our folder for the whole repository: the journal, the numbers."""
        return f"{self.common}/remuda"

    @property
    def own(self) -> str:
        """Our folder for this work tree: the private index."""
        return f"{self.git_dir}/remuda"


def find_repository(folder: str) -> Repository:
    start = here = os.path.realpath(folder)
    while True:
        dot = f"{here}/.git"
        if os.path.isfile(f"{dot}/HEAD"):  # git, too, passes over a folder of that name that is no repository
            return _checked(here, dot)
        if os.path.isfile(dot):
            return _checked(here, _linked(dot))
        if os.path.isfile(f"{here}/HEAD") and os.path.isdir(f"{here}/objects") and os.path.isdir(f"{here}/refs"):
            raise NoRepository(f"{here} is a bare repository; turns are recorded in a work tree of it")
        if here == "/":
            raise NoRepository(f"{start} is not in a git repository; `git init` makes one")
        here = os.path.dirname(here)


def _linked(dot: str) -> str:
    text = os.fsdecode(read(dot) or b"").strip()
    if not text.startswith("gitdir: "):
        raise NoRepository(f"{dot} does not say where the repository is; `git status` tells more")
    return os.path.normpath(os.path.join(os.path.dirname(dot), text[8:]))


def _checked(top: str, git_dir: str) -> Repository:
    if not os.path.isfile(f"{git_dir}/HEAD"):
        raise NoRepository(f"{git_dir} is not a git folder (any more); `git status` in {top} tells more")
    common = read(f"{git_dir}/commondir")
    if common is None:
        return Repository(top, git_dir, git_dir)
    return Repository(top, git_dir, os.path.normpath(os.path.join(git_dir, os.fsdecode(common).strip())))


def head(repository: Repository) -> tuple[str, str]:
    """The branch, empty where HEAD is detached, and the commit, empty where there is none yet."""
    text = _ref_text(f"{repository.git_dir}/HEAD")
    if not text.startswith("ref: "):
        return "", text
    name = text[5:]
    branch = name.removeprefix("refs/heads/")
    return branch, _resolve(repository, name)


def ref(repository: Repository, name: str) -> str:
    """What a ref of the whole repository points at, or nothing."""
    return _resolve(repository, name)


def _resolve(repository: Repository, name: str) -> str:
    for _ in range(LONGEST_LINK):
        text = _ref_text(f"{repository.common}/{name}")
        if not text:
            return _packed(repository, name)
        if not text.startswith("ref: "):
            return text
        name = text[5:]
    return ""


def _ref_text(path: str) -> str:
    try:
        return os.fsdecode(read(path) or b"").strip()
    except IsADirectoryError:
        return ""


def _packed(repository: Repository, name: str) -> str:
    packed = read(f"{repository.common}/packed-refs") or b""
    wanted = b" " + os.fsencode(name) + b"\n"
    end = packed.find(wanted)
    start = packed.rfind(b"\n", 0, end) + 1 if end > 0 else 0
    return packed[start:end].decode("ascii", "replace") if end > 0 else ""
