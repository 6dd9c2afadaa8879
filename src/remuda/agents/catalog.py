"""Backends as data: one row for each program that can run an agent."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from remuda.agents import Ask, Backend, Launch, Listen, Session, claude, codex, endpoint, prices
from remuda.agents import quirks as ways
from remuda.agents.acp import START_TIMEOUT, open_session
from remuda.agents.endpoint import Endpoint, Pointed, joined, point
from remuda.agents.find import find, furnish, passed, without
from remuda.agents.options import nearest_first
from remuda.agents.quirks import PLAIN, Counting, Quirks
from remuda.domain.errors import AgentFault, Invalid
from remuda.domain.failure import Failure


@dataclass(frozen=True, slots=True)
class Can:
    """What can be had of an agent through Remuda."""

    resume: bool = True
    fork: bool = False
    interrupt: bool = True
    mcp: bool = True
    asks: bool = True  # before it uses a tool, when told to
    cache: bool = True  # it tells how many of the tokens came from the cache
    cost: bool = False  # it tells itself what a call costs; else the price table may know


Opens = Callable[[Sequence[str], Launch, Listen, Ask], Awaitable[Session]]


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    program: str  # its name on PATH, or where it is
    arguments: tuple[str, ...] = ()
    can: Can = Can()
    quirks: Quirks = PLAIN
    options: Mapping[str, str] = field(default_factory=dict)  # an option -> the flag that carries its value
    model_flag: str = ""  # carries the model's name; "" when it is chosen through the protocol
    passes: tuple[str, ...] = ()  # variables of the user's that it may see; one that ends in * stands for all such
    env: Mapping[str, str] = field(default_factory=dict)  # switches that are always set
    permissions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # ask, bypass -> switches for it
    files: Mapping[str, str] = field(default_factory=dict)  # put into its HOME when it has one of its own
    bundled: tuple[tuple[str, str], ...] = ()  # (Python package, path in it) that bring the program along
    version: tuple[str, ...] = ("--version",)
    patience: float = START_TIMEOUT  # seconds that it may take to start
    ends: str = "at the end of its input"
    install: str = ""
    endpoint: Endpoint | None = None  # how it is told where its model is; None where only its own settings say it
    prices: bool = True  # the price table is asked where the agent tells each call but not its cost
    opens: Opens | None = None  # how to speak to it, if not in ACP; it then knows its own options

    @property
    def counting(self) -> Counting:
        return self.quirks.counts


NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
NODE = (*NETWORK, "NODE_EXTRA_CA_CERTS")
ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_HOST", "OPENAI_MODEL", "OPENAI_ORGANIZATION")
GOOGLE = ("GEMINI_API_KEY", "GEMINI_MODEL", "GOOGLE_*")
MANY = (*ANTHROPIC, *OPENAI, *GOOGLE, "OPENROUTER_API_KEY", "AZURE_OPENAI_*", "AWS_*", "GROQ_API_KEY", "XAI_API_KEY")

_GEMINI_SETTINGS = """\
{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}
"""
_QWEN_SETTINGS = """\
{
  "security": {"auth": {"selectedType": "openai"}},
  "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "ui": {"enableFollowupSuggestions": false},
  "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
  "tools": {"toolSearch": {"enabled": false}}
}
"""  # else it asks the model for things that no turn accounts for, and hides tools until they are searched for

CATALOG: Mapping[str, Row] = {
    "claude": Row(
        title="Claude Code",
        program="claude",
        can=Can(fork=True, cost=True),
        quirks=ways.NATIVE,
        passes=(*ANTHROPIC, *NODE, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*", "CLAUDE_CONFIG_DIR", "AWS_*"),
        bundled=(("claude_agent_sdk", "_bundled/claude"),),
        install="pip install claude-agent-sdk",
        endpoint=endpoint.CLAUDE,
        opens=claude.open_session,
    ),
    "codex": Row(
        title="Codex",
        program="codex",
        can=Can(fork=True),
        quirks=ways.NATIVE,
        passes=(*OPENAI, *NETWORK, "CODEX_HOME", "CODEX_API_KEY"),
        bundled=(("codex_cli_bin", "bin/codex"),),
        install="pip install openai-codex",
        endpoint=endpoint.CODEX,
        opens=codex.open_session,
    ),
    "opencode": Row(
        title="OpenCode",
        program="opencode",
        arguments=("acp",),
        can=Can(fork=True, cost=True),
        quirks=ways.OPENCODE,
        patience=90.0,  # it takes eight seconds of CPU, which on a busy machine is a minute
        passes=(*MANY, *NODE, *FOLDERS, "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_API_KEY"),
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",  # it waits for the network at each start otherwise
        },
        # It has no mode for it, and asks nothing by itself.
        permissions={
            "ask": {"OPENCODE_PERMISSION": '{"*":"ask"}'},
            "bypass": {"OPENCODE_PERMISSION": '{"*":"allow"}'},
        },
        endpoint=endpoint.OPENCODE,
        install="npm install -g opencode-ai",
    ),
    "gemini": Row(
        title="Gemini CLI",
        program="gemini",
        arguments=("--acp",),
        quirks=ways.GEMINI,
        model_flag="--model",
        passes=(*GOOGLE, *NODE),
        env={
            "GEMINI_CLI_NO_RELAUNCH": "true",  # else a launcher stays in between, and leaves the real one when it dies
            "GEMINI_CLI_TRUST_WORKSPACE": "true",  # without trust it uses no tool server
            "GEMINI_TELEMETRY_ENABLED": "false",
        },
        files={".gemini/settings.json": _GEMINI_SETTINGS},
        ends="on SIGTERM; with a tool server attached it does not mind the end of its input",
        endpoint=endpoint.GEMINI,
        install="npm install -g @google/gemini-cli",
    ),
    "qwen": Row(
        title="Qwen Code",
        program="qwen",
        arguments=("--acp",),
        quirks=ways.QWEN,
        model_flag="--model",
        passes=(*OPENAI, *NODE, "DASHSCOPE_API_KEY"),
        env={"QWEN_DISABLE_AUTO_TITLE": "1"},  # else a model call that no turn accounts for
        files={".qwen/settings.json": _QWEN_SETTINGS},
        endpoint=endpoint.QWEN,
        install="npm install -g @qwen-code/qwen-code (needs Node 22)",
    ),
    "goose": Row(
        title="goose",
        program="goose",
        arguments=("acp",),
        can=Can(fork=True),
        quirks=ways.GOOSE,
        passes=(*MANY, *NETWORK, *FOLDERS, "GOOSE_*", "DATABRICKS_*"),
        env={"GOOSE_TELEMETRY_ENABLED": "false"},
        ends="at the end of its input; a command that it ran may live on",
        endpoint=endpoint.GOOSE,
        install="npm install -g @aaif/goose-binary-linux-x64, or see its releases for other systems",
    ),
    "pi": Row(
        title="pi",
        program="pi-acp",
        can=Can(mcp=False, asks=False),
        quirks=ways.PI,
        passes=(*MANY, *NODE, "PI_*"),
        env={"PI_SKIP_VERSION_CHECK": "1"},
        version=(),  # what is started is an adapter, which does not say
        install="npm install -g @earendil-works/pi-coding-agent pi-acp (needs Node 22)",
    ),
    "copilot": Row(
        title="GitHub Copilot CLI",
        program="copilot",
        arguments=("--acp",),
        quirks=ways.COPILOT,
        model_flag="--model",
        passes=(*NODE, "COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"),
        env={"COPILOT_AUTO_UPDATE": "false"},
        endpoint=endpoint.COPILOT,
        install="npm install -g @github/copilot",
    ),
    "scripted": Row(
        title="Scripted agent (follows a playbook; it is not a model)",
        program=sys.executable,
        # Without site-packages (-S) and apart from the user's Python settings (-I): it starts in half the time.
        arguments=("-I", "-S", str(Path(__file__).parent / "scripted")),
        can=Can(cost=True),
        version=(),
        quirks=replace(PLAIN, counting=Counting.CALLS),
        options={"playbook": "--playbook", "memory": "--memory"},
        prices=False,
    ),
}


@dataclass(frozen=True, slots=True)
class Custom:
    """A row of the user's own, from remuda.toml: an ACP command, or another command for a row that exists."""

    command: tuple[str, ...]
    env: tuple[str, ...] = ()  # names of variables that may pass
    title: str = ""


