"""The settings, `remuda.toml` at the project's root. Every key stands here; any other is refused."""

import math
from pathlib import Path

import msgspec

from remuda.domain.errors import Invalid
from remuda.domain.permission import Policy, Ruling
from remuda.effects.world import DEFAULT_SILENCE
from remuda.runtime.nearest import in_words, keys_of
from remuda.runtime.tool_servers import GatewaySettings
from remuda.store.output import DEFAULT_LINES


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    backend: str = "scripted"  # who runs an agent when `spawn` does not say


class OutputSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lines: int = DEFAULT_LINES  # recent lines of output kept in memory for each live agent


class TurnSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    silence_seconds: float = DEFAULT_SILENCE  # a turn without a sign of life for so long is given up


class RoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent of the role may do: see domain/permission.py for how a rule is written."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Ruling = Ruling.ALLOW
    outside: Ruling = Ruling.DENY
    sandbox: bool = False  # by bubblewrap: writes only in the project and in the agent's own state
    network: bool = True  # in the sandbox; without it loopback is cut off as well


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program of the user's own that speaks ACP, or another command for one that Remuda knows."""

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # names of the variables that may pass to it from the user's environment
    title: str = ""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: ProjectSettings = ProjectSettings()
    output: OutputSettings = OutputSettings()
    turns: TurnSettings = TurnSettings()
    roles: dict[str, RoleSettings] = {}
    agents: dict[str, AgentSettings] = {}
    gateway: GatewaySettings = GatewaySettings()

    def policy(self, role: str) -> Policy:
        said = self.roles.get(role, RoleSettings())
        return Policy(said.allow, said.ask, said.deny, said.default, said.outside)


TEMPLATE = """\
# Settings of Remuda for this project. Every key is optional; what is here are the defaults.

[project]
# backend = "scripted"    # who runs an agent when `remuda spawn` does not say

[turns]
# silence_seconds = 900   # a turn without a sign of life for so long is given up; tools and questions do not count

[roles.worker]            # what agents of a role may do: "tool" or "tool:path", with * and ?
# allow = []
# ask = []                # asked of you: `remuda answer`
# deny = []
# default = "allow"
# outside = "deny"        # files outside the project
# sandbox = false         # by bubblewrap: it may write in the project and nowhere else
# network = true          # in the sandbox; without it loopback is cut off as well

# [agents.mine]           # a program of your own that speaks ACP; `remuda agents` lists it
#   command = ["my-agent", "--acp"]
#   env = []              # names of variables that may pass to it: nothing else of your environment does
#   title = ""

[gateway]                 # tool servers that come on intent and leave after idle turns
# idle_turns = 5          # a server unused for so many turns leaves
# idle_seconds = 0.0      # and not before so much time has passed since its last use
# listing = "auto"        # how tools are listed: "stable", "dynamic", "search", or what suits the client
# token_budget = 0        # most tokens that the lists of running servers may take together; 0 is no limit
# output_bytes = 1000000  # of one result; what is longer goes to a file
# env_file = ""           # NAME=value lines that ${env:NAME} may name besides the environment
# spells = []             # folders with *.spell.yaml files

# [gateway.servers.github]     # `remuda gateway add` and `import` write these
#   command = ["npx", "-y", "@modelcontextprotocol/server-github"]
#   url = ""                   # instead of a command, for one that runs elsewhere
#   transport = "stdio"        # or "http", "sse"
#   cwd = ""
#   env = { GITHUB_PERSONAL_ACCESS_TOKEN = "${env:GITHUB_TOKEN}" }
#   headers = {}
#   description = ""
#   keywords = []              # words by which an intent finds it
#   steering = ""              # told to the model once, when the server is started
#   allow = ["*"]              # its tools
#   deny = []
#   any_tools = false          # take its tools as they come: a change of them needs no approval
#   idle_turns = 5
#   pinned = false             # never leaves for idleness
#   enabled = true
#   start_seconds = 30.0
#   call_seconds = 300.0
# [gateway.servers.github.auth]
#   type = "bearer"            # or "basic", "client_credentials"
#   token = ""
#   username = ""
#   password = ""
#   client_id = ""
#   client_secret = ""
#   token_url = ""
#   scope = ""

# [gateway.roles.worker]       # what agents of a role may find and call: "server" or "server/tool"
#   allow = ["*"]
#   deny = []

[output]
# lines = 100             # recent lines of output kept in memory for each live agent
"""


def load_settings(path: Path) -> Settings:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    try:
        settings = msgspec.toml.decode(data, type=Settings)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"{path}: {in_words(str(error), Settings)}") from error
    if not 1 <= settings.output.lines <= 100_000:
        raise Invalid(f"{path}: output.lines must be from 1 to 100000, not {settings.output.lines}")
    if not 0 < settings.turns.silence_seconds < math.inf:  # also not nan, which TOML can write
        raise Invalid(f"{path}: turns.silence_seconds must be more than 0, not {settings.turns.silence_seconds}")
    return settings


def known_keys() -> list[str]:
    return list(keys_of(Settings))
