"""`remuda gateway add, list, probe, validate, approve, stats`, each through the command line's own door."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.kit import CHILD
from gateway.serve_kit import write_settings
from remuda.cli.group import run
from remuda.gateway.config import load_config, state_folder
from remuda.runtime.tool_servers import ServerSettings


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Remuda = Callable[..., Said]


@pytest.fixture
def remuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Remuda:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def type_(*arguments: str) -> Said:
        capfd.readouterr()
        code = run(["gateway", *arguments])
        return Said(code, *capfd.readouterr())

    return type_


def test_a_server_is_added_to_the_nearest_file_and_what_stands_there_stays(remuda: Remuda) -> None:
    path = Path("gateway.toml")
    path.write_text("# mine\n[gateway]\nidle_turns = 7  # lucky")
    path.chmod(0o640)
    said = remuda("add", "git", "-k", "commit", "-e", "T=${env:T}", "--about", 'a "b"', "--", "uvx", "mcp-git", "--x")
    assert (said.code, said.err) == (0, "")
    assert path.read_text().startswith("# mine\n[gateway]\nidle_turns = 7  # lucky\n\n[gateway.servers.git]\n")
    assert path.stat().st_mode & 0o777 == 0o640
    assert load_config(path).servers["git"] == ServerSettings(
        command=("uvx", "mcp-git", "--x"), env={"T": "${env:T}"}, keywords=("commit",), description='a "b"'
    )
    assert remuda("add", "far", "--url", "https://far.example/mcp", "--header", "X=1", "--json").json["added"] == "far"
    assert sorted(load_config(path).servers) == ["far", "git"]


def test_without_a_project_it_is_added_to_the_users_own_file(remuda: Remuda, tmp_path: Path) -> None:
    assert remuda("add", "git", "git-server").code == 0
    own = tmp_path / "xdg_config_home" / "remuda" / "gateway.toml"
    assert own.stat().st_mode & 0o777 == 0o600
    assert [row["name"] for row in remuda("list", "--json").json["servers"]] == ["git"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["add", "git", "x"], 3, "already"),
        (["add", "Bad Name", "x"], 2, "cannot be the name"),
        (["add", "none"], 2, "`remuda gateway add none -- COMMAND…`, or where it is: --url"),
        (["add", "x", "-e", "hunter2", "y"], 2, "NAME=VALUE"),
        (["add", "x", "--", "y", "--key=${env:KEY}"], 2, "which others can read"),
        (["probe", "nobody"], 3, "possible: git"),
        (["add", "x", "--keywords", "a", "--", "uvx", "x"], 2, "'--keyword'"),  # no part of the command
        (
            ["add", "x", "uvx", "x", "--repository", "."],
            2,
            "its options stand after --: `remuda gateway add NAME -- COMMAND…`",
        ),
        (["approve", "nobody"], 3, "possible: git"),
        (["approve", "git"], 3, "nothing to approve"),
        (["list", "--config", "gone.toml"], 2, "there is no file"),
        (["import", "gone.json"], 2, "there is no file"),
        (["import"], 3, "name a file"),
        (["lst"], 2, "lst"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_next_step(
    remuda: Remuda, arguments: list[str], code: int, said: str
) -> None:
    Path("gateway.toml").write_text('[gateway.servers.git]\ncommand = ["x"]\n')
    before = Path("gateway.toml").read_bytes()
    answered = remuda(*arguments)
    assert answered.code == code
    assert said in answered.err
    assert "hunter2" not in answered.err
    assert Path("gateway.toml").read_bytes() == before


def test_a_file_that_nothing_can_be_added_to_is_left_as_it_is(remuda: Remuda) -> None:
    text = '[gateway]\nservers = { git = { command = ["x"] } }\n'
    Path("gateway.toml").write_text(text)
    assert remuda("add", "two", "y").code == 2
    assert Path("gateway.toml").read_text() == text


def test_probing_starts_each_measures_it_and_tells_what_is_wrong_with_the_others(remuda: Remuda) -> None:
    write_settings(Path(), {"one": {"tools": ["echo", "pid"]}, "broken": {"die": True}})
    with Path("gateway.toml").open("a") as file:
        file.write('[gateway.servers.gone]\ncommand = ["no-such-program"]\n')
        file.write(
            f'[gateway.servers.shy]\ncommand = ["{sys.executable}", "{CHILD}"]\nenv = {{ A = "${{env:NOT_SET}}" }}\n'
        )
    rows = {row["name"]: row for row in remuda("probe", "one", "gone", "shy", "--json").json["servers"]}
    assert rows["one"]["tools"] == ["echo", "pid"]
    assert rows["one"]["tokens"] > 10
    assert rows["one"]["seconds"] > 0
    assert "no-such-program" in rows["gone"]["error"]
    assert "NOT_SET, which is not set" in rows["shy"]["error"]
    listed = {row["name"]: row for row in remuda("list", "--json").json["servers"]}
    assert (listed["one"]["tools"], listed["one"]["tokens"]) == (2, rows["one"]["tokens"])
    assert listed["gone"]["tools"] is None
    shown = remuda("list").out
    assert "not started yet" in shown
    assert "ready" in shown


def test_what_a_server_wrote_before_it_died_is_shown_line_by_line(remuda: Remuda) -> None:
    remuda("add", "dying", "--", sys.executable, "-c", "import sys; sys.exit('first\\nsecond')")
    said = remuda("probe")
    assert said.code == 1
    assert said.out.endswith("\ndying: first\ndying: second\n")


def test_changed_tools_are_shown_approved_and_taken(remuda: Remuda) -> None:
    write_settings(Path(), {"one": {"tools": ["echo"]}})
    assert remuda("probe", "--json").code == 0
    write_settings(Path(), {"one": {"tools": ["echo", "pid"]}})
    assert remuda("probe", "--json").json["servers"][0]["tools"] == ["echo"]
    assert "approve" in remuda("probe").out
    assert "changed" in remuda("list").out
    assert [tool["name"] for tool in remuda("approve", "one", "--show", "--json").json["tools"]] == ["pid"]
    shown = remuda("approve", "one", "--show").out
    assert '"pid" (new)\n  + description: "does pid"\n' in shown
    assert "`remuda gateway approve one` takes them" in shown
    assert remuda("probe", "--json").json["servers"][0]["tools"] == ["echo"]
    assert "new: pid" in remuda("approve", "one").out
    assert remuda("probe", "--json").json["servers"][0]["tools"] == ["echo", "pid"]


def test_validating_tells_every_fault_and_starts_nothing(remuda: Remuda) -> None:
    Path("gateway.toml").write_text(
        '[gateway.servers.good]\ncommand = ["no-such-program"]\n'
        '[gateway.servers.bad]\n[gateway.servers.shy]\ncommand = ["x"]\nenv = { A = "${env:NOT_SET}" }\n'
    )
    said = remuda("validate", "--json")
    assert said.code == 2
    assert sorted(said.json["faults"]) == ["bad", "shy"]
    assert "1 of 3 servers" in remuda("validate").out
    Path("gateway.toml").write_text('[gateway.servers.good]\ncommand = ["no-such-program"]\n')
    assert remuda("validate").code == 0


def test_where_there_are_no_servers_it_is_said_how_to_come_by_some(remuda: Remuda) -> None:
    for command in ("list", "probe", "validate"):
        said = remuda(command)
        assert said.code == 0
        assert "`remuda gateway add` adds one, `remuda gateway import` those of others" in said.out


def test_a_secret_that_is_typed_in_is_written_and_its_owner_told_of_a_better_way(remuda: Remuda) -> None:
    typed = ("--header", "Authorization=Bearer abc", "--header", "X-Key=${env:K}", "--header", "X-Team=a")
    said = remuda("add", "far", "--url", "https://far.example/mcp", *typed, "--user")
    assert said.code == 0
    assert "Authorization stands in" in said.err
    assert "X-Key" not in said.err
    assert "abc" not in said.err + said.out


def test_a_server_that_is_off_needs_no_secrets(remuda: Remuda) -> None:
    Path("gateway.toml").write_text(
        '[gateway.servers.a]\ncommand = ["x"]\nenabled = false\nenv = { A = "${env:NOT_SET}" }\n'
    )
    assert remuda("validate").code == 0


def test_statistics_are_those_of_the_gateways_that_ran(remuda: Remuda) -> None:
    Path("gateway.toml").write_text("")
    assert "has run yet" in remuda("stats").out
    folder = state_folder(Path("gateway.toml").absolute()) / "stats"
    folder.mkdir(parents=True)
    line = {"tools": 2, "tokens": 300, "starts": 1, "calls": 4, "idled": 1}
    (folder / "last.json").write_text(json.dumps({"turn": 9, "servers": {"postgres": line}, "listed": 0}))
    (folder / "123.json").write_text("{")
    assert "turn 9" in remuda("stats").out
    assert remuda("stats", "--json").json["gateways"]["last"]["saved_percent"] == 100
