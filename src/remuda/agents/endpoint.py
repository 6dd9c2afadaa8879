"""Where an agent finds its model, as data: which API it speaks there, and how it is told the address and the key. Pure.

This is what lets a proxy on this machine stand between an agent and its model. The key that the agent then shows is
a token of the proxy's own; the real one, and whatever would lead the agent past the proxy, is taken from it. A
program that can use several services is told the same address for each of them, so whichever its model belongs to,
it comes by.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from remuda.domain.errors import Invalid


class Api(StrEnum):
    """What is spoken at the address, and where the token stands in each request."""

    ANTHROPIC = "anthropic"  # x-api-key
    RESPONSES = "openai-responses"  # Authorization: Bearer
    CHAT = "openai-chat"  # Authorization: Bearer
    GEMINI = "gemini"  # x-goog-api-key


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`{url}` stands for the address without a path, `{token}` for the key to show there."""

    apis: tuple[Api, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    hides: tuple[str, ...] = ()  # variables of the user's that it must not see; one that ends in * stands for all such


Pointed = tuple[dict[str, str], tuple[tuple[str, str], ...]]

_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+(/[\w./~-]*)?", re.ASCII)
_TOKEN = re.compile(r"[\w.~-]+", re.ASCII)  # it goes into headers and into JSON as it is
LOOPBACK = "127.0.0.1,localhost,::1"


def point(endpoint: Endpoint, url: str, token: str) -> Pointed:
    """The variables and options by which the agent goes there. An empty value takes a variable away."""
    if not _ADDRESS.fullmatch(url):
        raise Invalid(f"{url!r} is no address of a model service; it is like http://127.0.0.1:8080")
    if not _TOKEN.fullmatch(token):
        raise Invalid("the token for a model service may have letters, digits and . _ ~ - only")

    def put(text: str) -> str:
        return text.replace("{url}", url.rstrip("/")).replace("{token}", token)

    hidden = dict.fromkeys((*endpoint.hides, *PROVIDER_KEYS), "")
    near = {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}  # what is on this machine is not asked for elsewhere
    env = {**hidden, **near, **{name: put(value) for name, value in endpoint.env.items()}}
    return env, tuple((name, put(value)) for name, value in endpoint.options.items())


# --- how what is declared joins what the user has ---


def joined(name: str, users: str, declared: str) -> str:
    """A variable that both the user and we have something to say in; for most of them ours counts."""
    return _JOINS[name](users, declared) if name in _JOINS and users else declared


def _listed(users: str, declared: str) -> str:
    return ",".join(dict.fromkeys((*users.split(","), *declared.split(","))))


def merged(users: str, declared: str) -> str:
    """Two settings in JSON as one. What is declared counts where they differ."""
    try:
        both = _deep(json.loads(users), json.loads(declared))
    except ValueError:
        return declared  # the program could not read it either
    return json.dumps(both, separators=(",", ":"))


def _deep(users: Any, declared: Any) -> Any:
    if not (isinstance(users, dict) and isinstance(declared, dict)):
        return declared
    return {**users, **{key: _deep(users.get(key), value) for key, value in declared.items()}}


_JOINS: Mapping[str, Callable[[str, str], str]] = {
    "NO_PROXY": _listed,
    "no_proxy": _listed,
    "OPENCODE_CONFIG_CONTENT": merged,
}


# --- the rows ---

# Services that nobody tells an agent to reach another way: with their keys it would go there directly.
PROVIDER_KEYS = ("OPENROUTER_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "DATABRICKS_*", "AZURE_OPENAI_*", "AWS_*")

# The user's own settings of Claude Code may name an address and keys, and go before the environment; settings on the
# command line go before both. Everyone can read those, so they only name the variable that has the token.
_CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLAUDE_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
CLAUDE = Endpoint(
    apis=(Api.ANTHROPIC,),
    env={"ANTHROPIC_BASE_URL": "{url}", "REMUDA_MODEL_TOKEN": "{token}"},
    options={
        "settings": json.dumps(
            {
                "env": {"ANTHROPIC_BASE_URL": "{url}", **dict.fromkeys((*_CLAUDE_KEYS, *_CLAUDE_ELSEWHERE), "")},
                "apiKeyHelper": "printenv REMUDA_MODEL_TOKEN",
            },
            separators=(",", ":"),
        )
    },
    hides=(*_CLAUDE_KEYS, "CLAUDE_CODE_USE_*"),
)

CODEX = Endpoint(
    apis=(Api.RESPONSES,),
    env={"OPENAI_API_KEY": "{token}"},
    options={"base_url": "{url}/v1"},
    hides=("OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "CODEX_API_KEY"),
)

OPENCODE = Endpoint(
    apis=(Api.ANTHROPIC, Api.RESPONSES, Api.GEMINI),
    env={
        "OPENCODE_CONFIG_CONTENT": json.dumps(
            {
                "provider": {
                    "anthropic": {"options": {"baseURL": "{url}/v1", "apiKey": "{token}"}},
                    "openai": {"options": {"baseURL": "{url}/v1", "apiKey": "{token}"}},
                    "google": {"options": {"baseURL": "{url}/v1beta", "apiKey": "{token}"}},
                },
                "enabled_providers": ["anthropic", "openai", "google"],
            },
            separators=(",", ":"),
        )
    },
    hides=("ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENCODE_API_KEY"),
)

GEMINI = Endpoint(
    apis=(Api.GEMINI,),
    env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{token}"},
    hides=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_*", "GOOGLE_CLOUD_*", "GOOGLE_APPLICATION_CREDENTIALS"),
)

QWEN = Endpoint(
    apis=(Api.CHAT,),
    env={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{token}"},
    hides=("DASHSCOPE_API_KEY", "OPENAI_ORGANIZATION"),
)

GOOSE = Endpoint(
    apis=(Api.CHAT, Api.ANTHROPIC, Api.GEMINI),
    env={
        "OPENAI_HOST": "{url}",
        "OPENAI_API_KEY": "{token}",
        "ANTHROPIC_HOST": "{url}",
        "ANTHROPIC_API_KEY": "{token}",
        "GOOGLE_HOST": "{url}",
        "GOOGLE_API_KEY": "{token}",
    },
    hides=("OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY"),
)

COPILOT = Endpoint(
    apis=(Api.CHAT,),
    env={
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "{token}",
    },
    hides=("GH_TOKEN", "GITHUB_TOKEN"),
)
