"""Many at once: agents, work trees, processes and clones of one repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

from records.kit import IDENTITY, all_valid, git, record, repository, verified, write
from remuda.records.begin import Asked, begin, end
from remuda.records.journal import open_turns
from remuda.records.keeping import Keeping
from remuda.records.recover import recover
from remuda.records.repository import find_repository

HOOK = Path(__file__).parents[2] / "src/remuda/cli/hook.py"


def started(top: Path, session: str, prompt: str) -> "subprocess.Popen[bytes]":
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "cwd": str(top),
        "prompt": prompt,
        "prompt_id": session,
    }
    environment = {name: value for name, value in os.environ.items() if name != "REMUDA_AGENT"}
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(HOOK), "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, **IDENTITY},
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(payload).encode())
    child.stdin.close()
    return child


def test_a_hundred_begins_at_once_over_four_work_trees_are_a_hundred_turns(tmp_path: Path) -> None:
    first = repository(tmp_path / "tree-0")
    trees = [first, *(tmp_path / f"tree-{number}" for number in (1, 2, 3))]
    for tree in trees[1:]:
        git(first, "worktree", "add", "-q", str(tree), "-b", tree.name)
    children = [started(trees[number % 4], f"session-{number}", f"prompt {number}") for number in range(100)]
    for child in children:
        assert child.wait(110) == 0
        assert child.stderr is not None
        assert child.stdout is not None
        assert (child.stdout.read(), child.stderr.read()) == (b"", b"")
        child.stdout.close()
        child.stderr.close()
    begun = [turn.facts("begun") or {} for turn in open_turns(find_repository(str(first)))]
    assert sorted(each["number"] for each in begun) == list(range(1, 101))
    assert {each["prompt"] for each in begun} == {f"prompt {number}" for number in range(100)}
    assert len({each["uuid"] for each in begun}) == 100
    assert {each["top"] for each in begun} == {str(tree) for tree in trees}


def test_offline_clones_that_both_make_turn_1_stay_apart_after_they_meet(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin")
    ada, bob = tmp_path / "ada", tmp_path / "bob"
    for clone in (ada, bob):
        git(tmp_path, "clone", "-q", str(origin), str(clone))
    ours, theirs = record(ada).manifest.turn_uuid, record(bob).manifest.turn_uuid
    assert ours != theirs
    git(ada, "fetch", "-q", str(bob), "refs/turns/*:refs/turns/*")
    assert {(each.manifest.turn_id, each.manifest.turn_uuid) for each in verified(ada) if each.manifest} == {
        (1, ours),
        (1, theirs),
    }
    assert all_valid(ada) == 2
    assert record(ada).manifest.turn_id == 2


def test_with_the_id_in_their_names_records_of_two_clones_merge_without_a_conflict(tmp_path: Path) -> None:
    keeping = Keeping("branch", directory="turn-{number}-{id}")
    origin = repository(tmp_path / "origin")
    ada, bob = tmp_path / "ada", tmp_path / "bob"
    for clone in (ada, bob):
        git(tmp_path, "clone", "-q", str(origin), str(clone))
    record(ada, lambda _: write(ada, "a", "a\n"), keeping=keeping)
    record(bob, lambda _: write(bob, "b", "b\n"), keeping=keeping)
    git(ada, "fetch", "-q", str(bob), "main:theirs", "refs/turns/*:refs/turns/*")
    git(ada, "merge", "-q", "--no-edit", "theirs")
    names = [path.name for path in (ada / "ai/agentic-pipeline/turns").iterdir()]
    assert len(names) == 2
    assert all(name.startswith("turn-1-") for name in names)
    rows = (ada / "ai/agentic-pipeline/turns_index.csv").read_text().splitlines()
    assert sum(row.startswith("1,") for row in rows) == 2
    assert all_valid(ada) == 2
    third = record(ada, keeping=keeping)
    assert third.manifest.turn_id == 2
    rows = (ada / "ai/agentic-pipeline/turns_index.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["turn_id", "1", "1", "2"]


def test_numbers_of_others_that_came_in_by_a_fetch_are_not_used_again(tmp_path: Path) -> None:
    top, other = repository(tmp_path / "r"), repository(tmp_path / "other")
    for _ in range(3):
        record(other)
    record(top)
    git(top, "fetch", "-q", str(other), "refs/tags/turn/2:refs/tags/turn/2", "refs/tags/turn/3:refs/tags/turn/3")
    assert record(top).manifest.turn_id == 4


def test_a_lost_counter_gives_no_number_twice(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top)
    record(top)
    git(top, "pack-refs", "--all")
    (top / ".git/remuda/counter").unlink()
    assert record(top).manifest.turn_id == 3


def test_two_turns_in_one_work_tree_at_once_are_both_recorded(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    here = find_repository(str(top))
    one = begin(here, Keeping(), Asked("One.", "claude", session="a"))
    two = begin(here, Keeping(), Asked("Two.", "codex", session="b"))
    (top / "made.txt").write_text("by whom?\n")
    end(two, "completed")
    end(one, "completed")
    assert [each.failed for each in recover(here, lambda _: False)] == [[], []]
    assert all_valid(top) == 2
