"""How each agent is told where its model is."""

import json
from pathlib import Path

import pytest

from adapters.agent_kit import launch_in
from remuda.agents.catalog import CATALOG, Custom, environment, metered, with_custom
from remuda.agents.catalog import command as argv_of
from remuda.agents.claude import command as claude_command
from remuda.agents.claude import settings_of
from remuda.agents.codex import command as codex_command
from remuda.domain.errors import Invalid

URL, TOKEN = "http://127.0.0.1:4100", "tok-en_1"
REAL = "sk-the-real-key"
METERED = sorted(name for name, row in CATALOG.items() if row.endpoint)

KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "DASHSCOPE_API_KEY",
    "GEMINI_API_KEY",
    "GH_TOKEN",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
)


def test_every_agent_that_can_be_told_where_its_model_is_has_a_row() -> None:
    assert METERED == ["claude", "codex", "copilot", "gemini", "goose", "opencode", "qwen"]


@pytest.mark.parametrize("name", METERED)
def test_the_agent_gets_the_address_and_the_token_and_no_real_key(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, REAL)
    env, options = metered(CATALOG[name], URL, TOKEN)
    seen = environment(CATALOG[name], launch_in(tmp_path, env=env, options=options))
    told = "\n".join((*seen.values(), *dict(options).values()))
    assert URL in told
    assert TOKEN in "\n".join(seen.values())
    assert REAL not in told
    assert not any(each in told for each in ("{url}", "{token}"))
    assert not any(key.endswith("*") for key in seen)


@pytest.mark.parametrize("name", METERED)
def test_the_token_stands_on_no_command_line(name: str, tmp_path: Path) -> None:
    env, options = metered(CATALOG[name], URL, TOKEN)
    (tmp_path / name).touch(mode=0o755)
    launch = launch_in(tmp_path, env={**env, "PATH": str(tmp_path)}, options=options)
    match name:
        case "claude":
            argv = claude_command(launch, "ref")[0]
            assert json.loads(argv[argv.index("--settings") + 1])["env"]["ANTHROPIC_BASE_URL"] == URL
        case "codex":
            argv = codex_command(launch)[0]
            assert f'model_providers.remuda.base_url="{URL}/v1"' in argv
        case _:
            assert options == ()
            argv = argv_of(CATALOG[name], options)
    assert TOKEN not in " ".join(argv)


def test_settings_of_claude_by_the_user_stay_but_for_where_the_model_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"hooks": {"Stop": []}, "apiKeyHelper": "cat key", "env": {"EDITOR": "ed"}}))
    _, options = metered(CATALOG["claude"], URL, TOKEN)
    both = json.loads(settings_of((("settings", str(mine)), *options)))
    assert both["hooks"] == {"Stop": []}
    assert both["apiKeyHelper"] == "printenv REMUDA_MODEL_TOKEN"
    assert (both["env"]["EDITOR"], both["env"]["ANTHROPIC_BASE_URL"]) == ("ed", URL)
    with pytest.raises(Invalid, match="cannot be read"):
        settings_of((("settings", str(tmp_path / "none.json")), *options))


def test_a_proxy_of_the_users_is_not_asked_for_what_is_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "intra.example,localhost")
    monkeypatch.delenv("no_proxy", raising=False)
    env, options = metered(CATALOG["claude"], URL, TOKEN)
    seen = environment(CATALOG["claude"], launch_in(tmp_path, env=env, options=options))
    assert seen["HTTP_PROXY"] == "http://proxy.example:3128"
    assert seen["NO_PROXY"] == "intra.example,localhost,127.0.0.1,::1"
    assert seen["no_proxy"] == "127.0.0.1,localhost,::1"


def test_the_users_own_settings_of_opencode_stay_but_for_where_the_model_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {"theme": "dark", "provider": {"openai": {"options": {"apiKey": REAL, "timeout": 5}}}}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(mine))
    env, options = metered(CATALOG["opencode"], URL, TOKEN)
    seen = environment(CATALOG["opencode"], launch_in(tmp_path, env=env, options=options))
    settings = json.loads(seen["OPENCODE_CONFIG_CONTENT"])
    assert settings["theme"] == "dark"
    assert settings["provider"]["openai"]["options"] == {"apiKey": TOKEN, "timeout": 5, "baseURL": f"{URL}/v1"}
    assert settings["provider"]["google"]["options"]["baseURL"] == f"{URL}/v1beta"


def test_settings_of_the_users_that_are_no_json_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", "{ theme: dark")
    env, _ = metered(CATALOG["opencode"], URL, TOKEN)
    seen = environment(CATALOG["opencode"], launch_in(tmp_path, env=env))
    assert seen["OPENCODE_CONFIG_CONTENT"] == env["OPENCODE_CONFIG_CONTENT"]


def test_an_agent_that_only_its_own_settings_point_anywhere_is_refused() -> None:
    rows = with_custom({"mine": Custom(("my-agent",))})
    for name in ("scripted", "pi", "mine"):
        with pytest.raises(Invalid, match="in its own settings"):
            metered(rows[name], URL, TOKEN)


@pytest.mark.parametrize("token", ["", 'a"b', "a b", "a\nb", "ключ"])
def test_a_token_that_could_break_out_of_where_it_is_put_is_refused(token: str) -> None:
    with pytest.raises(Invalid, match="letters, digits") as caught:
        metered(CATALOG["opencode"], URL, token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", 'http://x"', "file:///etc/passwd", "http://a b", "http://x\n"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="no address"):
        metered(CATALOG["claude"], url, TOKEN)


def test_an_address_may_have_a_path_and_end_in_a_slash() -> None:
    env, _ = metered(CATALOG["claude"], "http://[::1]:4100/meter/", TOKEN)
    assert env["ANTHROPIC_BASE_URL"] == "http://[::1]:4100/meter"
