"""Settings of the gateway and of the tool servers behind it: `[gateway]` in remuda.toml, or a gateway.toml of its own.

Apart from the other settings, because a gateway that serves any client alone reads these and wants nothing else.
"""

from typing import Literal

import msgspec

DEFAULT_IDLE_TURNS = 5

Transport = Literal["stdio", "http", "sse"]
Listing = Literal["auto", "stable", "dynamic", "search"]
AuthKind = Literal["bearer", "basic", "client_credentials"]


class AuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a remote server knows us. Secrets are references, `${env:NAME}` or `${file:PATH}`."""

    type: AuthKind = "bearer"
    token: str = ""
    username: str = ""
    password: str = ""
    client_id: str = ""
    client_secret: str = ""
    token_url: str = ""
    scope: str = ""


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: tuple[str, ...] = ()  # the program and its arguments, for one that we start
    url: str = ""  # for one that runs elsewhere
    transport: Transport | None = None  # worked out where it is not said: a command is stdio, a URL is http
    cwd: str = ""  # where it is started; relative to the file
    env: dict[str, str] = {}  # all that it sees of the environment, but for what every program needs
    headers: dict[str, str] = {}
    auth: AuthSettings | None = None
    description: str = ""
    keywords: tuple[str, ...] = ()  # words by which an intent finds it
    steering: str = ""  # told to the model once, when the server is started
    allow: tuple[str, ...] = ("*",)  # its tools, with * and ?
    deny: tuple[str, ...] = ()
    any_tools: bool = False  # take its tools as they come: a change of them needs no approval
    idle_turns: int | None = None  # instead of the gateway's
    pinned: bool = False  # never leaves for idleness
    enabled: bool = True
    start_seconds: float = 30.0  # until it has answered the handshake and told its tools
    call_seconds: float = 300.0  # until a call has been answered

    @property
    def kind(self) -> Transport:
        return self.transport or ("http" if self.url else "stdio")

    def starts_like(self, other: "ServerSettings") -> bool:
        """Whether the two differ at most in what is said of a server that runs already."""
        return all(getattr(self, key) == getattr(other, key) for key in _TO_START)


_TO_START = ("command", "url", "transport", "cwd", "env", "headers", "auth")


class RoleTools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What agents of a role may find and call: "server" or "server/tool", with * and ?."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    idle_turns: int = DEFAULT_IDLE_TURNS  # a server unused for so many turns leaves
    idle_seconds: float = 0.0  # and not before so much time has passed since its last use
    listing: Listing = "auto"  # how tools are listed: worked out from the client unless said
    token_budget: int = 0  # most tokens that the lists of running servers may take together; 0 is no limit
    output_bytes: int = 1_000_000  # of one result; what is longer goes to a file
    env_file: str = ""  # NAME=value lines that `${env:NAME}` may name besides the environment
    spells: tuple[str, ...] = ()  # folders with *.spell.yaml files
    servers: dict[str, ServerSettings] = {}
    roles: dict[str, RoleTools] = {}
