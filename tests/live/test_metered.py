"""Every real agent, told where its model is by its row alone, goes there with the token that it was given."""

import asyncio
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder, allow_all, launch_in
from live.kit import WITHIN, script
from live.native_kit import find_cli
from remuda.agents.catalog import CATALOG, backend, metered
from remuda.agents.endpoint import Api
from remuda.domain.state import Outcome
from remuda.scripted_model import ScriptedModel

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]

TOKEN = "token-of-this-session"
REAL = "the-real-key-of-the-user"
THEIRS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")

# What stands in the user's own settings would lead past the proxy, were it heeded.
IN_THE_HOME: Mapping[str, tuple[str, str]] = {
    "claude": (
        ".claude/settings.json",
        json.dumps(
            {
                "env": {
                    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
                    "ANTHROPIC_AUTH_TOKEN": REAL,
                    "ANTHROPIC_API_KEY": REAL,
                    "CLAUDE_CODE_USE_BEDROCK": "1",
                },
                "apiKeyHelper": f"echo {REAL}",
            }
        ),
    ),
    "codex": (
        ".codex/config.toml",
        'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\nbase_url = "http://127.0.0.1:9/v1"\n',
    ),
    "goose": (".config/goose/config.yaml", "OPENAI_HOST: http://127.0.0.1:9\nANTHROPIC_HOST: http://127.0.0.1:9\n"),
    "opencode": (
        ".config/opencode/opencode.json",
        json.dumps(
            {
                "provider": {
                    name: {"options": {"baseURL": "http://127.0.0.1:9", "apiKey": REAL}}
                    for name in ("openai", "anthropic", "google")
                }
            }
        ),
    ),
    "gemini": (".gemini/.env", f"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9\nGEMINI_API_KEY={REAL}\n"),
}

# A model of each service that the agent may be told to use, and the API that is spoken then.
MODELS: tuple[tuple[str, str, Api, Mapping[str, str]], ...] = (
    ("claude", "", Api.ANTHROPIC, {}),
    ("codex", "gpt-5.5", Api.RESPONSES, {}),
    ("opencode", "openai/gpt-5.2", Api.RESPONSES, {}),
    ("opencode", "anthropic/claude-sonnet-4-5", Api.ANTHROPIC, {}),
    ("opencode", "google/gemini-2.5-flash", Api.GEMINI, {}),
    ("goose", "", Api.CHAT, {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted"}),
    ("goose", "", Api.ANTHROPIC, {"GOOSE_PROVIDER": "anthropic", "GOOSE_MODEL": "claude-sonnet-4-5"}),
    ("goose", "", Api.GEMINI, {"GOOSE_PROVIDER": "google", "GOOSE_MODEL": "gemini-2.5-flash"}),
    ("gemini", "gemini-2.5-flash", Api.GEMINI, {}),
)
SPOKEN = {"anthropic": Api.ANTHROPIC, "responses": Api.RESPONSES, "chat": Api.CHAT, "gemini": Api.GEMINI}


@pytest.mark.parametrize(("name", "model", "api", "env"), MODELS, ids=[f"{each[0]}-{each[2]}" for each in MODELS])
def test_it_finds_its_model_by_its_row_and_shows_the_token_and_no_key_of_the_users(
    name: str, model: str, api: Api, env: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = find_cli(name)
    for each in THEIRS:
        monkeypatch.setenv(each, REAL)
    for each in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(each, "http://127.0.0.1:9")  # where nobody listens
    for each in ("home", "work"):
        (tmp_path / each).mkdir()
    inside, settings = IN_THE_HOME[name]
    (tmp_path / "home" / inside).parent.mkdir(parents=True)
    (tmp_path / "home" / inside).write_text(settings)

    async def story() -> None:
        heard = Recorder()
        async with asyncio.timeout(WITHIN), ScriptedModel() as service:
            told, options = metered(CATALOG[name], service.url, TOKEN)
            path = os.pathsep.join((str(cli.parent), os.environ["PATH"]))
            declared = {**env, **told, "HOME": str(tmp_path / "home"), "PATH": path}
            launch = launch_in(tmp_path / "work", backend=name, model=model, env=declared, options=options)
            session = await backend(name)(launch, heard, allow_all)
            try:
                result = await session.prompt(script({"shell": "env > seen.txt"}, {"say": "All is done."}))
            finally:
                await session.end(gentle=True)
            assert result.outcome is Outcome.COMPLETED, result.error
            assert {call.auth for call in service.calls} == {sha256(TOKEN.encode()).hexdigest()[:16]}
            assert {SPOKEN[call.api] for call in service.calls} == {api}
        assert "All is done." in heard.text()
        assert REAL not in (tmp_path / "work" / "seen.txt").read_text()

    assert api in getattr(CATALOG[name].endpoint, "apis", ())
    asyncio.run(story())
