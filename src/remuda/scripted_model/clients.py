"""How to point each agent program at the scripted model: environment, files and arguments, as data.

`{url}` stands for the server's address. `{prompt}` is where the prompt goes, script and all. Every row was run as it
stands, with an empty HOME; docs/scripted-model.md tells what was seen.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

_OPENCODE = {
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": "{url}/v1", "apiKey": "dummy"},
            "models": {
                "scripted": {
                    "name": "scripted",
                    "tool_call": True,
                    "limit": {"context": 200_000, "output": 8_192},
                    "cost": {"input": 1, "output": 2},
                }
            },
        }
    },
    "model": "scripted/scripted",
    "small_model": "scripted/scripted",
    "permission": "allow",
    "autoupdate": False,
    "share": "disabled",
}
_GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "model": {"name": "gemini-2.5-flash"},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_CODEX_PROVIDER = (
    '{name="scripted",base_url="{url}/v1",wire_api="responses",env_key="SCRIPTED_KEY",'
    "supports_websockets=false,request_max_retries=1,stream_max_retries=1}"
)


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    api: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)  # below HOME


# fmt: off
CLIENTS: tuple[Client, ...] = (
    Client(
        name="claude",
        api="anthropic",
        argv=(
            "claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits",
            "--allowedTools", "Bash,Read,Write,Edit", "--", "{prompt}",
        ),
        env={
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "sk-ant-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
            "ENABLE_TOOL_SEARCH": "false",
        },
    ),
    Client(
        name="codex",
        api="responses",
        argv=(
            "codex", "-c", "model=gpt-5.5", "-c", "model_provider=scripted",
            "-c", f"model_providers.scripted={_CODEX_PROVIDER}",
            "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "--disable", "plugins",
            "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{prompt}",
        ),
        env={"SCRIPTED_KEY": "dummy"},
    ),
    Client(
        name="opencode",
        api="chat",
        argv=("opencode", "run", "--format", "json", "{prompt}"),
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE, separators=(",", ":")),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    ),
    Client(
        name="gemini",
        api="gemini",
        argv=("gemini", "-p", "{prompt}", "-o", "stream-json", "--approval-mode=yolo"),
        env={
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
        files={".gemini/settings.json": json.dumps(_GEMINI)},
    ),
    Client(
        name="goose",
        api="chat",
        argv=("goose", "run", "--output-format", "stream-json", "--quiet", "-t", "{prompt}"),
        env={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "scripted",
            "OPENAI_HOST": "{url}",
            "OPENAI_API_KEY": "dummy",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
        },
    ),
)


# fmt: on


def pointed(client: Client, url: str) -> Client:
    """The row with the address in its place. The prompt stays to be put in."""

    def put(text: str) -> str:
        return text.replace("{url}", url)

    return Client(
        client.name,
        client.api,
        tuple(map(put, client.argv)),
        {name: put(value) for name, value in client.env.items()},
        {path: put(text) for path, text in client.files.items()},
    )
