"""What an agent leaves is kept in git as it was, beside everything of the user's, whatever comes later."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.git_kit import commit, fsck, make_dirty, make_repository, sh, users, write
from adapters.work_kit import Shop, world_in
from domain.drive import WORKER, Project
from fakes import run
from records.test_crash import killed_at
from remuda.domain.body import Begun, Left
from remuda.domain.commands import RetireAgent
from remuda.domain.effects import KeepWork, RemoveBody
from remuda.domain.trigger_commands import ReportBodyRemoved, ReportWorkKept
from remuda.effects import bodies, perform
from remuda.effects.bodies import NEVER_BEGAN, UNKNOWN, begin
from remuda.effects.places import Places
from remuda.effects.world import World
from remuda.runtime.bodies import body_of
from remuda.runtime.place import Place


async def begins(world: World, folder: str = "", agent: str = WORKER) -> Begun:
    return Begun(folder, 0, await begin(world.yard, world.places, folder, agent))


async def leaves(world: World, begun: Begun | None, agent: str = WORKER, epoch: int = 1) -> ReportWorkKept:
    report = await perform(world, KeepWork(agent, epoch, begun))
    assert isinstance(report, ReportWorkKept)
    return report


def changes(root: Path, left: ReportWorkKept) -> dict[str, str]:
    """The files that differ between what an agent began from and what it left, as it left them."""
    names = sh(root, "git", "diff", "--name-only", f"{left.commit}^", left.commit).splitlines()
    return {name: sh(root, "git", "show", f"{left.commit}:{name}") for name in names}


def test_only_what_changed_while_it_was_at_work_is_its_own_and_nothing_of_the_users_is_touched(tmp_path: Path) -> None:
    root = make_dirty(make_repository(tmp_path / "p"))
    world = world_in(root)
    before = users(root)
    begun = run(begins(world))
    assert users(root) == before
    write(root, src__c_txt="changed by the agent\n", more_txt="made by the agent\n")
    at_work = users(root)
    left = run(leaves(world, begun))
    assert users(root) == at_work
    write(root, src__c_txt="changed by the user\n", more_txt="", other_txt="the next one's\n")
    assert changes(root, left) == {"src/c.txt": "changed by the agent", "more.txt": "made by the agent"}
    assert (left.note, left.size) == ("", 0)
    assert sh(root, "git", "log", "--format=%s", left.commit).splitlines() == [
        f"{WORKER}: what session 1 left",
        f"{WORKER}: what it began from",
    ]
    fsck(root)


def test_to_keep_it_again_after_the_report_was_lost_changes_nothing_and_a_later_session_is_kept_anew(
    tmp_path: Path,
) -> None:
    root = make_repository(tmp_path / "p")
    world = world_in(root)
    begun = run(begins(world))
    write(root, a_txt="the agent's\n")
    first = run(leaves(world, begun))
    write(root, a_txt="the user's\n")
    assert run(leaves(world, begun)) == first
    assert changes(root, run(leaves(world, begun, epoch=2))) == {"a.txt": "the user's"}


def test_it_outlives_every_collection_of_garbage_until_it_is_buried(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "p")
    world = world_in(root)
    begun = run(begins(world))
    write(root, a_txt="the agent's\n", b_txt="b too\n")
    sh(root, "git", "gc", "--quiet", "--prune=now")
    left = run(leaves(world, begun))
    (world.transcripts / WORKER).mkdir(parents=True)
    (world.transcripts / WORKER / "1.jsonl").write_text("{}\n")
    sh(root, "git", "checkout", "-q", "--", ".")
    sh(root, "git", "reflog", "expire", "--expire=now", "--all")
    sh(root, "git", "gc", "--quiet", "--prune=now")
    assert set(changes(root, left)) == {"a.txt", "b.txt"}
    assert run(perform(world, RemoveBody(WORKER, 1))) == ReportBodyRemoved(WORKER, 1, 1)
    assert run(perform(world, RemoveBody(WORKER, 1))) == ReportBodyRemoved(WORKER, 1, 0)
    assert sh(root, "git", "for-each-ref", "refs/remuda") == ""
    sh(root, "git", "gc", "--quiet", "--prune=now")
    with pytest.raises(AssertionError, match=r"unknown revision|bad object"):
        changes(root, left)


def test_why_there_is_no_diff_is_said(tmp_path: Path) -> None:
    bare = tmp_path / "none"
    bare.mkdir()
    world = world_in(bare)
    begun = run(begins(world))
    assert begun.tree == ""
    assert "is not in a git repository" in run(leaves(world, begun)).note
    assert run(perform(world, RemoveBody(WORKER, 1))) == ReportBodyRemoved(WORKER, 1, 0)
    world = world_in(make_repository(tmp_path / "p"))
    assert run(leaves(world, None)).note == NEVER_BEGAN
    assert run(leaves(world, Begun("", 0, ""))).note == UNKNOWN


def test_a_work_tree_that_cannot_be_read_does_not_keep_an_agent_from_starting(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "p")
    (root / ".git" / "objects").rename(tmp_path / "objects")
    (root / ".git" / "objects").write_text("no folder")
    assert run(begins(world_in(root))).tree == ""


# --- worktrees ---


def test_of_a_worktree_that_is_gone_it_is_what_its_branch_has_and_never_the_users_own_files(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "p")
    shop = Shop(root)

    async def story() -> ReportWorkKept:
        await shop.begin("t1")
        begun = await begins(shop.world, ".remuda/worktrees/t1")
        await shop.work("t1", new_txt="done\n")
        await shop.clear("t1")
        assert not shop.path("t1").exists()
        write(root, a_txt="the user's own\n")
        return await leaves(shop.world, begun)

    left = run(story())
    assert changes(root, left) == {"new.txt": "done"}
    shutil.rmtree(root / ".git" / "refs" / "heads" / "remuda")
    gone = run(leaves(shop.world, Begun(".remuda/worktrees/t1", 0, "0" * 40), epoch=2))
    assert "is gone, and its branch with it" in gone.note


def test_what_was_left_uncommitted_in_a_worktree_is_kept_too(tmp_path: Path) -> None:
    shop = Shop(make_repository(tmp_path / "p"))

    async def story() -> ReportWorkKept:
        await shop.begin("t1")
        begun = await begins(shop.world, ".remuda/worktrees/t1")
        await shop.work("t1", one_txt="committed\n")
        write(shop.path("t1"), two_txt="not committed\n")
        return await leaves(shop.world, begun)

    assert changes(shop.root, run(story())) == {"one.txt": "committed", "two.txt": "not committed"}


def test_a_hundred_that_start_together_share_the_looks(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "p")
    world = world_in(root)
    looks: list[str] = []

    class Counted(Places):
        async def look(self, folder: str, look: Callable[[], str]) -> str:
            def noted() -> str:
                looks.append(folder)
                return look()

            return await super().look(folder, noted)

    world.places = Counted()

    async def story() -> set[str]:
        found = await asyncio.gather(*(begins(world, agent=f"a{number}") for number in range(20)))
        return {each.tree for each in found}

    assert run(story()) == {sh(root, "git", "rev-parse", "HEAD^{tree}")}
    assert 1 <= len(looks) <= 2
    assert sh(root, "git", "for-each-ref", "--format=x", "refs/remuda/starts").count("x") == 20


# --- whatever is killed ---


@pytest.mark.long
def test_killed_before_anything_that_it_does_to_the_world_it_is_kept_once_when_it_is_done_again(tmp_path: Path) -> None:
    made = make_dirty(make_repository(tmp_path / "made"))
    begun = run(begins(world_in(made)))
    write(made, src__c_txt="the agent's\n")
    mine, deaths = users(made), 0
    for deed in range(1, 200):
        root = tmp_path / f"p{deed}"
        shutil.copytree(made, root, symlinks=True)
        world = world_in(root)
        died = killed_at(deed, lambda world=world: asyncio.run(leaves(world, begun)))  # type: ignore[misc]
        known = sh(root, "git", "for-each-ref", "--format=x", bodies.BODIES) == "x"
        if known:
            write(root, src__c_txt="the user's\n")  # too late to be taken for the agent's
        left = run(leaves(world, begun))
        assert changes(root, left) == {"src/c.txt": "the agent's"}
        if not known:
            untouched = {name: value for name, value in users(root).items() if "index" not in name}
            assert untouched == {name: value for name, value in mine.items() if "index" not in name}
        fsck(root)
        shutil.rmtree(root)
        deaths += died
        if not died:
            break
    assert deaths >= 6


# --- as it is shown ---


def test_a_body_is_the_same_whenever_it_is_looked_at(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "p")
    world = world_in(root)
    project = Project()
    project.ready()
    begun = run(begins(world))
    commit(root, "The agent's", a_txt="the agent's\n")
    project.do(RetireAgent(WORKER))
    project.ended()
    project.do(run(leaves(world, begun)))

    async def read(after: int, limit: int) -> list[object]:
        return project.log[after : after + limit]  # type: ignore[return-value]

    def shown() -> tuple[str, str, str]:
        body = run(body_of(Place(root), read, project.state, WORKER))  # type: ignore[arg-type]
        return body.diff, body.note, body.work

    first = shown()
    assert "+the agent's" in first[0]
    assert first[2] == f"git show refs/remuda/bodies/{WORKER}"
    commit(root, "The user's", a_txt="the user's\n", more_txt="more\n")
    assert shown() == first
    sh(root, "git", "config", "diff.external", f"touch {root}/ran")
    assert shown() == first
    assert not (root / "ran").exists()
    agent = project.agent()
    project.state.agents[WORKER] = agent._replace(left=Left(1, "0" * 40, "", 0))
    assert "does not have it any more" in shown()[1]
    project.state.agents[WORKER] = agent._replace(left=None)
    assert "being kept" in shown()[1]
    project.state.agents[WORKER] = agent._replace(buried_at=1.0)
    assert "buried" in shown()[1]


def test_a_place_is_free_when_those_who_leave_it_are_gone_and_their_work_is_kept() -> None:
    async def story() -> list[str]:
        places, order, leaving = Places(), list[str](), asyncio.Event()

        async def next_one() -> None:
            await places.free("w/t1", [leaving])
            order.append("begins")

        with places.being_kept("w/t1"), places.being_kept(""):
            following = asyncio.ensure_future(next_one())
            await places.free("", [])  # the project's own folder is everybody's
            await asyncio.sleep(0)
            leaving.set()
            for _ in range(10):
                await asyncio.sleep(0)
            order.append("kept")
        await following
        return order

    assert run(story()) == ["kept", "begins"]
