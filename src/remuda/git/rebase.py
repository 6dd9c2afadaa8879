"""A branch brought on top of another without a checkout: only objects are written, so a crash leaves nothing to mend.

Each commit is merged with what is there so far, as if that had grown from the commit's own parent. git has a command
for it from 2.44 on; before, a commit that stands in for "what is there so far" with the wanted parent does the same.

The new commits keep author, committer and both dates of the old, byte for byte. So the same rebase gives the same
commits, today and after a crash. A branch with merges in it goes on top as one commit: to bring its commits over one by
one would throw away how its conflicts were resolved.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from remuda.domain.errors import Refused
from remuda.git import GitFailed, ask, git, line, text
from remuda.git.repository import Repository, is_ancestor

# What the branch that it is merged into looks like afterwards: the task's own commits on top of it, one commit for the
# task, or one that also leads to the task's own.
History = Literal["rebase", "squash", "merge"]

LONGEST_HUNKS = 6000  # characters of conflicting lines, for the worker who resolves them
_MARKED = re.compile(r"^<{7} .*?^>{7} .*?$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Brought:
    commit: str
    new: int  # commits that were not there before


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The evidence, for whoever resolves it."""

    commit: str  # the one that does not go on top
    subject: str
    files: tuple[str, ...]
    said: str  # git's words for each file
    hunks: str  # the lines in question, with both sides


def bring(repository: Repository, source: str, onto: str, history: History, message: str) -> Brought | Conflicted:
    """`source` on top of `onto`. Neither is moved. The message is for a commit that holds it all. It blocks."""
    if is_ancestor(repository, source, onto):
        return Brought(onto, 0)
    commits = _commits(repository, source, onto)
    if history == "rebase" and all(len(parents) == 1 for _, parents in commits):
        if is_ancestor(repository, onto, source):
            return Brought(source, len(commits))
        return _rebase(repository, commits, onto)
    merged = _merge_trees(repository, onto, source, named=source)
    if isinstance(merged, Conflicted):
        return merged
    rest = b"".join(each + b"\n" for each in _people(repository, source)) + f"\n{message.strip()}\n".encode()
    parents = [onto, source] if history == "merge" else [onto]
    return Brought(_write(repository, merged, parents, rest), 1)


def _rebase(repository: Repository, commits: Sequence[tuple[str, list[str]]], onto: str) -> Brought | Conflicted:
    tip, new = onto, 0
    for commit, (parent,) in commits:
        picked = _pick(repository, commit, parent, tip)
        if isinstance(picked, Conflicted):
            return picked
        new += picked != tip
        tip = picked
    return Brought(tip, new)


def _commits(repository: Repository, source: str, onto: str) -> list[tuple[str, list[str]]]:
    """Those to bring over with their parents, the oldest first."""
    listed = line(repository.root, "rev-list", "--reverse", "--topo-order", "--parents", source, f"^{onto}")
    return [(each[0], each[1:]) for each in map(str.split, listed.splitlines())]


def _pick(repository: Repository, commit: str, parent: str, tip: str) -> str | Conflicted:
    stand_in = _write(
        repository, _tree(repository, tip), [parent], b"author x <x> 0 +0000\ncommitter x <x> 0 +0000\n\n"
    )
    merged = _merge_trees(repository, stand_in, commit, named=commit)
    if isinstance(merged, Conflicted):
        return merged
    if merged == _tree(repository, tip):
        return tip  # what it does has been done meanwhile
    return _write(repository, merged, [tip], _rest_of(repository, commit))


def _merge_trees(repository: Repository, ours: str, theirs: str, *, named: str) -> str | Conflicted:
    """The tree of both."""
    arguments = ("merge-tree", "--write-tree", "--name-only", "--messages", "-z", ours, theirs)
    answer = ask(repository.root, *arguments)
    if answer.code not in (0, 1):
        if "unrelated histories" in answer.said:
            raise Refused(
                f"{named} shares no history with the branch it is to be merged into; begin the work anew from there"
            )
        raise GitFailed(arguments, answer.code, answer.said)
    tree, _, rest = text(answer.out).partition("\0")
    if answer.code == 0:
        return tree
    listed, _, said = rest.partition("\0\0")
    files = tuple(dict.fromkeys(name for name in listed.split("\0") if name))
    subject = line(repository.root, "show", "--no-patch", "--format=%s", named)
    hunks = _hunks(repository, tree, files).replace(ours, "merged before").replace(theirs, "this task")
    return Conflicted(named, subject, files, _words(said), hunks)


def _words(said: str) -> str:
    """git writes for each: how many paths, the paths, what kind, and a sentence."""
    fields, sentences = iter(said.split("\0")), []
    for count in fields:
        if not count.isdigit():
            break
        *_, kind, sentence = (next(fields, "") for _ in range(int(count) + 2))
        if kind.startswith("CONFLICT"):
            sentences.append(sentence.strip())
    return "\n".join(sentences)


def _hunks(repository: Repository, tree: str, files: tuple[str, ...]) -> str:
    return "\n".join(_shortened(repository, tree, files))[:LONGEST_HUNKS]


def _shortened(repository: Repository, tree: str, files: tuple[str, ...]) -> Iterator[str]:
    for name in files[:20]:
        found = ask(repository.root, "cat-file", "blob", f"{tree}:{name}")
        marked = _MARKED.findall(found.out.decode(errors="replace")) if not found.code else []
        yield from (f"{name}:\n{each}" for each in marked)


# --- commits, as git stores them ---


def _tree(repository: Repository, commit: str) -> str:
    return line(repository.root, "rev-parse", f"{commit}^{{tree}}")


def _rest_of(repository: Repository, commit: str) -> bytes:
    """All of a commit but its tree, its parents and its signature, which holds of no other."""
    head, _, message = git(repository.root, "cat-file", "commit", commit).partition(b"\n\n")
    kept, dropping = [], False
    for each in head.split(b"\n"):
        if not each.startswith(b" "):
            dropping = each.split(b" ")[0] in (b"tree", b"parent", b"gpgsig", b"gpgsig-sha256", b"mergetag")
        if not dropping:
            kept.append(each)
    return b"\n".join(kept) + b"\n\n" + message


def _people(repository: Repository, commit: str) -> list[bytes]:
    head = _rest_of(repository, commit).partition(b"\n\n")[0]
    return [each for each in head.split(b"\n") if each.startswith((b"author ", b"committer "))]


def _write(repository: Repository, tree: str, parents: list[str], rest: bytes) -> str:
    head = "".join(f"{name} {value}\n" for name, value in [("tree", tree), *(("parent", each) for each in parents)])
    said = git(repository.root, "hash-object", "-t", "commit", "-w", "--stdin", stdin=head.encode() + rest)
    return text(said).strip()
