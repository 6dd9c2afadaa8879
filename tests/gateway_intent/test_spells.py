"""The original's spell files are read as they are, and nothing of YAML beyond that."""

from pathlib import Path

import pytest

from remuda.domain.errors import Invalid
from remuda.gateway.config import load_config
from remuda.gateway.spells import read_spell
from remuda.runtime.tool_servers import AuthSettings, ServerSettings

STDIO = """
name: postgres
version: 1.0.0
description: Query the shop's database
keywords: [database, sql, query]
server:
  command: npx
  args: ["-y", "@modelcontextprotocol/server-postgres"]
  env:
    PGPASSWORD: "${PGPASSWORD}"
steering: |
  Look at the tables first.
"""
REMOTE = """
name: far
version: "2"
description: Elsewhere
keywords: [a, b, c]
server:
  transport: sse
  url: https://far.example/sse
  headers: {X-Team: "${TEAM}"}
  auth: {type: client_credentials, clientId: me, clientSecret: "${S}", tokenUrl: "https://far.example/token"}
"""


def spell(folder: Path, text: str, name: str = "one") -> Path:
    path = folder / f"{name}.spell.yaml"
    path.write_text(text)
    return path


def test_a_local_spell_becomes_a_server(tmp_path: Path) -> None:
    assert read_spell(spell(tmp_path, STDIO)) == (
        "postgres",
        ServerSettings(
            command=("npx", "-y", "@modelcontextprotocol/server-postgres"),
            transport="stdio",
            env={"PGPASSWORD": "${env:PGPASSWORD}"},
            description="Query the shop's database",
            keywords=("database", "sql", "query"),
            steering="Look at the tables first.\n",
        ),
    )


def test_a_remote_spell_becomes_a_server(tmp_path: Path) -> None:
    name, server = read_spell(spell(tmp_path, REMOTE))
    assert (name, server.kind, server.url) == ("far", "sse", "https://far.example/sse")
    assert server.headers == {"X-Team": "${env:TEAM}"}
    assert server.auth == AuthSettings(
        type="client_credentials", client_id="me", client_secret="${env:S}", token_url="https://far.example/token"
    )


BOMB = "name: &a [x, x]\nserver: [*a, *a]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STDIO.replace("keywords", "keyword"), "did you mean 'keywords'?"),
        (STDIO.replace("  command", "  comand"), "did you mean 'server.command'?"),
        (STDIO.replace("server:", "servers:"), "server"),
        (REMOTE.replace("client_credentials", "private_key_jwt"), "is not spoken here"),
        (BOMB, "aliases"),
        ("name: !!python/object/apply:os.system ['true']", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("- just\n- a list", "object"),
        ("", "object"),
        ("a: [", "not YAML"),
        ("x" * (65 << 10), "larger than 64 KiB"),
    ],
)
def test_what_is_no_spell_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_spell(spell(tmp_path, text))
    assert said in str(refused.value)
    assert "one.spell.yaml" in str(refused.value)


def test_a_bad_spell_does_not_disturb_the_others_and_a_name_is_given_once(tmp_path: Path) -> None:
    folder = tmp_path / "spells"
    folder.mkdir()
    spell(folder, STDIO)
    spell(folder, "a: [", "broken")
    spell(folder, REMOTE, "far")
    config = tmp_path / "gateway.toml"
    config.write_text('[gateway]\nspells = ["spells"]\n[gateway.servers.far]\ncommand = ["x"]\n')
    found = load_config(config)
    assert list(found.servers) == ["postgres"]
    assert "not YAML" in found.faults["broken"]
    assert "rename one of them" in found.faults["far"]


def test_secrets_of_spells_may_stand_in_the_env_file_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "spells"
    folder.mkdir()
    spell(folder, STDIO)
    (folder / ".env").write_text("PGPASSWORD=pw\n")
    config = tmp_path / "gateway.toml"
    config.write_text('[gateway]\nspells = ["spells"]\n')
    assert load_config(config).resolve("postgres", {}).env == {"PGPASSWORD": "pw"}
