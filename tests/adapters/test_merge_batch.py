"""Many tasks that wait to be merged: tried together, and the one that breaks them is found."""

import asyncio
import random
from pathlib import Path

import pytest

from adapters.git_kit import fsck
from adapters.test_merge_queue import PASSES, files_of, merged, refused
from adapters.work_kit import Shop
from fakes import run
from remuda.domain.task import Refusal
from remuda.domain.task_commands import ReportMerged, ReportMergeRefused
from remuda.git.queue import Batch
from waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Shop(tmp_path / "project").root


def test_many_are_tried_together_and_the_one_that_breaks_them_is_found(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        counted = f"echo x >> {root}/runs; test ! -e broken.txt"
        names = [f"t-{number}" for number in range(6)]
        for name in names:
            await shop.work(
                name, **{f"{name.replace('-', '')}_txt": name, **({"broken_txt": "!"} if name == "t-3" else {})}
            )
        reports = await asyncio.gather(*(shop.merge(name, counted) for name in names))
        assert [type(each) for each in reports] == [ReportMerged] * 3 + [ReportMergeRefused] + [ReportMerged] * 2
        assert files_of(root, "remuda/merged") >= {"t0.txt", "t1.txt", "t2.txt", "t4.txt", "t5.txt"}
        assert "broken.txt" not in files_of(root, "remuda/merged")
        assert len((root / "runs").read_text().split()) < 2 * len(names)
        fsck(root)

    run(story())


def test_of_two_that_conflict_the_first_is_merged_and_the_second_goes_back(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", a_txt="first\n")
        await shop.work("t-2", a_txt="second\n")
        first, second = await asyncio.gather(shop.merge("t-1"), shop.merge("t-2"))
        merged(first)
        assert refused(second).reason is Refusal.CONFLICT

    run(story())


def gate(root: Path, name: str) -> str:
    """A command that says when it has started, and ends when it may."""
    return f"touch {root}/{name}-started; while ! test -e {root}/{name}-open; do sleep 0.05; done"


def test_one_that_is_called_off_is_not_merged_and_those_tried_with_it_are(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        for name in ("zero", "one", "two", "three"):
            await shop.work(name, **{f"{name}_txt": name})
        ahead = asyncio.create_task(shop.merge("zero", gate(root, "a")))
        await until((root / "a-started").exists)
        tasks = [asyncio.create_task(shop.merge(name, gate(root, "b"))) for name in ("one", "two", "three")]
        await until(lambda: len(shop.world.merges.waiting) == 4)
        (root / "a-open").touch()
        merged(await ahead)
        await until((root / "b-started").exists)  # all three are tried together now
        tasks.pop(1).cancel()
        (root / "b-open").touch()
        for task in tasks:
            merged(await task)
        assert files_of(root, "remuda/merged") >= {"zero.txt", "one.txt", "three.txt"}
        assert "two.txt" not in files_of(root, "remuda/merged")

    run(story())


def test_when_the_one_that_merges_is_called_off_the_next_takes_over(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        for name in ("one", "two"):
            await shop.work(name, **{f"{name}_txt": name})
        first = asyncio.create_task(shop.merge("one", gate(root, "a")))
        await until((root / "a-started").exists)
        second = asyncio.create_task(shop.merge("two"))
        await until(lambda: len(shop.world.merges.waiting) == 2)
        first.cancel()
        merged(await second)
        assert "one.txt" not in files_of(root, "remuda/merged")

    run(story())


@pytest.mark.parametrize("size", range(1, 9))
def test_whoever_breaks_a_batch_is_found_in_few_tries(size: int) -> None:
    for culprit in [*range(size), None]:
        batch, tries = Batch(size), 0
        while count := batch.next_try:
            batch, tries = batch.tried(count, ok=culprit is None or count <= culprit), tries + 1
        assert batch.culprit == culprit
        assert batch.passed == (size if culprit is None else culprit)
        assert tries <= 1 + size.bit_length()


def test_a_long_queue_in_any_order_of_troubles_loses_nobody(root: Path) -> None:
    async def story() -> None:
        shop, dice = Shop(root), random.Random(7)
        names = [f"t-{number}" for number in range(12)]
        troubles = {name: dice.choice(["fine", "fine", "conflict", "broken"]) for name in names}
        kinds = {"fine": {}, "conflict": {"a_txt": ""}, "broken": {"broken_txt": "!"}}
        for name in names:
            own = {key: value or f"{name}\n" for key, value in kinds[troubles[name]].items()}
            await shop.work(name, **{f"own{name[2:]}_txt": name}, **own)
        reports = await asyncio.gather(*(shop.merge(name, PASSES) for name in names))
        landed = files_of(root, "remuda/merged")
        conflicts = [name for name in names if troubles[name] == "conflict"]
        for name, report in zip(names, reports, strict=True):
            fine = troubles[name] == "fine" or name == conflicts[0]
            assert isinstance(report, ReportMerged) == fine, (name, troubles[name], report)
            assert (f"own{name[2:]}.txt" in landed) == fine

    run(story())
