"""Turn records: what one costs beside the least that git alone would take, what a long ledger adds, what a hook costs.

The peer of a record is bare plumbing with the same promise at its core, and nothing around it: a snapshot of the work
tree before and after through a private index that is kept, what changed, a commit and an annotated tag. It writes no
artifact, no manifest, no journal, no note, and survives no crash.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.figure import Figure, interleaved, median, spread
from remuda.cli import hook
from remuda.records.begin import Asked, begin, end
from remuda.records.keeping import Keeping
from remuda.records.publish import publish
from remuda.records.repository import find_repository

ROUNDS = 7
LEDGER = 10_000
IDENTITY = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRONMENT = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
numbers = count(1)


def figures() -> list[Figure]:
    return [whole_turn(2_000), whole_turn(20_000), long_ledger(), *hooks()]


def git(top: Path, *arguments: str, stdin: bytes = b"", **env: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(top), *arguments], input=stdin, capture_output=True, env={**ENVIRONMENT, **env}, check=True
    )
    return done.stdout.decode().strip()


@contextmanager
def repository(files: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve() / "work"
        for number in range(files):
            path = top / f"d{number // 100:03}" / f"f{number % 100:02}.py"
            if number % 100 == 0:
                path.parent.mkdir(parents=True)
            path.write_text(f"value = {number}\n" * 20)
        git(top.parent, "init", "-q", "-b", "main", str(top))
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", "first")
        yield top


def edit(top: Path) -> None:
    """As an agent would: two files changed, one made."""
    number = next(numbers)
    for name in ("d000/f01.py", "d001/f02.py", f"d000/new{number}.py"):
        (top / name).write_text(f"value = 'of {number}'\n")


def ours(top: Path) -> float:
    start = time.perf_counter()
    turn = begin(find_repository(str(top)), Keeping(), Asked("Change it.", "bench"))
    began = time.perf_counter()
    edit(top)
    work = time.perf_counter()
    end(turn, "completed", summary="changed it")
    made = publish(turn)
    assert made is not None
    assert not made.failed
    return (time.perf_counter() - work) + (began - start)


def plumbing(top: Path) -> float:
    index = str(top / ".git/bare-index")
    if not os.path.exists(index):
        Path(index).write_bytes((top / ".git/index").read_bytes())

    def snapshot() -> str:
        git(top, "-c", "core.untrackedCache=true", "add", "-A", GIT_INDEX_FILE=index)
        return git(top, "write-tree", GIT_INDEX_FILE=index)

    start = time.perf_counter()
    head = git(top, "rev-parse", "HEAD")
    before = snapshot()
    began = time.perf_counter()
    edit(top)
    work = time.perf_counter()
    after = snapshot()
    git(top, "diff-tree", "-r", "-M", "--raw", "-z", before, after)
    commit = git(top, "commit-tree", after, "-p", head, "-m", "a turn")
    git(top, "tag", "-a", "-m", "a turn", f"bare/{next(numbers)}", commit)
    return (time.perf_counter() - work) + (began - start)


def whole_turn(files: int) -> Figure:
    with repository(files) as top:
        for each in (ours, plumbing):
            each(top)  # both indexes are warm
        mine, bare = interleaved(ROUNDS, lambda: ours(top), lambda: plumbing(top))
    ratios = [own / peer for own, peer in zip(mine, bare, strict=True)]
    return Figure(
        f"turn.record_{files // 1000}k_files",
        median(ratios),
        "x",
        spread(ratios),
        f"bare git plumbing: {median(bare) * 1000:.0f} ms, a whole record: {median(mine) * 1000:.0f} ms",
        "≤ 2",
        median(ratios) <= 2,
    )


def long_ledger() -> Figure:
    with repository(2_000) as empty, repository(2_000) as full:
        fill(full)
        few, many = interleaved(ROUNDS * 3, lambda: beginning(empty), lambda: beginning(full))
    ratios = [long / short for long, short in zip(many, few, strict=True)]
    ratio = median(many) / median(few)
    return Figure(
        f"turn.begin_after_{LEDGER // 1000}k",
        ratio,
        "x",
        spread(ratios),
        f"begin in an empty ledger: {median(few) * 1000:.1f} ms, after {LEDGER:,} turns: {median(many) * 1000:.1f} ms",
        "≤ 1.2",
        ratio <= 1.2,
    )


def fill(top: Path) -> None:
    """Ten thousand turns: their tags, and their files in the work tree."""
    head = git(top, "rev-parse", "HEAD")
    git(top, "tag", "-a", "-m", "turn", "turn/1", head)
    tag = git(top, "rev-parse", "refs/tags/turn/1")
    wanted = "".join(f"create refs/tags/turn/{number} {tag}\n" for number in range(2, LEDGER + 1))
    git(top, "update-ref", "--stdin", stdin=wanted.encode())
    git(top, "pack-refs", "--all")
    for number in range(1, LEDGER + 1):
        folder = top / f"ai/agentic-pipeline/turns/turn-{number}"
        folder.mkdir(parents=True)
        for name in ("session_context.md", "pull_request.md", "adr.md", "manifest.json", "attestation.json"):
            (folder / name).write_text("x\n")


def beginning(top: Path) -> float:
    start = time.perf_counter()
    turn = begin(
        find_repository(str(top)), Keeping(), Asked("Change it.", "bench", session="s", key=str(next(numbers)))
    )
    took = time.perf_counter() - start
    turn.close()
    return took


def hooks() -> list[Figure]:
    with repository(100) as top:
        calls: dict[str, Callable[[], float]] = {
            "pass": lambda: started(top, [sys.executable, "-c", "pass"]),
            "begin": lambda: told(top, "UserPromptSubmit", prompt="Change it."),
            "tool": lambda: told(top, "PostToolUse", tool_name="Bash", tool_input={"command": "ls"}),
            "end": lambda: told(top, "Stop"),
        }
        calls["begin"]()
        calls["end"]()
        settle(top)
        taken = dict(zip(calls, interleaved(ROUNDS * 3, *calls.values()), strict=True))
        settle(top)
    bare = median(taken["pass"])
    return [
        Figure(
            f"turn.hook_{name}",
            median(taken[name]) / bare,
            "x",
            spread([one / bare for one in taken[name]]),
            f"python -c pass: {bare * 1000:.0f} ms of processor time, with its children; the hook: "
            f"{median(taken[name]) * 1000:.0f} ms",
            "≤ 3",
            median(taken[name]) / bare <= 3,
        )
        for name in ("begin", "tool", "end")
    ]


def told(top: Path, event: str, **payload: object) -> float:
    given = json.dumps({"hook_event_name": event, "session_id": "s", "cwd": str(top), **payload})
    return started(top, [sys.executable, "-I", "-S", str(Path(hook.__file__)), "claude"], given.encode())


def started(top: Path, argv: list[str], given: bytes = b"") -> float:
    """Processor time, of the process and of what it waited for: on a busy machine the clock on the wall measures the
    neighbours."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, input=given, cwd=top, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def settle(top: Path) -> None:
    """Wait for what the hooks left for later."""
    open_turns = Path(find_repository(str(top)).shared, "turns")
    limit = time.monotonic() + 60
    while time.monotonic() < limit and any(open_turns.iterdir()):
        time.sleep(0.05)
