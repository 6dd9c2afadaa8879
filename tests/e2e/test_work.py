"""From an idea to verified commits, with scripted agents: reviews denied, checks failed, conflicts resolved."""

import asyncio
from pathlib import Path
from typing import Any

from adapters.git_kit import commit, fsck, make_dirty, make_repository, sh, users
from e2e.work_kit import Site, call, playbook, site
from remuda.domain.lifecycle import TaskStatus
from remuda.domain.task import Brief, NewTask, Refusal
from remuda.domain.task_events import AcceptanceRun, MergeRefused, TaskMerged, VerdictGiven
from remuda.runtime.place import make_place

WITHIN = 90.0
ACCEPT = ("sh check.sh",)
CHECK = 'for each in *.txt; do grep -qv bug "$each" || { echo "$each has a bug"; exit 1; }; done\n'


def write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"path": path, "text": text}}


COMMIT = {"run": ["sh", "-c", "git add --all && git commit -q -m 'Work on it'"]}
DONE = call("report_implementation_complete", summary="Done as asked.")
BETTER = call("report_implementation_complete", summary="Done better.")


def test_three_tasks_two_workers_a_denial_a_failed_check_and_a_conflict(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "project")
    commit(root, "A check", check_sh=CHECK, list_txt="nothing\n")
    make_place(make_dirty(root, hooks=()))  # an agent's own commits run the user's hooks, as the user would want
    before = users(root)
    options = playbook(
        tmp_path / "playbook.json",
        [
            ("t1 complete, but it was not accepted", [write("a.txt", "mended\n"), COMMIT, DONE]),
            (
                "was approved but could not be merged: others have changed",
                [write("list.txt", "one\ntwo\n"), DONE],
            ),
            ("Your work on t3 was reviewed", [write("c.txt", "better\n"), COMMIT, BETTER]),
            ("Its author says: Done better.", [call("report_review_verdict", verdict="APPROVED", comments="Good.")]),
            (
                "Review the task t3",
                [
                    {"run": ["sh", "-c", "grep better c.txt"]},
                    call("report_review_verdict", verdict="DENIED", comments="No."),
                ],
            ),
            ("Review the task", [call("report_review_verdict", verdict="APPROVED", comments="Good.")]),
            ("Your task is t1:", [write("a.txt", "bug\n"), write("list.txt", "one\n"), COMMIT, DONE]),
            ("Your task is t2:", [write("b.txt", "b\n"), write("list.txt", "two\n"), COMMIT, DONE]),
            ("Your task is t3:", [write("c.txt", "poor\n"), DONE]),
        ],
    )

    async def story(at: Site) -> None:
        for _ in range(2):
            await at.hire("scripted", options=options)
        await at.add(
            NewTask(Brief("First", accept=ACCEPT)),
            NewTask(Brief("Second", accept=ACCEPT)),
            NewTask(Brief("Third", accept=ACCEPT, needs=("t1",))),
        )
        await at.until_finished(WITHIN)
        assert {(task.status, task.kept, task.setbacks > 0) for task in at.tasks.values()} <= {
            (TaskStatus.DONE, "", True),
            (TaskStatus.DONE, "", False),
        }
        assert [each.task for each in await at.events(AcceptanceRun) if not each.check.ok] == ["t1"]
        assert [each.task for each in await at.events(VerdictGiven) if not each.verdict.approved] == ["t3"]
        assert [each.reason for each in await at.events(MergeRefused)] == [Refusal.CONFLICT]
        merged = [each.task for each in await at.events(TaskMerged)]
        assert sorted(merged) == ["t1", "t2", "t3"]
        assert merged.index("t1") < merged.index("t3")
        reviewed = await at.events(VerdictGiven)
        assert all(each.verdict.reviewer not in at.tasks[each.task].authors for each in reviewed)

    async def whole() -> None:
        async with site(root) as at:
            await story(at)

    asyncio.run(whole())
    assert users(root) == before
    fsck(root)
    sh(tmp_path, "git", "clone", "-q", "--branch", "remuda/merged", str(root), "result")
    sh(tmp_path / "result", *ACCEPT[0].split())
    assert {each: (tmp_path / "result" / each).read_text() for each in ("a.txt", "b.txt", "c.txt", "list.txt")} == {
        "a.txt": "mended\n",
        "b.txt": "b\n",
        "c.txt": "better\n",
        "list.txt": "one\ntwo\n",
    }
    assert sh(root, "git", "worktree", "list").count("\n") == 1  # the user's, and the one for trying out
