"""`remuda run` with a model that coordinates, as people type it: the real command, runtime and program.

The idea carries the play of the coordinator, one move for each time that it is called; the tasks that it makes carry
those of their workers.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from adapters.git_kit import commit, fsck, make_repository, sh, users
from e2e.cli_kit import REMUDA, Project, environment
from live.kit import WITHIN
from live.native_kit import NATIVE, find_cli, script
from remuda.runtime.place import make_place
from remuda.scripted_model import ScriptedModel

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

WORKERS = ("worker-1", "worker-2")


def tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool": {"name": name, "arguments": arguments}}


def work(word: str) -> str:
    approve = script(tool("report_review_verdict", verdict="APPROVED", comments="Good."))
    summary = f"Done. {approve}"
    return script({"shell": f"echo {word} > {word}.txt"}, tool("report_implementation_complete", summary=summary))


NEXT: dict[str, Any] = {"end": True}  # it is called again when something has happened
IDEA = "Write two files. " + script(
    tool(
        "add_tasks",
        epic="t1",
        tasks=[
            {"key": "a", "title": "First", "description": work("first")},
            {"key": "b", "title": "Second", "description": work("second"), "needs": ["a"]},
        ],
    ),
    *(tool("spawn_worker", name=name) for name in WORKERS),
    tool("assign_task", task="t2", worker=WORKERS[0]),
    NEXT,
    tool("assign_review", task="t2", worker=WORKERS[1]),
    NEXT,
    tool("approve_commit", task="t2"),
    NEXT,
    tool("assign_task", task="t3", worker=WORKERS[1]),
    NEXT,
    tool("assign_review", task="t3", worker=WORKERS[0]),
    NEXT,
    tool("approve_commit", task="t3"),
    NEXT,
    tool("signal_complete", summary="Both files are there."),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = make_repository(tmp_path / "project")
    commit(root, "Begin", read_me="nothing\n")
    home = {}
    for variable in ("HOME", "TMPDIR"):  # Codex puts no programs into a home below the folder for temporary files
        (tmp_path / variable).mkdir()
        home[variable] = str(tmp_path / variable)
    settings = tmp_path / "HOME" / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(f'model = "{NATIVE["codex"].plain_model}"\n')  # one that is shown the tools of tool servers
    return Project(root, home)


@pytest.mark.parametrize("name", NATIVE)
def test_a_model_plans_and_directs_the_work_and_is_let_go_when_it_is_done(project: Project, name: str) -> None:
    native, root = NATIVE[name], project.root
    project.env.update({native.key: "opens-nothing", "PATH": f"{find_cli(name).parent}:{os.environ['PATH']}"})
    make_place(root)

    async def story() -> tuple[int, str]:
        async with asyncio.timeout(WITHIN), ScriptedModel() as model:
            (root / "remuda.toml").write_text(
                "".join(f'[meter.upstreams.{api}]\nurl = "{model.url}"\n' for api in ("anthropic", "openai-responses"))
            )
            before = users(root)
            child = await asyncio.create_subprocess_exec(
                *(str(REMUDA), "run", IDEA, "--coordinator", name, "--backend", name, "--accept", "test -f first.txt"),
                cwd=root,
                env=environment(**project.env),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            out, _ = await child.communicate()
            assert users(root) == before
            return await child.wait(), out.decode()

    code, out = asyncio.run(story())
    assert code == 0, out
    assert "says that all is done: Both files are there." in out
    for part in ("t2", "t3"):
        assert f"{part} is merged" in out
    left = json.loads(project.ok("ps", "--all", "--json"))["agents"]
    assert {(each["name"], each["status"]) for each in left} == {
        ("coordinator-of-t1", "retired"),
        *((each, "retired") for each in WORKERS),
    }
    fsck(root)
    assert sh(root, "git", "show", "remuda/merged:first.txt", "remuda/merged:second.txt") == "first\nsecond"
