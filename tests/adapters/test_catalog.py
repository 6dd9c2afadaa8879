"""The catalog of backends."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder, allow_all, launch_in
from remuda.agents import Backend, McpServer
from remuda.agents.catalog import CATALOG, Custom, Row, backend, backends, prepare, with_custom
from remuda.domain.errors import AgentFault, Invalid
from remuda.domain.failure import Failure

Program = Callable[[str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program of some name on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))

    def put(name: str) -> Path:
        path = folder / name
        path.write_text("#!/bin/sh\necho 'version 1.2.3'\n")
        path.chmod(0o755)
        return path

    return put


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid) as caught:
        backend("scriptd")
    assert caught.value.possible[0] == "scripted"
    assert set(caught.value.possible) == set(CATALOG)


def test_an_unknown_option_is_refused_before_anything_starts(tmp_path: Path) -> None:
    heard = Recorder()
    with pytest.raises(Invalid, match="playbok") as caught:
        asyncio.run(_start("scripted", tmp_path, heard))
    assert caught.value.possible[0] == "playbook"
    assert heard.updates == []


def test_the_scripted_agent_never_passes_for_a_model() -> None:
    title = CATALOG["scripted"].title.lower()
    assert "scripted" in title
    assert "not a model" in title


def test_every_real_agent_says_how_to_install_it() -> None:
    assert [name for name, row in CATALOG.items() if not row.install] == ["scripted"]


def test_an_agent_that_is_not_installed_says_so_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentFault, match="npm install -g @github/copilot") as caught:
        prepare(CATALOG["copilot"], launch_in(tmp_path))
    assert caught.value.failure is Failure.NOT_INSTALLED


def test_only_the_variables_that_an_agent_may_see_pass_to_it(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("gemini")
    for name in ("GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "ANTHROPIC_API_KEY", "DATABASE_PASSWORD"):
        monkeypatch.setenv(name, "secret")
    launch, _ = prepare(CATALOG["gemini"], launch_in(tmp_path, env={"DECLARED": "yes"}))
    assert {name for name, value in launch.env.items() if value == "secret"} == {
        "GEMINI_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
    }
    assert launch.env["DECLARED"] == "yes"
    assert launch.env["GEMINI_CLI_NO_RELAUNCH"] == "true"


def test_what_a_launch_declares_goes_before_the_users_environment(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("goose")
    monkeypatch.setenv("GOOSE_MODEL", "theirs")
    launch, _ = prepare(CATALOG["goose"], launch_in(tmp_path, env={"GOOSE_MODEL": "ours"}))
    assert launch.env["GOOSE_MODEL"] == "ours"


def test_a_model_goes_in_by_the_flag_that_the_agent_has(tmp_path: Path, program: Program) -> None:
    path = program("gemini")
    launch, argv = prepare(CATALOG["gemini"], launch_in(tmp_path, model="gemini-2.5-pro"))
    assert argv == (str(path), "--acp", "--model", "gemini-2.5-pro")
    assert launch.model == ""


@pytest.mark.parametrize(("option", "word"), [((), "ask"), ((("permissions", "bypass"),), "allow")])
def test_opencode_asks_before_it_uses_a_tool_unless_it_is_told_not_to(
    tmp_path: Path, program: Program, option: tuple[tuple[str, str], ...], word: str
) -> None:
    program("opencode")
    launch, _ = prepare(CATALOG["opencode"], launch_in(tmp_path, options=option))
    assert launch.env["OPENCODE_PERMISSION"] == f'{{"*":"{word}"}}'


def test_an_agent_that_never_asks_is_not_said_to_ask(tmp_path: Path, program: Program) -> None:
    program("pi-acp")
    with pytest.raises(Invalid, match="cannot be made to ask"):
        prepare(CATALOG["pi"], launch_in(tmp_path, options=(("permissions", "ask"),)))


def test_tool_servers_for_an_agent_that_cannot_use_them_are_a_fault(tmp_path: Path, program: Program) -> None:
    program("pi-acp")
    with pytest.raises(AgentFault, match="tool servers"):
        prepare(CATALOG["pi"], launch_in(tmp_path, mcp_servers=(McpServer("x", ("x",)),)))


def test_a_home_of_its_own_is_furnished_and_what_is_there_stays(tmp_path: Path, program: Program) -> None:
    program("gemini")
    home = tmp_path / "home"
    prepare(CATALOG["gemini"], launch_in(tmp_path, env={"HOME": str(home)}))
    settings = home / ".gemini/settings.json"
    assert "gemini-api-key" in settings.read_text()
    settings.write_text("mine")
    prepare(CATALOG["gemini"], launch_in(tmp_path, env={"HOME": str(home)}))
    assert settings.read_text() == "mine"


def test_a_program_that_a_python_package_brings_along_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "brings_it"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('nobody needs to import this')")
    (package / "tool").touch(mode=0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    _, argv = prepare(Row("Tool", "no-such-tool", bundled=(("brings_it", "tool"),)), launch_in(tmp_path))
    assert argv == (str(package / "tool"),)


def test_a_custom_command_is_a_backend_and_sees_only_the_variables_it_names(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("my-agent")
    monkeypatch.setenv("MY_KEY", "secret")
    monkeypatch.setenv("OTHER_KEY", "secret")
    rows = with_custom({"mine": Custom(("my-agent", "--acp"), ("MY_KEY",), "My own")})
    launch, argv = prepare(rows["mine"], launch_in(tmp_path))
    assert argv[1:] == ("--acp",)
    assert "MY_KEY" in launch.env
    assert "OTHER_KEY" not in launch.env
    backends(rows)("mine")
    with pytest.raises(Invalid):
        backend("mine")


def test_another_command_for_a_known_agent_keeps_what_is_known_of_it() -> None:
    rows = with_custom({"goose": Custom(("/opt/goose", "acp", "--fast"))})
    assert (rows["goose"].program, rows["goose"].arguments) == ("/opt/goose", ("acp", "--fast"))
    assert rows["goose"].quirks == CATALOG["goose"].quirks


async def _start(name: str, folder: Path, heard: Recorder) -> None:
    await backend(name)(launch_in(folder, options=(("playbok", "x"),)), heard, allow_all)


def test_another_command_for_an_agent_with_a_protocol_of_its_own_is_the_one_that_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    mine = tmp_path / "my-claude"
    mine.write_text('#!/bin/sh\necho "it is mine: $1 $2" >&2\nexit 7\n')
    mine.chmod(0o755)
    start = backends(with_custom({"claude": Custom((str(mine), "--mine"))}))("claude")
    with pytest.raises(AgentFault, match="it is mine: --mine -p"):
        asyncio.run(_open(start, tmp_path))


async def _open(start: Backend, folder: Path) -> None:
    await start(launch_in(folder, backend="claude"), Recorder(), allow_all)
