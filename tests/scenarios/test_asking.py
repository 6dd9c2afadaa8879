"""What a session wants to do is ruled on at once, or put to somebody; paths are judged by where they really lead."""

import asyncio
import os
from pathlib import Path

import pytest

from fakes import breathe, run
from remuda.agents import Answered, Asked
from remuda.domain.permission import Policy, Ruling
from remuda.effects.questions import MOST_OPEN, Questions, question_id

ASK_ALL = Policy(default=Ruling.ASK)


class Desk:
    """Where questions are put."""

    def __init__(self, root: Path, policy: Policy, *, open_for_questions: bool = True) -> None:
        self.put: list[tuple[str, Asked]] = []
        self._takes = open_for_questions
        self.questions = Questions("ada", policy, [str(root)], self._take)

    def _take(self, which: str, asked: Asked) -> bool:
        if self._takes:
            self.put.append((which, asked))
        return self._takes


def wish(*paths: str, arguments: str = "{}", call: str = "call-1") -> Asked:
    return Asked(call, "write", arguments, paths)


def allowed(root: Path, *paths: str) -> bool:
    """By a policy that allows everything but what is outside."""
    desk = Desk(root, Policy())
    answer = run(desk.questions.ask(wish(*paths)))
    assert desk.put == []
    return answer.allow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "project-evil").mkdir()
    return folder


def test_files_of_the_project_may_be_written_however_they_are_named(root: Path) -> None:
    assert allowed(root, "a.py", "src/b.py", str(root / "c.py"), "src/../d.py", "")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x", "../project-evil/x", "~/x", "~root/x"])
def test_files_outside_of_it_may_not(root: Path, path: str) -> None:
    assert not allowed(root, path)


def test_a_link_is_judged_by_where_it_leads(root: Path) -> None:
    (root / "out").symlink_to(root.parent)
    (root / "back").symlink_to(root / "src")
    (root / "round").symlink_to(root / "round")
    assert not allowed(root, "out/x")
    assert allowed(root, "back/x")
    assert allowed(root, "round")


def test_a_project_that_is_itself_behind_a_link_is_inside(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert allowed(link, "a.py", str(link / "b.py"), str(root / "c.py"))


@pytest.mark.parametrize("path", ["a\0b", "half \ud800 a character", "/" + "x" * 300 + "/\0"])
def test_a_path_that_cannot_be_is_denied_and_nobody_hangs(root: Path, path: str) -> None:
    desk = Desk(root, ASK_ALL)
    answer = run(desk.questions.ask(wish(path)))
    assert not answer.allow
    assert "cannot be" in answer.why
    assert desk.put == []


def test_what_the_policy_knows_is_answered_at_once_with_the_reason(root: Path) -> None:
    desk = Desk(root, Policy(deny=("write:*.lock",), allow=("write",)))
    assert run(desk.questions.ask(wish("uv.lock"))) == Answered(False, "the rule 'write:*.lock'")
    assert run(desk.questions.ask(wish("a.py"))) == Answered(True, "the rule 'write'")
    assert not desk.questions.open


def test_what_it_does_not_know_waits_for_its_own_answer(root: Path) -> None:
    async def told() -> None:
        desk = Desk(root, ASK_ALL)
        first = asyncio.ensure_future(desk.questions.ask(wish("a.py")))
        second = asyncio.ensure_future(desk.questions.ask(wish("b.py")))
        await breathe()
        assert desk.questions.open
        ids = [which for which, _ in desk.put]
        assert len(set(ids)) == 2
        desk.questions.settle(ids[1], allow=False, why="no")
        desk.questions.settle("never asked", allow=True, why="")
        assert await second == Answered(False, "no")
        assert not first.done()
        desk.questions.settle(ids[0], allow=True, why="yes")
        assert await first == Answered(True, "yes")
        assert not desk.questions.open

    run(told())


def test_the_same_question_twice_at_once_has_one_answer_for_both(root: Path) -> None:
    async def told() -> None:
        desk = Desk(root, ASK_ALL)
        both = [asyncio.ensure_future(desk.questions.ask(wish("a.py", call=call))) for call in ("call-1", "call-2")]
        await breathe()
        (first, _), (second, _) = desk.put
        assert first == second
        desk.questions.settle(first, allow=True, why="")
        assert await asyncio.gather(*both) == [Answered(True)] * 2

    run(told())


def test_who_asks_without_end_is_told_no_until_some_answers_are_given(root: Path) -> None:
    async def told() -> None:
        desk = Desk(root, ASK_ALL)
        open_ones = [asyncio.ensure_future(desk.questions.ask(wish(f"{n}.py"))) for n in range(MOST_OPEN - 1)]
        open_ones.append(asyncio.ensure_future(desk.questions.ask(wish("0.py", call="again"))))
        await breathe()
        assert not (refused := await desk.questions.ask(wish("more.py"))).allow
        assert "waits for 100 answers" in refused.why
        assert len(desk.put) == MOST_OPEN
        open_ones.pop().cancel()  # it is withdrawn
        await breathe()
        again = asyncio.ensure_future(desk.questions.ask(wish("more.py")))
        await breathe()
        assert not again.done()
        desk.questions.settle_all("the turn has ended")
        assert {each.allow for each in await asyncio.gather(again, *open_ones)} == {False}
        assert not desk.questions.open

    run(told())


def test_one_who_has_left_in_the_meantime_is_not_answered(root: Path) -> None:
    async def told() -> None:
        desk = Desk(root, ASK_ALL)
        asking = asyncio.ensure_future(desk.questions.ask(wish("a.py")))
        await breathe()
        asking.cancel()
        await asyncio.wait({asking})
        assert not desk.questions.open
        desk.questions.settle(desk.put[0][0], allow=True, why="")

    run(told())


def test_where_nobody_can_be_asked_the_answer_is_no(root: Path) -> None:
    desk = Desk(root, ASK_ALL, open_for_questions=False)
    assert not run(desk.questions.ask(wish("a.py"))).allow
    assert not desk.questions.open


def test_the_same_wish_has_the_same_id_in_every_session_and_another_another() -> None:
    asked = wish("a.py")
    assert question_id("ada", asked) == question_id("ada", wish("a.py", call="call-9"))
    others = [
        question_id("bob", asked),
        question_id("ada", wish("b.py")),
        question_id("ada", wish("a.py", arguments="x")),
    ]
    assert len({question_id("ada", asked), *others}) == 4


def test_the_home_of_whoever_runs_the_tests_is_outside() -> None:
    """Or the paths with ~ above would show nothing."""
    assert os.path.expanduser("~/x") != "~/x"
