"""Merging what was approved, in a real repository whose user is in the middle of things."""

from pathlib import Path

import pytest

from adapters.git_kit import commit, fsck, make_dirty, make_repository, sh, users
from adapters.work_kit import Shop
from fakes import run
from remuda.domain.commands import Report
from remuda.domain.errors import Refused
from remuda.domain.task import Refusal
from remuda.domain.task_commands import ReportAcceptance, ReportMerged, ReportMergeRefused, ReportWorktreeRemoved
from remuda.git import merge
from remuda.git.merge import Destination
from remuda.git.repository import open_repository

PASSES = "test ! -e broken.txt"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_dirty(make_repository(tmp_path / "project"))


def merged(report: Report) -> ReportMerged:
    assert isinstance(report, ReportMerged), report
    return report


def refused(report: Report) -> ReportMergeRefused:
    assert isinstance(report, ReportMergeRefused), report
    return report


def files_of(root: Path, name: str) -> set[str]:
    return set(sh(root, "git", "ls-tree", "-r", "--name-only", name).splitlines())


# --- where it goes ---


def test_merged_work_waits_on_a_branch_of_ours_and_nothing_of_the_users_moves(root: Path) -> None:
    async def story() -> None:
        shop, before = Shop(root), users(root)
        tip = await shop.work("t-1", new_txt="new\n")
        report = merged(await shop.merge("t-1", PASSES))
        assert report == ReportMerged("t-1", 3, tip, "remuda/merged", "`git merge remuda/merged` on main takes it")
        assert shop.tip("remuda/merged") == tip
        assert users(root) == before
        fsck(root)

    run(story())


def test_a_branch_is_put_away_when_its_work_is_merged_and_stays_when_it_is_not(root: Path) -> None:
    async def story() -> None:
        shop, before = Shop(root), users(root)
        tips = {task: await shop.work(task, **{f"{task[-1]}_txt": "new\n"}) for task in ("t-1", "t-2")}
        merged(await shop.merge("t-1", PASSES))
        for _ in range(2):  # as after a crash
            assert await shop.clear("t-1", merged=True) == ReportWorktreeRemoved("t-1", 4)
        await shop.clear("t-2")
        assert sh(root, "git", "branch", "--list", "--format=%(refname:short)", "remuda/t-*") == "remuda/t-2"
        assert shop.tip("refs/remuda/tasks/t-1") == tips["t-1"]
        assert users(root) == before

    run(story())


