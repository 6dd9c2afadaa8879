"""What commands print: for people on a terminal, for programs in a pipe."""

import json
import os
import pty
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_kit import REMUDA, WITHIN, Project, environment, running


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with running(tmp_path_factory.mktemp("output")) as project:
        project.ok("spawn", "--name", "ada", "--message", 'playbook: [{"say": "\\u001b[31mred\\u001b[0m 日本\\n"}]')
        project.until_idle("ada", 1)
        project.ok("spawn", "--name", "bob", "--hold")
        yield project


def on_terminal(project: Project, *arguments: str, **env: str) -> str:
    """What a command writes on a terminal of 200 columns."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    with subprocess.Popen(
        [REMUDA, *arguments],
        cwd=project.root,
        env=environment(TERM="xterm", **env),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        data = b""
        while select.select([ours], [], [], WITHIN)[0]:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            data += more
        process.wait(WITHIN)
    os.close(ours)
    return data.decode()


READS = ("ps", "ps --all", "show ada", "logs ada", "events", "doctor", "version")


@pytest.mark.parametrize("read", READS)
def test_in_a_pipe_nothing_is_coloured_and_no_control_character_gets_through(project: Project, read: str) -> None:
    ran = project(*read.split())
    assert ran.code == 0
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("read", READS)
def test_every_read_speaks_json(project: Project, read: str) -> None:
    assert isinstance(project(*read.split(), "--json").json, dict)


def test_a_terminal_gets_colour_unless_it_says_no(project: Project) -> None:
    assert "\x1b[32mready" in on_terminal(project, "ps")
    assert "\x1b" not in on_terminal(project, "ps", NO_COLOR="1")
    assert "\x1b" in on_terminal(project, "doctor")
    assert "\x1b" not in on_terminal(project, "doctor", NO_COLOR="1")


def test_what_an_agent_says_cannot_colour_the_terminal(project: Project) -> None:
    shown = on_terminal(project, "logs", "ada")
    assert "\x1b" not in shown
    assert r"\x1b[31mred" in shown
    assert "日本" in shown


def test_scripted_agents_are_marked_in_the_list_and_in_json(project: Project) -> None:
    assert project.ok("ps").count("scripted (not a model)") == 2
    assert all(row["scripted"] for row in project("ps", "--json").json["agents"])


def test_the_long_way_and_the_quick_way_list_the_same(project: Project) -> None:
    quick = project("ps").out
    slow = subprocess.run(
        [REMUDA.parent / "python", "-c", "import sys; from remuda.cli.group import run; sys.exit(run(['ps']))"],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [line.split()[:4] for line in quick.splitlines()] == [line.split()[:4] for line in slow.splitlines()]


def test_whoever_closes_the_pipe_early_is_not_shouted_at(project: Project) -> None:
    for command in ("ps", "events -n 1000", "logs ada", "--help", "show ada"):
        done = subprocess.run(
            ["sh", "-c", f"'{REMUDA}' {command} | true"],
            cwd=project.root,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == "", command


def test_ctrl_c_ends_a_follower_without_a_traceback(project: Project) -> None:
    with subprocess.Popen(
        [REMUDA, "events", "-f", "-n", "1"],
        cwd=project.root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(2)
        _, err = process.communicate(timeout=WITHIN)
    assert process.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_this_shell(project: Project, shell: str) -> None:
    assert "_REMUDA_COMPLETE" in project.ok("completion", shell)


def test_completion_knows_commands_and_agents(project: Project) -> None:
    def complete(words: str) -> str:
        count = str(len(words.split(" ")) - 1)
        return project("", _REMUDA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count).out

    assert "plain,spawn" in complete("remuda sp")
    assert "plain,ada" in complete("remuda show a")


def test_help_lists_every_command_and_a_bare_call_is_a_call_for_help(project: Project) -> None:
    from remuda.cli.group import COMMANDS

    said = project.ok("--help")
    assert all(f"  {name} " in said for name in COMMANDS)
    assert project.ok() == said
    for name in COMMANDS:
        assert "Usage: remuda" in project.ok(name, "--help")


def test_importing_remuda_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import remuda; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([REMUDA.parent / "python", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == ["remuda", "remuda.version"]


def test_the_quick_way_imports_neither_click_nor_the_domain() -> None:
    code = (
        "import sys, remuda.cli.entry; print([n for n in sys.modules if n in ('click', 'msgspec', 'socket', 'json')])"
    )
    done = subprocess.run([REMUDA.parent / "python", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_remuda_open_is_the_same_door_for_programs(tmp_path: Path) -> None:
    (tmp_path / ".remuda").mkdir()
    code = """
import asyncio, sys, pathlib, remuda
from remuda.domain.commands import SpawnAgent
async def main():
    async with remuda.open(pathlib.Path(sys.argv[1])) as runtime:
        print(await runtime.spawn(SpawnAgent(role="worker", backend="", hold=True)))
asyncio.run(main())
"""
    done = subprocess.run(
        [REMUDA.parent / "python", "-c", code, tmp_path], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "worker-1"
