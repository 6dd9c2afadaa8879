"""The main job with real programs: Claude Code and Codex on the scripted model turn three tasks into verified commits.

The play is written into the tasks themselves, for a prompt carries its script: a task's text tells its author what to
do, the author's summary tells the reviewer, the reviewer's comments tell the author again; what a failed check prints
and the lines of a conflict tell whoever has to mend them. Who plays which part is the coordinator's choice.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapters.git_kit import commit, fsck, make_dirty, make_repository, sh, users
from e2e.work_kit import Site, site
from live.kit import WITHIN
from live.native_kit import NATIVE, find_cli
from remuda.domain.lifecycle import TaskStatus
from remuda.domain.task import Brief, NewTask, Refusal
from remuda.domain.task_events import AcceptanceRun, MergeRefused, TaskMerged, VerdictGiven
from remuda.runtime.place import make_place
from remuda.scripted_model import ScriptedModel

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

CHECK = 'for each in *.txt; do ! grep -q bug "$each" || { echo "$each has a bug"; cat hint-of-$each; exit 1; }; done\n'


def mark(*steps: dict[str, Any]) -> str:
    return f"[[model: {json.dumps(steps)}]]"


def shell(command: str) -> dict[str, Any]:
    return {"shell": command}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": {"name": name, "arguments": arguments}}


def done(then: str) -> dict[str, Any]:
    """The author reports, and its summary tells the reviewer what to do."""
    return tool("report_implementation_complete", summary=f"Done. {then}")


def verdict(word: str, comments: str) -> str:
    return mark(tool("report_review_verdict", verdict=word, comments=comments))


GOOD = verdict("APPROVED", "Good.")
SAVE = "git add --all && git commit -q -m 'Work on it'"


def listing(word: str) -> str:
    """A line of the file that both change, with what to do should it conflict."""
    resolved = mark({"say": f"Where it says {word}: "}, shell("printf 'one\\ntwo\\n' > list.md"), done(GOOD))
    return f"cat > list.md <<'END'\n{word}\n{resolved}\nEND"


HINT = mark(shell(f"echo mended > a.txt; {SAVE}"), done(GOOD))
BETTER = f"Please do better. {mark(shell(f'echo better > c.txt; {SAVE}'), done(GOOD))}"
FIRST = mark(shell(f"echo bug > a.txt; {listing('one')}\n{SAVE}"), done(GOOD))
SECOND = mark(shell(f"echo b > b.txt; {listing('two')}\n{SAVE}"), done(GOOD))
THIRD = mark(shell("echo poor > c.txt"), done(verdict("DENIED", BETTER)))  # and leaves it uncommitted


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_repository(tmp_path / "project")
    commit(root, "A check", check_sh=CHECK, list_md="nothing\n")
    (root / "hint-of-a.txt").write_text(HINT)
    commit(root, "A hint")
    for variable in ("HOME", "TMPDIR"):  # Codex puts no programs into a home below the folder for temporary files
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    programs = [str(find_cli(name).parent) for name in NATIVE]
    monkeypatch.setenv("PATH", ":".join([*programs, sh(root, "sh", "-c", "echo $PATH")]))
    for native in NATIVE.values():
        monkeypatch.setenv(native.key, "opens-nothing")
    make_place(make_dirty(root, hooks=()))
    return root


async def hire(at: Site, name: str, url: str) -> str:
    native = NATIVE[name]
    options = {"base_url": url + native.path, "max_retries": "1", **native.options}
    return await at.hire(name, model=native.plain_model or native.model, options=tuple(options.items()))


def test_claude_and_codex_turn_three_tasks_into_verified_commits(project: Path, tmp_path: Path) -> None:
    before = users(project)
    accept = ("sh check.sh",)

    async def story() -> None:
        async with ScriptedModel() as model, site(project) as at:
            workers = {await hire(at, name, model.url): name for name in NATIVE}
            await at.add(
                NewTask(Brief("First", FIRST, accept=accept)),
                NewTask(Brief("Second", SECOND, accept=accept)),
                NewTask(Brief("Third", THIRD, accept=accept, needs=("t1",))),
            )
            await at.until_finished(WITHIN)
            await verify(at, workers)

    async def verify(at: Site, workers: dict[str, str]) -> None:
        assert {
            task.id: (task.status, task.why) for task in at.tasks.values() if task.status is not TaskStatus.DONE
        } == {}
        assert [each.task for each in await at.events(AcceptanceRun) if not each.check.ok] == ["t1"]
        verdicts = await at.events(VerdictGiven)
        assert [each.task for each in verdicts if not each.verdict.approved] == ["t3"]
        assert all(each.verdict.reviewer not in at.tasks[each.task].authors for each in verdicts)
        assert [each.reason for each in await at.events(MergeRefused)] == [Refusal.CONFLICT]
        merged = [each.task for each in await at.events(TaskMerged)]
        assert sorted(merged) == ["t1", "t2", "t3"]
        assert merged.index("t1") < merged.index("t3")
        authors = {workers[name] for task in at.tasks.values() for name in task.authors}
        assert authors == {"claude", "codex"}

    asyncio.run(story())
    assert users(project) == before
    fsck(project)
    sh(tmp_path, "git", "clone", "-q", "--branch", "remuda/merged", str(project), "result")
    result = tmp_path / "result"
    sh(result, "sh", "check.sh")
    assert {name: (result / name).read_text() for name in ("a.txt", "b.txt", "c.txt", "list.md")} == {
        "a.txt": "mended\n",
        "b.txt": "b\n",
        "c.txt": "better\n",
        "list.md": "one\ntwo\n",
    }