def with_custom(custom: Mapping[str, Custom]) -> Mapping[str, Row]:
    """The catalog, and the user's own rows. For a name that is in it already only what the user says is replaced."""
    rows = dict(CATALOG)
    for name, own in custom.items():
        row = rows.get(name) or Row(title=name, program="", quirks=ways.CUSTOM)
        program, *arguments = own.command or (row.program, *row.arguments)
        rows[name] = replace(
            row,
            title=own.title or row.title,
            program=program,
            arguments=tuple(arguments),
            passes=(*row.passes, *own.env),
        )
    return rows


def backend(name: str) -> Backend:
    """How to start a session of that name; raises Invalid for a name that is not in the catalog."""
    return backends(CATALOG)(name)


def backends(rows: Mapping[str, Row]) -> Callable[[str], Backend]:
    def backend_of(name: str) -> Backend:
        if name not in rows:
            raise Invalid(f"there is no backend {name!r}", possible=nearest_first(name, rows))
        row = rows[name]

        if not row.prices or not row.counting.priceable:
            return partial(_open, row)

        async def start(launch: Launch, listen: Listen, ask: Ask) -> Session:
            loading = asyncio.ensure_future(prices.load())
            session = await _open(row, launch, prices.priced(listen, loading), ask)
            await loading  # before the first turn, so that all its calls have a price or none
            return session

        return start

    return backend_of


