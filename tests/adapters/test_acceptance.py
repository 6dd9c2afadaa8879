"""Done means verified: the work is in git, and the user's commands pass on it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.git_kit import commit, make_repository, sh, write
from adapters.work_kit import Shop
from fakes import run
from remuda.agents import Sandbox, command, sandbox
from remuda.agents.strays import marked
from remuda.domain.commands import Report
from remuda.domain.effects import PrepareWorktree
from remuda.domain.errors import EffectFailed, Refused
from remuda.domain.task_commands import ReportAcceptance, ReportWorktreeReady, ReportWorktreeRemoved
from remuda.effects.prepare_worktree import prepare_worktree


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(make_repository(tmp_path / "project"))


def accepted(report: Report, ok: bool = True) -> ReportAcceptance:
    assert isinstance(report, ReportAcceptance)
    assert report.ok is ok, report
    return report


def test_work_that_is_committed_and_passes_is_accepted_with_its_commit(shop: Shop) -> None:
    async def story() -> None:
        tip = await shop.work("t-1", new_txt="new\n")
        report = accepted(await shop.check("t-1", "test -e new.txt", "echo fine"))
        assert report.commit == tip
        assert report.evidence == ".remuda/acceptance/t-1/check-2.log"
        said = (shop.root / report.evidence).read_text()
        assert said == "$ test -e new.txt\n$ echo fine\nfine\n"
        assert "`echo fine` exited with code 0" in report.tail

    run(story())


def test_the_first_that_fails_is_the_last_that_runs_and_its_output_comes_back(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        report = accepted(await shop.check("t-1", "true", "echo why; echo because >&2; exit 3", "touch ran"), False)
        assert "exited with code 3" in report.tail
        assert "why\nbecause\n" in report.tail
        assert not (shop.path("t-1") / "ran").exists()

    run(story())


def test_without_a_change_nothing_is_run(shop: Shop) -> None:
    async def story() -> None:
        await shop.begin("t-1")
        report = accepted(await shop.check("t-1", "touch ran"), False)
        assert "there is no change" in report.tail
        assert not (shop.path("t-1") / "ran").exists()

    run(story())


def test_what_the_agent_left_uncommitted_is_committed_and_said(shop: Shop) -> None:
    async def story() -> None:
        write(await shop.begin("t-1"), new_txt="new\n")
        report = accepted(await shop.check("t-1", "true"))
        assert "committed by Remuda" in report.tail
        assert sh(shop.path("t-1"), "git", "log", "-1", "--format=%B") == "A title\n\nTask: t-1"
        assert accepted(await shop.check("t-1", "true")).commit == report.commit

    run(story())


def test_a_branch_that_moves_while_it_is_checked_is_not_accepted(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        report = accepted(await shop.check("t-1", "git commit -q --allow-empty -m sneaked"), False)
        assert "moved" in report.tail

    run(story())


def test_no_task_brings_a_change_of_the_settings_for_they_hold_commands(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n", remuda_toml='[worktrees]\nset_up = ["rm", "-rf", "/"]\n')
        assert "remuda.toml is the user's" in accepted(await shop.check("t-1", "true"), False).tail

    run(story())


def test_without_commands_the_work_must_still_be_there(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        assert accepted(await shop.check("t-1")).evidence == ""

    run(story())


def test_a_worktree_that_is_gone_is_nobodys_success(shop: Shop) -> None:
    with pytest.raises(EffectFailed, match="reopen t-1"):
        run(shop.check("t-1", "true"))


# --- the commands ---


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_one_that_does_not_end_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    shop = Shop(make_repository(tmp_path / "project"), {"seconds": 0.5})

    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        endless = "setsid sh -c 'trap \"\" TERM; sleep 600' & echo started; sleep 600"
        report = accepted(await shop.check("t-1", endless), False)
        assert "did not end within 0.5 s" in report.tail
        assert "started" in report.tail
        assert not [pid for pid, mark in marked() if mark.startswith(shop.world.mark)]

    run(story())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_a_command_leaves_running_is_ended_too(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        accepted(await shop.check("t-1", "setsid sleep 600 & true"))
        assert not [pid for pid, mark in marked() if mark.startswith(shop.world.mark)]

    run(story())


def test_one_that_writes_without_end_is_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST_OUTPUT", 1024 * 1024)
    monkeypatch.setattr(command, "LOOK_EVERY", 0.02)

    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        report = accepted(await shop.check("t-1", "yes"), False)
        assert "wrote more than 1 MB" in report.tail
        assert len(report.tail) < 4000

    run(story())


def test_commands_see_no_variable_but_those_that_may_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "do not leak")
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    monkeypatch.setenv("GIT_DIR", "/somewhere/else")
    shop = Shop(make_repository(tmp_path / "project"), {"env": ("JAVA_HOME", "NOT_SET")})

    async def story() -> None:
        folder = await shop.begin("t-1")
        (folder / "new.txt").touch()
        report = accepted(await shop.check("t-1", "env"))
        said = (shop.root / report.evidence).read_text()
        assert "JAVA_HOME=/opt/java" in said
        for name in ("SECRET_TOKEN", "GIT_DIR", "REMUDA_TOKEN", "NOT_SET"):
            assert name not in said

    run(story())


def test_a_command_cannot_wait_for_input(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        accepted(await shop.check("t-1", "cat"))

    run(story())


def test_odd_output_comes_back_as_text(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        report = accepted(await shop.check("t-1", r"printf '\377\000\033[31mred'; exit 1"), False)
        assert "red" in report.tail
        assert "\0" not in report.tail

    run(story())


def test_commands_run_where_the_project_is_below_the_top_of_the_repository(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "project")
    (top / ".git" / "info" / "exclude").write_text("src/.remuda/\n")
    shop = Shop.__new__(Shop)
    shop.root, shop.rules = top / "src", {}
    shop.world = Shop(top).world
    shop.world = replace(shop.world, root=top / "src")

    async def story() -> None:
        report = await prepare_worktree(shop.world, PrepareWorktree("t-1", 1, "remuda/t-1", "", ""))
        assert report == ReportWorktreeReady("t-1", 1, ".remuda/worktrees/t-1/src")
        commit(shop.path("t-1"), "Work", src__new_txt="new\n")
        accepted(await shop.check("t-1", "test -e new.txt"))

    run(story())


# --- set-up and clearing ---


def test_a_new_worktree_is_set_up_once_and_again_when_that_failed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "project")
    (root / ".git" / "info" / "exclude").write_text(".remuda/\nset-up\n")
    again = Shop(root, {"set_up": ("sh", "-c", f"echo x >> set-up; test -e {tmp_path}/go")})

    async def story() -> None:
        with pytest.raises(EffectFailed, match="set-up of the worktree failed"):
            await again.begin("t-1")
        (tmp_path / "go").touch()
        await again.begin("t-1")
        await again.begin("t-1")
        assert (again.path("t-1") / "set-up").read_text() == "x\nx\n"
        await again.work("t-1", new_txt="new\n")
        assert (await again.merge("t-1", "test -e set-up")) is not None
        await again.work("t-1", new_txt="newer\n")
        await again.merge("t-1", 'test "$(cat set-up)" = x')  # what a set-up makes stays for the next merge
        assert sh(root, "git", "show", "remuda/merged:new.txt") == "newer"

    run(story())


def test_a_worktree_is_cleared_away_or_kept_and_said_why(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        write(shop.path("t-1"), left_txt="left\n")
        assert await shop.clear("t-1") == ReportWorktreeRemoved("t-1", 4, "files are not in git: left.txt")
        (shop.path("t-1") / "left.txt").unlink()
        assert await shop.clear("t-1") == ReportWorktreeRemoved("t-1", 4)
        assert await shop.clear("t-1") == ReportWorktreeRemoved("t-1", 4)
        assert not shop.path("t-1").exists()

    run(story())


def test_a_part_begins_where_the_task_it_is_a_part_of_was_left(shop: Shop) -> None:
    async def story() -> None:
        await shop.work("t-1", half_txt="half\n")
        part = await shop.begin("t-1.1", base="remuda/t-1")
        assert (part / "half.txt").exists()
        with pytest.raises(Refused, match="remuda/gone"):
            await shop.begin("t-1.2", base="remuda/gone")

    run(story())


@pytest.mark.skipif(bool(sandbox.why_not()), reason=f"no sandbox here: {sandbox.why_not()}")
def test_commands_run_in_the_sandbox_of_workers_for_what_they_run_is_theirs(shop: Shop) -> None:
    shop.world = replace(shop.world, sandbox=lambda _: Sandbox())

    async def story() -> None:
        await shop.work("t-1", new_txt="new\n")
        accepted(await shop.check("t-1", f"touch built; touch {shop.root}/escaped || true"))
        assert (shop.path("t-1") / "built").exists()
        assert not (shop.root / "escaped").exists()

    run(story())
