"""The settings of other programs, taken over without their secrets."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway_intent.test_cli import Remuda, remuda
from remuda.domain.errors import Invalid
from remuda.gateway.config import load_config
from remuda.gateway.foreign import Place
from remuda.gateway.imports import Source, import_from, program_of, without_comments
from remuda.gateway.writing import add_servers
from remuda.runtime.tool_servers import AuthSettings, ServerSettings

__all__ = ["remuda"]

CODEX = """
model = "x"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env_vars = ["HOME_TOKEN"]
[mcp_servers.far]
url = "https://far.example/mcp"
bearer_token_env_var = "FAR"
env_http_headers = { X-Team = "TEAM" }
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["a"]
disabled_tools = ["b"]
"""
VSCODE = """
{
  // ours
  "inputs": [{"id": "key", "type": "promptString"},],
  "servers": {
    "Perplexity Search": {
      "type": "stdio", "command": "npx", "args": ["-y", "https://x//y"], "env": {"API": "${input:key}"}
    },
    "old": {"type": "sse", "url": "https://old.example/sse"}, /* the last */
  },
}
"""


def taken(folder: Path, program: str, text: str) -> tuple[dict[str, ServerSettings], str]:
    path = folder / "settings"
    path.write_text(text)
    found = import_from(Source(program, path), Place(folder, Path("/home/me"), folder, {"SET": "1"}))
    return found.servers, "\n".join(found.notes)


def claude(folder: Path, **servers: Any) -> tuple[dict[str, ServerSettings], str]:
    return taken(folder, "claude", json.dumps({"mcpServers": servers}))


def test_claudes_servers_are_taken_and_a_secret_is_referred_to_and_not_copied(tmp_path: Path) -> None:
    servers, notes = claude(
        tmp_path,
        gh={
            "command": "npx",
            "args": ["-y", "gh"],
            "env": {"GITHUB_TOKEN": "ghp_abc", "MODE": "fast", "V": "${W:-x}", "S": "${SET:-x}"},
        },
        far={"type": "http", "url": "https://far.example", "headers": {"Authorization": "Bearer abc", "X-A": "b"}},
    )
    assert servers["gh"] == ServerSettings(
        command=("npx", "-y", "gh"),
        env={"GITHUB_TOKEN": "${env:GITHUB_TOKEN}", "MODE": "fast", "V": "x", "S": "${env:SET}"},
    )
    assert servers["far"].headers == {"Authorization": "Bearer ${env:FAR_TOKEN}", "X-A": "b"}
    assert "export GITHUB_TOKEN" in notes
    assert "export FAR_TOKEN" in notes
    assert "abc" not in notes + repr(servers)


def test_the_servers_of_this_project_in_claudes_own_file_are_taken_and_no_other_projects(tmp_path: Path) -> None:
    mine, others = {"mcpServers": {"mine": {"command": "a"}}}, {"mcpServers": {"others": {"command": "b"}}}
    whole = {"mcpServers": {"all": {"command": "c"}}, "projects": {str(tmp_path): mine, "/elsewhere": others}}
    assert sorted(taken(tmp_path, "claude", json.dumps(whole))[0]) == ["all", "mine"]


def test_a_file_that_holds_megabytes_of_other_things_is_read(tmp_path: Path) -> None:
    whole = {"history": ["x" * 1000] * 3000, "mcpServers": {"a": {"command": "x"}}}
    assert list(taken(tmp_path, "claude", json.dumps(whole))[0]) == ["a"]


def test_codexs_servers_are_taken(tmp_path: Path) -> None:
    servers, _ = taken(tmp_path, "codex", CODEX)
    assert servers["docs"].env == {"HOME_TOKEN": "${env:HOME_TOKEN}"}
    assert servers["far"] == ServerSettings(
        url="https://far.example/mcp",
        headers={"X-Team": "${env:TEAM}"},
        auth=AuthSettings(type="bearer", token="${env:FAR}"),
        allow=("a",),
        deny=("b",),
        start_seconds=20.0,
        call_seconds=45.5,
    )


def test_geminis_servers_are_taken(tmp_path: Path) -> None:
    given = {
        "local": {"command": "x", "cwd": "sub", "env": {"KEY": "$MY_KEY"}, "excludeTools": ["rm"], "trust": True},
        "http": {"httpUrl": "https://a.example/mcp"},
        "sse": {"url": "https://a.example/sse"},
    }
    servers, _ = taken(tmp_path, "gemini", json.dumps({"theme": "x", "mcpServers": given}))
    assert servers["local"].env == {"KEY": "${env:MY_KEY}"}
    assert (servers["local"].cwd, servers["local"].deny) == ("sub", ("rm",))
    assert (servers["http"].kind, servers["sse"].kind) == ("http", "sse")


def test_vs_codes_servers_are_taken_with_comments_and_inputs(tmp_path: Path) -> None:
    servers, notes = taken(tmp_path, "vscode", VSCODE)
    assert servers["perplexity-search"].command == ("npx", "-y", "https://x//y")
    assert servers["perplexity-search"].env == {"API": "${env:KEY}"}
    assert servers["old"].kind == "sse"
    assert "vscode asks for API; here export KEY, or write NAME=value into" in notes
    assert "is called perplexity-search here" in notes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": "x", "args": ["--key=${KEY}"]}, "odd was left out: its command names KEY"),
        (
            {"command": "x", "args": ["--api-key", "abcdefgh1"]},
            "left out: its command holds what may be a secret (after",
        ),
        ({"command": "docker", "args": ["run", "-e", "API_TOKEN=abcdefgh1"]}, "may be a secret (after API_TOKEN)"),
        ({"command": "x", "args": ["postgresql://me:pw@localhost/db"]}, "may be a secret (in an address or key)"),
        ({"url": "https://x.example/mcp?api_key=abc"}, "left out: its url holds what may be a secret (api_key)"),
        ({"url": "https://x.example/mcp", "oauth": {}, "headersHelper": "x"}, "not taken over: headersHelper, oauth"),
        ({"command": "x", "url": "https://x.example"}, "it has a command and a url; the command was taken"),
        ({"command": "x", "envFile": "${workspaceFolder}/.env"}, "/.env; name that file with env_file under [gateway]"),
        ({"url": "ftp://x"}, "must begin with https://"),
        ({}, "a command or a url"),
    ],
)
def test_what_cannot_be_taken_over_is_told(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    assert said in claude(tmp_path, odd=given)[1]


def test_folders_are_written_out_and_options_that_are_no_secrets_are_kept(tmp_path: Path) -> None:
    args = [
        "${workspaceFolder}/s.js",
        "--auth",
        "none",
        "--key-file",
        "~/long/path.pem",
        "--author",
        "somebody",
        "$FOO",
    ]
    args += ["--token-limit=100000000", "-e", "API_TOKEN", "mcp-server@1.2.3"]
    servers, notes = claude(
        tmp_path, a={"command": "${HOME}/x", "args": args, "cwd": "${PWD}", "env": {"R": "${userHome}"}}
    )
    assert servers["a"].command == ("/home/me/x", f"{tmp_path}/s.js", *args[1:])
    assert (servers["a"].cwd, servers["a"].env) == (str(tmp_path), {"R": "/home/me"})
    assert notes == ""


def test_a_folder_is_the_same_one_wherever_its_server_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text(
        json.dumps({"mcpServers": {"a": {"command": "x", "cwd": "sub"}, "b": {"command": "x", "cwd": "~/s"}}})
    )
    here, there = Place(tmp_path, tmp_path, tmp_path, {}), Place(tmp_path, tmp_path, Path("/etc"), {})
    both = [import_from(Source("cursor", path), place).servers for place in (here, there)]
    assert [found["a"].cwd for found in both] == ["sub", str(tmp_path / "sub")]
    assert [found["b"].cwd for found in both] == ["~/s", "~/s"]


def test_two_servers_with_a_key_of_their_own_do_not_share_a_variable(tmp_path: Path) -> None:
    first, second = {"API_KEY": "one"}, {"API_KEY": "two", "DB": "postgres://me:pw@x/y"}
    servers, notes = claude(
        tmp_path,
        a={"command": "x", "env": first},
        b={"command": "x", "env": second},
        c={"command": "x", "env": first},
        d={"url": "https://d.example", "headers": {"X-Api-Key": "three"}},
    )
    assert [servers[name].env["API_KEY"] for name in "abc"] == ["${env:API_KEY}", "${env:B_API_KEY}", "${env:API_KEY}"]
    assert servers["b"].env["DB"] == "${env:DB}"
    assert servers["d"].headers == {"X-Api-Key": "${env:D_X_API_KEY}"}
    assert "export B_API_KEY" in notes


@pytest.mark.parametrize(
    ("program", "given", "seconds"),
    [
        ("gemini", {"timeout": 15000}, (30.0, 15.0)),
        ("claude", {"timeout": 1500}, (30.0, 1.5)),
        ("cursor", {"timeout": 1500}, (30.0, 300.0)),
        ("gemini", {"timeout": "soon"}, (30.0, 300.0)),
    ],
)
def test_how_long_a_call_may_take_is_taken_over(
    tmp_path: Path, program: str, given: dict[str, Any], seconds: tuple[float, float]
) -> None:
    servers, _ = taken(tmp_path, program, json.dumps({"mcpServers": {"a": {"command": "x", **given}}}))
    assert (servers["a"].start_seconds, servers["a"].call_seconds) == seconds


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": ' * 5000, "\x00", '"text"', "{'a': 1}"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid, match="settings"):
        taken(tmp_path, "cursor", text)


@pytest.mark.parametrize("servers", [None, [], "x", {"a": 3}, {"": {"command": "x"}}, {"///": {"command": "x"}}])
def test_what_is_not_where_servers_should_be_is_passed_over(tmp_path: Path, servers: object) -> None:
    assert taken(tmp_path, "cursor", json.dumps({"mcpServers": servers}))[0] == {}


def test_every_value_of_the_right_kind_in_the_wrong_place_is_passed_over(tmp_path: Path) -> None:
    servers, _ = claude(tmp_path, odd={"command": "x", "args": "y", "env": ["z"], "headers": 3, "cwd": {}})
    assert servers == {"odd": ServerSettings(command=("x",))}


def test_comments_are_not_looked_for_in_texts() -> None:
    assert json.loads(without_comments('{"a": "x // y, ]", /* , */ "b": [1, 2,], }')) == {"a": "x // y, ]", "b": [1, 2]}


@pytest.mark.parametrize(
    ("place", "program"),
    [
        (".mcp.json", "claude"),
        (".codex/config.toml", "codex"),
        (".gemini/settings.json", "gemini"),
        (".cursor/mcp.json", "cursor"),
        (".vscode/mcp.json", "vscode"),
        ("any.json", "claude"),
    ],
)
def test_whose_file_it_is_is_known_by_its_place(tmp_path: Path, place: str, program: str) -> None:
    assert program_of(tmp_path / place) == program


def test_what_is_imported_is_written_and_read_back_the_same(tmp_path: Path) -> None:
    servers, _ = taken(tmp_path, "codex", CODEX)
    odd = ServerSettings(command=("x", 'q"uo\\te', "new\nline", "ü\x7f", "\x01"), idle_turns=3, pinned=True)
    path = tmp_path / "gateway.toml"
    add_servers(path, {**servers, "odd": odd})
    assert load_config(path).servers == {**servers, "odd": odd}


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_imported(remuda: Remuda) -> None:
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x"}}}))
    Path(".codex").mkdir()
    Path(".codex/config.toml").write_text("[mcp_servers.bad")
    said = remuda("import")
    assert said.code == 0
    assert "config.toml cannot be read as a file of codex" in said.err
    assert "1 servers were added" in said.out
    assert "`remuda gateway validate` says what they still need" in said.out
    assert remuda("import", ".codex/config.toml").code == 2


def test_all_that_is_found_here_and_at_home_is_imported_once(remuda: Remuda, tmp_path: Path) -> None:
    Path("gateway.toml").write_text('[gateway.servers.there]\ncommand = ["x"]\n')
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x"}, "there": {"command": "y"}}}))
    home = tmp_path / "home" / ".codex"
    home.mkdir(parents=True)
    (home / "config.toml").write_text('[mcp_servers.a]\ncommand = "z"\n[mcp_servers.b]\ncommand = "z"\n')
    shown = remuda("import", "--dry-run")
    assert "[gateway.servers.a]" in shown.out
    assert list(load_config(Path("gateway.toml")).servers) == ["there"]
    said = remuda("import", "--json").json
    assert said["added"] == ["a", "b"]
    assert len(said["notes"]) == 2
    assert load_config(Path("gateway.toml")).servers["a"].command == ("x",)
    assert remuda("import", "--from", "codex", "--only", "b", "--user").code == 0
    own = tmp_path / "xdg_config_home" / "remuda" / "gateway.toml"
    assert list(load_config(own).servers) == ["b"]
