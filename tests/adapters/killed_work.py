"""Does one step of work on a task again and again, and each time one command of git's later it all goes wrong.

    python -m adapters.killed_work STEP WAY FOLDER [NUMBER OF THE FIRST COMMAND]

The ways: `before` kills this process with SIGKILL before the command, `full` lets git itself die at the first byte that
it writes, as on a full disk. Then the step is done once more, undisturbed, and must come out as if nothing had been.
Prints how many commands there were.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters.git_kit import commit, fsck, make_dirty, make_repository, sh, users, write
from adapters.work_kit import Shop
from remuda.domain.commands import Report
from remuda.domain.effects import PrepareWorktree
from remuda.domain.task_commands import (
    ReportAcceptance,
    ReportMerged,
    ReportMergeRefused,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
)
from remuda.effects.prepare_worktree import prepare_worktree

TASK = "t-1"


async def prepare(shop: Shop) -> Report:
    return await prepare_worktree(shop.world, PrepareWorktree(TASK, 1, f"remuda/{TASK}", "", ""))


async def check(shop: Shop) -> Report:
    return await shop.check(TASK, "test -e new.txt")


async def merge(shop: Shop) -> Report:
    return await shop.merge(TASK, "test -e new.txt")


async def clear(shop: Shop) -> Report:
    return await shop.clear(TASK, merged=True)


def is_prepared(shop: Shop, report: Report) -> None:
    assert isinstance(report, ReportWorktreeReady), report
    assert sh(shop.path(TASK), "git", "status", "--porcelain") == ""
    assert sh(shop.path(TASK), "git", "branch", "--show-current") == f"remuda/{TASK}"
    assert [each.name for each in shop.path(TASK).parent.iterdir()] == [TASK], "nothing was to be set aside"


def is_checked(shop: Shop, report: Report) -> None:
    assert isinstance(report, ReportAcceptance), report
    assert report.ok, report
    assert "committed by Remuda" in report.tail
    assert sh(shop.root, "git", "rev-list", "--count", f"main..remuda/{TASK}") == "2"
    assert sh(shop.path(TASK), "git", "status", "--porcelain") == ""


def is_merged(shop: Shop, report: Report) -> None:
    assert isinstance(report, ReportMerged), report
    assert sh(shop.root, "git", "log", "--format=%s", "main..remuda/merged").splitlines() == [
        f"Work on {TASK}",
        "Work on t-0",
    ]
    assert report.commit == shop.tip("remuda/merged")


def is_refused(shop: Shop, report: Report) -> None:
    assert isinstance(report, ReportMergeRefused), report
    assert "is begun in your worktree" in report.tail, report
    assert "<<<<<<<" in (shop.path(TASK) / "a.txt").read_text()
    assert (shop.path(TASK) / "zero.txt").exists()
    (shop.path(TASK) / "a.txt").write_text("both\n")
    checked = asyncio.run(shop.check(TASK))
    assert isinstance(checked, ReportAcceptance), checked
    assert sh(shop.path(TASK), "git", "show", "--no-patch", "--format=%P").count(" ") == 1
    assert isinstance(asyncio.run(shop.merge(TASK)), ReportMerged)
    assert sh(shop.root, "git", "show", "remuda/merged:a.txt") == "both"


def is_cleared(shop: Shop, report: Report) -> None:
    assert report == ReportWorktreeRemoved(TASK, 4)
    assert not [each.name for each in shop.path(TASK).parent.iterdir() if TASK in each.name]
    assert str(shop.path(TASK)) not in sh(shop.root, "git", "worktree", "list")
    assert f"remuda/{TASK}" not in sh(shop.root, "git", "branch", "--list", f"remuda/{TASK}")
    assert "Work on t-1" in sh(shop.root, "git", "log", "--format=%s", f"refs/remuda/tasks/{TASK}")
    assert "Abandoned" in sh(shop.root, "git", "log", "--format=%s", "--glob=refs/remuda/kept")


STEPS: dict[str, tuple[Callable[[Shop], Any], Callable[[Shop, Report], None]]] = {
    "prepare": (prepare, is_prepared),
    "check": (check, is_checked),
    "merge": (merge, is_merged),
    "refuse": (merge, is_refused),
    "clear": (clear, is_cleared),
}


def make(root: Path, step: str) -> None:
    """All that comes before the step."""
    make_dirty(make_repository(root))
    shop = Shop(root)
    if step == "prepare":
        return
    asyncio.run(prepare(shop))
    commit(shop.path(TASK), f"Work on {TASK}", one_txt="1\n")
    if step == "check":
        write(shop.path(TASK), new_txt="new\n", b_txt="changed\n")
    elif step == "merge":
        commit(shop.path(TASK), f"Work on {TASK}", new_txt="new\n")
        sh(shop.path(TASK), "git", "reset", "-q", "--soft", "main")
        commit(shop.path(TASK), f"Work on {TASK}")
        asyncio.run(shop.work("t-0", zero_txt="0\n"))
        asyncio.run(shop.merge("t-0"))
    elif step == "refuse":
        commit(shop.path(TASK), "Mine", a_txt="mine\n", new_txt="new\n")
        asyncio.run(shop.work("t-0", zero_txt="0\n", a_txt="theirs\n"))
        asyncio.run(shop.merge("t-0"))
    elif step == "clear":
        commit(shop.path(TASK), "Abandoned", new_txt="new\n")
        sh(shop.path(TASK), "git", "reset", "-q", "--hard", "HEAD~")


def spoil(way: str, number: int, count: Path) -> None:
    """From now on the command of that number goes wrong."""
    real, left = subprocess.run, number

    def run(argv: list[str], **options: Any) -> Any:
        nonlocal left
        if argv[0] == "git":
            left -= 1
            count.write_text(str(number - left))
            if left == 0 and way == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if left == 0:
                argv = ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *argv]
        return real(argv, **options)

    subprocess.run = run  # type: ignore[assignment]


def in_a_child(do: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            do()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(step: str, way: str, folder: Path, first: int = 1) -> None:
    root, pristine = folder / "project", folder / "pristine"
    assert in_a_child(lambda: make(root, step)) == 0
    root.rename(pristine)
    perform, verify = STEPS[step]

    def disturbed() -> None:
        spoil(way, number, folder / "count")
        asyncio.run(perform(Shop(root)))

    def undisturbed() -> None:
        shop = Shop(root)
        before = users(root)
        verify(shop, asyncio.run(perform(shop)))
        assert users(root) == before == untouched
        fsck(root)

    number = first - 1
    while True:
        number += 1
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(pristine, root, symlinks=True)
        untouched = users(root)
        with open(os.devnull, "w") as nowhere:
            said, sys.stderr = sys.stderr, nowhere
            code = in_a_child(disturbed)
            sys.stderr = said
        assert code in (0, 3, -signal.SIGKILL), code
        if in_a_child(undisturbed) != 0:
            sys.exit(f"{step}, {way}, command {number}: it did not come out as if nothing had been")
        if int((folder / "count").read_text()) < number:  # it was over before
            break
    print(number - 1)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))
