"""SIGKILL at every write and every step, in the middle of a turn's record: it rolls forward, once, to the same bytes.

The process that is killed is a fork of the test. An audit hook counts what it does to the world (every file opened for
writing, every rename, folder, removal and child process) and kills it just before the n-th; so between any two of them
there is one death. Nothing in the product knows of it.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from records.kit import all_valid, git, repository, write
from remuda.records.begin import Asked, begin, end
from remuda.records.journal import open_turns
from remuda.records.keeping import Keeping
from remuda.records.publish import publish
from remuda.records.recover import recover
from remuda.records.repository import find_repository

SHARES = 3  # of the deaths in one test, so that they can be died side by side
WRITES = os.O_WRONLY | os.O_RDWR
TOUCHES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.posix_spawn", "subprocess.Popen", "os.truncate"}


def killed_at(deed: int, act: Callable[[], object]) -> bool:
    """Do it in a fork that dies before its n-th deed; whether it died."""
    child = os.fork()
    if child == 0:
        counted = 0

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal counted
            wrote = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
            if event in TOUCHES or wrote:
                counted += 1
                if counted == deed:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def story(top: Path, keeping: Keeping) -> None:
    turn = begin(find_repository(str(top)), keeping, Asked("Do it.", "claude", session="s", key="p"))
    write(top, "work.txt", "done\n")
    (top / "readme.txt").unlink()
    end(turn, "completed", summary="did it")
    publish(turn)


def state(top: Path) -> dict[str, object]:
    """Everything that a record is: refs, the ledger in the work tree, what is left in the journal."""
    refs = git(top, "for-each-ref", "--format=%(refname) %(objectname)", "refs/tags", "refs/turns", "refs/heads")
    ledger = top / "ai"
    files = {str(path.relative_to(top)): path.read_bytes() for path in sorted(ledger.rglob("*")) if path.is_file()}
    return {"refs": refs, "files": files, "notes": git(top, "notes", "--ref=remuda", "list") if "turn/" in refs else ""}


def recovered(top: Path) -> dict[str, object]:
    here = find_repository(str(top))
    recover(here, lambda _: True)
    assert open_turns(here) == []
    return state(top)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("way", ["beside", "files", "branch"])
def test_killed_anywhere_it_rolls_forward_to_the_same_bytes_one_row_and_one_tag(
    way: str, share: int, tmp_path: Path
) -> None:
    base = repository(tmp_path / "base")
    deed, deaths = share - SHARES + 1, 0
    while True:
        deed += SHARES
        top, twin = tmp_path / f"{deed}", tmp_path / f"{deed}-twin"
        shutil.copytree(base, top, symlinks=True)
        died = killed_at(deed, lambda top=top: story(top, Keeping(way)))  # type: ignore[misc]
        shutil.copytree(top, twin, symlinks=True)
        once = recovered(top)
        assert recovered(top) == once, f"killed at {deed}: a second recovery changed something"
        turns = all_valid(top)
        assert turns in ((0, 1) if died else (1,))
        if turns and way != "beside":
            index = (top / "ai/agentic-pipeline/turns_index.csv").read_text()
            assert index.count("\n") == 2, f"killed at {deed}: {index}"
        shutil.rmtree(top)
        twin.rename(top)
        if _had_ended(top):
            assert recovered(top) == once, f"killed at {deed}: recovery is not the same every time"
        shutil.rmtree(top)
        deaths += died
        if not died:
            break
    assert deaths * SHARES > 30, "the story must be long enough to die in"


def _had_ended(top: Path) -> bool:
    return any((turn.facts("ended") is not None) for turn in open_turns(find_repository(str(top))))