def test_a_second_task_goes_on_top_of_the_first_and_the_third_begins_there(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        await shop.work("t-2", two_txt="2\n")
        await shop.merge("t-1", PASSES)
        merged(await shop.merge("t-2", PASSES))
        assert files_of(root, "remuda/merged") >= {"one.txt", "two.txt"}
        assert sh(root, "git", "rev-list", "--merges", "remuda/merged") == ""
        third = await shop.begin("t-3")
        assert (third / "two.txt").exists()

    run(story())


def test_in_local_mode_a_branch_that_nobody_has_checked_out_moves(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root, {"mode": "local", "target": "feature"})
        tip = await shop.work("t-1", new_txt="new\n")
        report = merged(await shop.merge("t-1", PASSES))
        assert (report.target, report.next_step) == ("feature", "")
        assert shop.tip("feature") == tip

    run(story())


def test_in_local_mode_a_branch_that_the_user_is_on_stays_and_they_are_told_what_to_type(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root, {"mode": "local"})
        before = shop.tip("main")
        await shop.work("t-1", new_txt="new\n")
        report = merged(await shop.merge("t-1", PASSES))
        assert report.target == "remuda/merged"
        assert "main is checked out at" in report.next_step
        assert "git merge remuda/merged" in report.next_step
        assert shop.tip("main") == before

    run(story())


def test_the_text_of_a_pull_request_tells_of_all_that_waits(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root, {"mode": "pull-request-text"})
        await shop.work("t-1", one_txt="1\n")
        await shop.merge("t-1", PASSES)
        await shop.work("t-2", two_txt="2\n")
        await shop.merge("t-2", PASSES)
        said = (root / ".remuda" / "pull-request.md").read_text()
        assert said.index("## Work on t-1") < said.index("## Work on t-2")
        assert "two.txt" in said
        assert f"- `{PASSES}`" in said

    run(story())


def test_what_the_user_has_taken_is_where_the_next_goes_on(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        await shop.merge("t-1", PASSES)
        sh(root, "git", "stash", "--include-untracked")
        sh(root, "git", "merge", "--ff-only", "remuda/merged")
        theirs = commit(root, "The user goes on", theirs_txt="theirs\n")
        await shop.work("t-2", two_txt="2\n")
        assert sh(shop.path("t-2"), "git", "rev-parse", "HEAD~") == theirs
        merged(await shop.merge("t-2", PASSES))
        assert sh(root, "git", "rev-parse", "remuda/merged~") == theirs

    run(story())


def test_our_branch_is_not_moved_under_a_user_who_looks_at_it(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        await shop.merge("t-1", PASSES)
        await shop.work("t-2", two_txt="2\n")
        sh(root, "git", "worktree", "add", "-q", str(root.parent / "look"), "remuda/merged")
        with pytest.raises(Refused, match="git switch -"):
            await shop.merge("t-2", PASSES)
        sh(root.parent / "look", "git", "switch", "-q", "--detach")
        merged(await shop.merge("t-2", PASSES))

    run(story())


def test_a_detached_head_is_merged_onto_but_has_no_branch_to_move(root: Path) -> None:
    async def story() -> None:
        sh(root, "git", "checkout", "-q", "--detach")
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        assert merged(await shop.merge("t-1")).target == "remuda/merged"
        shop = Shop(root, {"mode": "local"})
        with pytest.raises(Refused, match="HEAD is detached"):
            await shop.merge("t-1")

    run(story())


def test_a_target_that_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(Refused, match="no branch nowhere"):
        run(Shop(root).begin("t-1", target="nowhere"))


@pytest.mark.parametrize(("history", "subjects"), [("rebase", 3), ("squash", 2), ("merge", 2)])
def test_history_is_kept_squashed_or_merged_as_the_settings_say(root: Path, history: str, subjects: int) -> None:
    async def story() -> None:
        shop = Shop(root, {"history": history})
        await shop.work("t-1", one_txt="1\n")
        await shop.work("t-1", one_txt="more\n")
        report = merged(await shop.merge("t-1"))
        assert int(sh(root, "git", "rev-list", "--first-parent", "--count", report.commit)) == subjects
        if history != "rebase":
            assert sh(root, "git", "log", "-1", "--format=%B", report.commit) == "Merge t-1\n\nTask: t-1"
        assert (len(sh(root, "git", "rev-list", "--merges", report.commit)) > 0) == (history == "merge")

    run(story())


# --- what is refused, with evidence ---


def test_a_conflict_goes_back_with_both_sides_and_is_resolved_by_editing_files_alone(root: Path) -> None:
    """As by a worker whose sandbox keeps it from git's own folder."""

    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", a_txt="one\nfirst\nthree\n")
        await shop.work("t-2", a_txt="one\nsecond\nthree\n")
        await shop.merge("t-1", PASSES)
        report = refused(await shop.merge("t-2", PASSES))
        assert report.reason is Refusal.CONFLICT
        for part in ("  a.txt\n", "CONFLICT (content)", "first", "second", "The merge of remuda/merged is begun"):
            assert part in report.tail
        assert "second" in (root / report.evidence).read_text()
        assert await shop.merge("t-2", PASSES) == report
        marked = await shop.check("t-2", PASSES)
        assert isinstance(marked, ReportAcceptance)
        assert "conflict marks are left in a.txt" in marked.tail
        (shop.path("t-2") / "a.txt").write_text("one\nfirst and second\nthree\n")
        assert getattr(await shop.check("t-2", PASSES), "ok", None) is True
        assert sh(shop.path("t-2"), "git", "status", "--porcelain") == ""
        merged(await shop.merge("t-2", PASSES))
        assert sh(root, "git", "show", "remuda/merged:a.txt") == "one\nfirst and second\nthree"
        assert sh(root, "git", "rev-list", "--merges", "remuda/merged") == ""
        assert await shop.clear("t-2") == ReportWorktreeRemoved("t-2", 4)

    run(story())


@pytest.mark.parametrize("how", ["git merge remuda/merged", "git rebase remuda/merged"])
def test_a_worker_that_may_use_git_resolves_a_conflict_in_its_own_way(root: Path, how: str) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", a_txt="one\nfirst\nthree\n")
        await shop.work("t-2", a_txt="one\nsecond\nthree\n")
        await shop.merge("t-1")
        refused(await shop.merge("t-2"))
        sh(shop.path("t-2"), "sh", "-c", f"git merge --abort && ! {how}")
        (shop.path("t-2") / "a.txt").write_text("one\nboth\nthree\n")
        sh(shop.path("t-2"), "git", "add", "a.txt")
        go_on = "commit --no-edit" if "merge r" in how else "rebase --continue"
        sh(shop.path("t-2"), "sh", "-c", f"GIT_EDITOR=true git {go_on}")
        await shop.work("t-3", b_txt="meanwhile\n")
        merged(await shop.merge("t-3"))
        merged(await shop.merge("t-2"))
        assert sh(root, "git", "show", "remuda/merged:a.txt") == "one\nboth\nthree"
        assert sh(root, "git", "rev-list", "--merges", "remuda/merged") == ""

    run(story())


def test_a_merge_is_not_begun_over_what_a_worker_has_not_committed(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", a_txt="first\n")
        await shop.work("t-2", a_txt="second\n")
        (shop.path("t-2") / "half.txt").write_text("half\n")
        await shop.merge("t-1")
        assert "files are not in git: half.txt" in refused(await shop.merge("t-2")).tail
        assert (shop.path("t-2") / "a.txt").read_text() == "second\n"

    run(story())


def test_a_file_changed_here_and_deleted_there_is_a_conflict(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.begin("t-2")
        await shop.work("t-1", b_txt="changed\n")
        (shop.path("t-2") / "b.txt").unlink()
        await shop.work("t-2")
        await shop.merge("t-1")
        assert "CONFLICT (modify/delete)" in refused(await shop.merge("t-2")).tail

    run(story())


def test_what_breaks_only_when_merged_goes_back_with_the_output(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        fails = "echo two are too many >&2; ls one.txt two.txt 2>/dev/null | wc -l | grep -qv 2"
        await shop.work("t-1", one_txt="1\n")
        await shop.work("t-2", two_txt="2\n")
        merged(await shop.merge("t-1", fails))
        report = refused(await shop.merge("t-2", fails))
        assert report.reason is Refusal.ACCEPTANCE
        assert "two are too many" in report.tail
        assert "exited with code 1" in report.tail
        assert "two are too many" in (root / report.evidence).read_text()
        assert "two.txt" not in files_of(root, "remuda/merged")
        assert (shop.path("t-2") / "one.txt").exists()  # the merged result is where the worker goes on
        (shop.path("t-2") / "two.txt").unlink()
        (shop.path("t-2") / "also.txt").touch()
        assert getattr(await shop.check("t-2", fails), "ok", None) is True
        merged(await shop.merge("t-2", fails))
        assert files_of(root, "remuda/merged") >= {"one.txt", "also.txt"}

    run(story())


def test_the_result_is_tried_out_without_what_lies_about_in_the_worktree(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        (shop.path("t-1") / "untracked.txt").touch()
        assert refused(await shop.merge("t-1", "test -e untracked.txt")).reason is Refusal.ACCEPTANCE

    run(story())


def test_only_the_commit_that_was_approved_is_merged(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        approved = await shop.work("t-1", one_txt="1\n")
        await shop.work("t-1", sneaked_txt="in\n")
        report = refused(await shop.merge("t-1", tip=approved))
        assert report.reason is Refusal.MOVED
        assert approved in report.tail
        assert "not in git" in refused(await shop.merge("t-1", tip="0" * 40)).tail

    run(story())


# --- again, and while others are at it ---


def test_done_again_it_reports_the_same_and_merges_nothing_twice(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        await shop.work("t-2", two_txt="2\n")
        await shop.merge("t-1", PASSES)
        first = merged(await shop.merge("t-2", PASSES))
        count = sh(root, "git", "rev-list", "--count", "remuda/merged")
        assert await shop.merge("t-2", "false") == first
        assert sh(root, "git", "rev-list", "--count", "remuda/merged") == count

    run(story())


def test_a_task_that_is_worked_on_again_is_merged_again(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        await shop.merge("t-1")
        await shop.work("t-1", one_txt="2\n")
        merged(await shop.merge("t-1"))
        assert sh(root, "git", "show", "remuda/merged:one.txt") == "2"

    run(story())


def test_a_target_that_moves_while_the_result_is_tried_out_is_tried_again(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root, {"mode": "local", "target": "feature"})
        await shop.work("t-1", one_txt="1\n")
        other = sh(root, "git", "commit-tree", "main^{tree}", "-p", "main", "-m", "Meanwhile")
        move = f"test -e {root}/moved || {{ touch {root}/moved; git update-ref refs/heads/feature {other}; }}"
        report = merged(await shop.merge("t-1", move))
        assert sh(root, "git", "rev-parse", f"{report.commit}~") == other
        assert shop.tip("feature") == report.commit

    run(story())


def test_a_branch_moves_only_from_where_it_was_thought_to_be(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it moves between the look and the move."""
    opened, thought = open_repository(root), sh(root, "git", "rev-parse", "feature")
    elsewhere = sh(root, "git", "commit-tree", "main^{tree}", "-p", "main", "-m", "Meanwhile")
    sh(root, "git", "update-ref", "refs/heads/feature", elsewhere)
    monkeypatch.setattr(merge, "commit_of", lambda *_: thought)
    result = sh(root, "git", "commit-tree", "main^{tree}", "-p", "main", "-m", "Result")
    assert not merge.land(opened, Destination("refs/heads/feature", thought, True), result, "a test")
    assert sh(root, "git", "rev-parse", "feature") == elsewhere


def test_a_lock_that_a_killed_git_left_on_our_branch_is_not_in_the_way(root: Path) -> None:
    async def story() -> None:
        shop = Shop(root)
        await shop.work("t-1", one_txt="1\n")
        (root / ".git" / "refs" / "heads" / "remuda" / "merged.lock").touch()
        merged(await shop.merge("t-1"))

    run(story())
