"""What is checked before a turn counts as complete. The runtime runs it; the model is told, and cannot tick it off."""

import contextlib
import fnmatch
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from remuda.git import git
from remuda.git.tree import Change, changes
from remuda.records.facts import Begun, Validation
from remuda.records.files import write_whole
from remuda.records.journal import OpenTurn
from remuda.records.redact import redactor
from remuda.records.text import one_line, path_text, visible

DEFAULT_LIMIT = 600.0
LONGEST_LOG = 1 << 18  # bytes that are kept of what a check says, from its end
MOST_OUTPUT = 64 << 20  # bytes; a check that writes more has run away
LOOK_EVERY = 0.5  # seconds, at how much it has written
TAIL = 1500  # characters of it that an agent is told
# The protocol's rules, and the setting that has the command of each.
COMMANDS: Mapping[str, str] = {
    "tests-pass": "tests",
    "lint-clean": "lint",
    "typecheck": "typecheck",
    "build-succeeds": "build",
    "security-scan": "scan",
}
HEADER_LINES = 40
HEADER = re.compile(r"\bVersion:\s*\S+.*?\bDescription:", re.DOTALL)
VERSION = re.compile(r"\bVersion:\s*(\d+)\.(\d+)\.(\d+)")
PROTECTED = ("main", "master", "develop")


@dataclass(frozen=True, slots=True)
class Checks:
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    branch: str = ""
    commit: str = ""
    seconds: float = DEFAULT_LIMIT
    blocking: bool = False

    @property
    def any(self) -> bool:
        return bool(any(self.commands.values()) or self.headers or self.versions or self.branch or self.commit)


@dataclass(frozen=True, slots=True)
class Checked:
    validations: tuple[Validation, ...]
    told: str  # what an agent is to hear of those that failed; empty when none did


def validate(turn: OpenTurn, begun: Begun, tree: str, head: str, checks: Checks) -> Checked:
    """Every rule, in the protocol's order: pass, fail or skipped. Logs go to the journal, redacted."""
    top = Path(begun.top)
    found: list[Validation] = []
    told: list[str] = []
    for rule in COMMANDS:
        argv = checks.commands.get(rule, ())
        validation, tail = _run(turn, top, rule, argv, checks.seconds) if argv else (_skipped(rule), "")
        found.append(validation)
        told += [f"{rule} ({' '.join(argv)}): {validation.why}\n{tail}"] if validation.status == "fail" else []
    differ = changes(top, begun.tree, tree, renames=False) if tree != begun.tree else []
    rules = (
        _of_files("metadata-headers", checks.headers, lambda each: _has_header(top, each), differ),
        _of_files("version-incremented", checks.versions, lambda each: _raised(top, begun.tree, each), differ),
        _of_branch(checks.branch, begun.branch),
        _of_commits(top, checks.commit, begun.head, head),
    )
    for each in rules:
        found.append(each)
        told += [f"{each.rule}: {each.why}"] if each.status == "fail" else []
    return Checked(tuple(found), redactor(os.environ)("\n\n".join(told)))


def _skipped(rule: str) -> Validation:
    return Validation(rule, "skipped", why="not configured")


def _run(turn: OpenTurn, top: Path, rule: str, argv: tuple[str, ...], seconds: float) -> tuple[Validation, str]:
    """In a process group of its own, so that whatever it starts is ended with it. What it says goes to a file, not to a
    pipe: a flood of it does not fill our memory, and who has left the group cannot make us wait by holding the pipe.
    (agents/command.py has a whole supervisor for this, but no hook could wait for that.)"""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                argv, cwd=top, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, process_group=0
            )
        except OSError as error:
            return Validation(rule, "fail", why=f"it could not be started: {error.strerror or error}"), ""
        why = _why_bad(process, output.fileno(), seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(max(0, os.fstat(output.fileno()).st_size - 4 * LONGEST_LOG))
        said = output.read(4 * LONGEST_LOG)
    # More is read than is kept: a secret that the cut went through would not be known for one.
    shown = redactor(os.environ)(f"$ {' '.join(argv)}\n{said.decode(errors='replace')}")
    text = visible(shown[-LONGEST_LOG:])
    details = f"validations/{rule}.txt"
    write_whole(f"{turn.folder}/{details.replace('/', '-')}", text.encode(errors="replace"), 0o600)
    return Validation(rule, "fail" if why else "pass", details, why), text[-TAIL:]


def _why_bad(process: subprocess.Popen[bytes], output: int, seconds: float) -> str:
    """Nothing when it ended by itself, and well."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            code = process.wait(min(left, LOOK_EVERY))
            return f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            if os.fstat(output).st_size > MOST_OUTPUT:
                return f"it wrote more than {MOST_OUTPUT >> 20} MB and was ended"
    return f"it took more than {seconds:g} s and was ended"


def _of_files(rule: str, globs: tuple[str, ...], good: Callable[[Change], bool], differ: list[Change]) -> Validation:
    if not globs:
        return _skipped(rule)
    meant = [each for each in differ if each.change != "deleted" and _matches(each.path, globs)]
    bad = [path_text(each.path) for each in meant if not good(each)]
    return Validation(rule, "fail" if bad else "pass", why=one_line(", ".join(bad), 500))


def _matches(path: bytes, globs: tuple[str, ...]) -> bool:
    text = os.fsdecode(path)
    return any(fnmatch.fnmatchcase(text, glob) or fnmatch.fnmatchcase(f"/{text}", f"*/{glob}") for glob in globs)


def _has_header(top: Path, each: Change) -> bool:
    text = git(top, "cat-file", "blob", each.blob).decode(errors="replace")
    return bool(HEADER.search("\n".join(text.splitlines()[:HEADER_LINES])))


def _raised(top: Path, before: str, each: Change) -> bool:
    """A new file has a version; a changed one has a higher one than before."""
    now = VERSION.search(git(top, "cat-file", "blob", each.blob).decode(errors="replace"))
    if now is None:
        return False
    if each.change == "added":
        return True
    was = VERSION.search(git(top, "cat-file", "blob", f"{before}:{os.fsdecode(each.path)}").decode(errors="replace"))
    return was is None or tuple(map(int, now.groups())) > tuple(map(int, was.groups()))


def _of_branch(pattern: str, branch: str) -> Validation:
    rule = "branch-convention"
    if not pattern:
        return _skipped(rule)
    if branch in PROTECTED or not re.fullmatch(pattern, branch):
        return Validation(rule, "fail", why=f"{one_line(branch) or 'a detached HEAD'} does not fit {pattern}")
    return Validation(rule, "pass")


def _of_commits(top: Path, pattern: str, before: str, after: str) -> Validation:
    """The commits that the agent made in this turn."""
    rule = "commit-convention"
    if not pattern:
        return _skipped(rule)
    span = f"{before}..{after}" if before else after
    subjects = (
        git(top, "log", "--format=%s", span, "--").decode(errors="replace").splitlines() if before != after else []
    )
    bad = [subject for subject in subjects if not re.fullmatch(pattern, subject)]
    return Validation(rule, "fail" if bad else "pass", why=one_line("; ".join(bad), 500))