async def _open(row: Row, launch: Launch, listen: Listen, ask: Ask) -> Session:
    launch, argv = prepare(row, launch)
    if row.opens is not None:
        return await row.opens(argv, launch, listen, ask)
    return await open_session(argv, launch, listen, ask, row.patience, row.quirks)


def prepare(row: Row, launch: Launch) -> tuple[Launch, tuple[str, ...]]:
    """What exactly to start, and with which environment. Faults when there is no such program."""
    argv = (row.program, *row.arguments) if row.opens else command(row, launch.options)
    env = environment(row, launch)
    program = find(row.program, row.bundled, env)
    if program is None:
        raise AgentFault(
            f"{row.title} is not installed: there is no program {row.program!r} on PATH; {_advice(row)}",
            Failure.NOT_INSTALLED,
        )
    if "HOME" in launch.env:  # a home of its own, so nobody has set the agent up there
        furnish(Path(launch.env["HOME"]), row.files)
    if row.model_flag and launch.model:
        argv = (*argv, row.model_flag, launch.model)
        launch = replace(launch, model="")
    if not row.can.mcp:
        if any(not server.optional for server in launch.mcp_servers):
            raise AgentFault(f"{row.title} cannot use tool servers", Failure.REFUSED)
        launch = replace(launch, mcp_servers=())
    return replace(launch, env=env), (program, *argv[1:])


def environment(row: Row, launch: Launch) -> dict[str, str]:
    """What the launch declares, before what the user's environment may give, before the row's own switches.

    Where the launch declares an empty value, the user's own does not pass.
    """
    wanted = dict(launch.options).get("permissions", "ask")
    taken = [name for name, value in launch.env.items() if not value]
    users = without(taken, passed(row.passes, os.environ))
    declared = {name: joined(name, users.get(name, ""), value) for name, value in launch.env.items() if value}
    return {**row.env, **row.permissions.get(wanted, {}), **users, **declared}


def metered(row: Row, url: str, token: str) -> Pointed:
    """The variables and options with which a launch of this agent finds its model at that address, and nowhere else."""
    if row.endpoint is None:
        raise Invalid(f"{row.title} cannot be told where its model is; set that in its own settings")
    return point(row.endpoint, url, token)


def command(row: Row, options: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    argv: tuple[str, ...] = (row.program, *row.arguments)
    for option, value in options:
        if option == "permissions":
            _check_permissions(row, value)
        elif option in row.options:
            argv = (*argv, row.options[option], value)
        else:
            known = (*row.options, "permissions")
            raise Invalid(f"{row.title} has no option {option!r}", possible=nearest_first(option, known))
    return argv


def _check_permissions(row: Row, value: str) -> None:
    if value not in ("ask", "bypass"):
        raise Invalid(f"permissions cannot be {value!r}", possible=("ask", "bypass"))
    if value == "ask" and not row.can.asks:
        raise Invalid(f"{row.title} cannot be made to ask before it uses a tool", possible=("bypass",))


def _advice(row: Row) -> str:
    return f"install it ({row.install})" if row.install else "install it, or correct the command in remuda.toml"
