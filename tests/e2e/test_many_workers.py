"""Twenty workers on forty tasks that need one another: none lost, none done twice, none before what it needs."""

import asyncio
from pathlib import Path

import pytest

from adapters.git_kit import fsck, make_dirty, make_repository, sh, users
from e2e.work_kit import Site, call, playbook, site
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_events import TaskAssigned, TaskMerged, VerdictGiven
from remuda.runtime.place import make_place

WORKERS, TASKS = 20, 40
WITHIN = 400.0  # seconds; a fifth of it on an idle machine


def needs_of(number: int) -> tuple[str, ...]:
    """Four layers of ten: each task needs two of the layer before."""
    return () if number <= 10 else (f"t{number - 10}", f"t{number - 10 + (1 if number % 10 else -9)}")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_task_is_lost_none_done_twice_and_none_before_what_it_needs(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "project")
    make_place(make_dirty(root, hooks=()))
    before = users(root)
    done = call("report_implementation_complete", summary="Done.")
    steps = [
        (f"Your task is t{number}: ", [{"write": {"path": f"{number}.txt", "text": f"{number}\n"}}, done])
        for number in range(1, TASKS + 1)
    ]
    review = ("Review the task", [call("report_review_verdict", verdict="APPROVED", comments="Good.")])
    options = playbook(tmp_path / "playbook.json", [review, *steps])

    async def story(at: Site) -> None:
        await asyncio.gather(*(at.hire("scripted", options=options) for _ in range(WORKERS)))
        new = (
            NewTask(Brief(f"Task {number}", needs=needs_of(number), accept=(f"test -e {number}.txt",)))
            for number in range(1, TASKS + 1)
        )
        await at.add(*new)
        await at.until_finished(WITHIN)
        merged = [each.task for each in await at.events(TaskMerged)]
        assert sorted(merged) == sorted(at.tasks)
        for task in at.tasks.values():
            assert all(merged.index(need) < merged.index(task.id) for need in task.brief.needs)
        assert all(each.verdict.reviewer not in at.tasks[each.task].authors for each in await at.events(VerdictGiven))
        assert len({each.holder for each in await at.events(TaskAssigned)}) > WORKERS // 2  # the work was shared

    async def whole() -> None:
        async with site(root) as at:
            await story(at)

    asyncio.run(whole())
    assert users(root) == before
    fsck(root)
    files = sh(root, "git", "ls-tree", "--name-only", "remuda/merged").splitlines()
    assert {f"{number}.txt" for number in range(1, TASKS + 1)} <= set(files)
    subjects = sh(root, "git", "log", "--format=%s", "main..remuda/merged").splitlines()
    assert sorted(subjects) == sorted(f"Task {number}" for number in range(1, TASKS + 1))
