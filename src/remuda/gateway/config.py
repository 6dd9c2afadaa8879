"""Which tool servers there are: from remuda.toml or a gateway.toml, and from the spell files that it names.

A file that cannot be read or holds an unknown key is refused whole, because nobody can know what was meant. A single
server that cannot work is a fault of that server, and the others are not disturbed.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from remuda.domain.errors import Invalid, RemudaError
from remuda.gateway.references import REFERENCE, Resolved, Sources, read_env_file, refers, resolve
from remuda.gateway.spells import read_spell
from remuda.runtime.nearest import in_words
from remuda.runtime.place import SETTINGS, STATE
from remuda.runtime.tool_servers import AuthSettings, GatewaySettings, ServerSettings

STANDALONE = "gateway.toml"
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]|_(?!_)){0,31}")
LONGEST_STEERING = 5000  # characters: it is paid for by the model's context
LARGEST_FILE = 1 << 20
LOOPBACK = ("localhost", "127.0.0.1", "::1")
AUTH_NEEDS: Mapping[str, tuple[str, ...]] = {
    "bearer": ("token",),
    "basic": ("username", "password"),
    "client_credentials": ("client_id", "client_secret", "token_url"),
}


class _Whole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gateway: GatewaySettings = GatewaySettings()


class _Part(msgspec.Struct, frozen=True):
    """Of remuda.toml, whose other sections are the runtime's affair."""

    gateway: GatewaySettings = GatewaySettings()


@dataclass(frozen=True, slots=True)
class Configured:
    path: Path
    gateway: GatewaySettings
    servers: Mapping[str, ServerSettings]  # those that may be used, by name
    faults: Mapping[str, str] = field(default_factory=dict)  # the others, and what is wrong with each
    origins: Mapping[str, Path] = field(default_factory=dict)  # the file that each stands in

    @property
    def state(self) -> Path:
        return state_folder(self.path)

    def resolve(self, name: str, environ: Mapping[str, str] = os.environ) -> Resolved:
        """What a server is given when it is started. MissingSecret where something is not there."""
        folder = self.origins.get(name, self.path).parent
        return resolve(name, self.servers[name], Sources({**self._env_file(folder), **environ}, folder))

    def _env_file(self, folder: Path) -> dict[str, str]:
        beside = folder / ".env"  # where the original's spells keep their secrets
        said = self.path.parent / Path(self.gateway.env_file).expanduser() if self.gateway.env_file else None
        if said is None and folder != self.path.parent and beside.is_file():
            said = beside
        return read_env_file(said) if said else {}


def find_config(start: Path, given: Path | None = None) -> Path:
    """The file that is meant: the one that was named, the project's, or the user's own."""
    if given is not None:
        return given.absolute()
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / STANDALONE).is_file():
            return folder / STANDALONE
        if (folder / STATE).is_dir() or (folder / SETTINGS).is_file():
            return folder / SETTINGS
    return users_config()


def users_config() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "remuda" / STANDALONE


def state_folder(path: Path) -> Path:
    """Where the gateway keeps what it learnt. A project's is in its private folder, which git does not carry: nobody
    can ship approvals of their own tools with a repository."""
    if path.name == SETTINGS:
        return path.parent / STATE / "gateway"
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "remuda" / "gateway" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]


def load_config(path: Path) -> Configured:
    gateway = decode(path, read(path))
    found: dict[str, ServerSettings] = dict(gateway.servers)
    faults: dict[str, str] = {}
    origins = dict.fromkeys(found, path)
    for spell in spell_files(path, gateway):
        try:
            name, server = read_spell(spell)
        except RemudaError as error:
            faults[spell.name.removesuffix(".spell.yaml")] = error.message
            continue
        if name in found:
            faults.setdefault(name, f"{name!r} stands in {origins[name]} and in {spell}; rename one of them")
        else:
            found[name], origins[name] = server, spell
    for name, server in found.items():
        if problem := next(problems(name, server), ""):
            faults.setdefault(name, problem)
    return Configured(
        path, gateway, {name: found[name] for name in sorted(found) if name not in faults}, faults, origins
    )


def read(path: Path, largest: int = LARGEST_FILE) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > largest:
        raise Invalid(f"{path} is larger than {largest >> 20} MiB; that cannot be a file of settings")
    return data


def decode(path: Path, data: bytes) -> GatewaySettings:
    kind: type[_Part | _Whole] = _Part if path.name == SETTINGS else _Whole
    try:
        gateway = msgspec.toml.decode(data, type=kind).gateway
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"{path}: {_with_its_name(in_words(str(error), _Whole), data)}") from error
    for problem in _gateway_problems(gateway):
        raise Invalid(f"{path}: {problem}")
    return gateway


def _with_its_name(words: str, data: bytes) -> str:
    """What is wrong with the servers in a file, with the name of the one that it is wrong with."""
    if "gateway.servers" not in words:
        return words
    servers = msgspec.toml.decode(data)["gateway"]["servers"]
    for name, given in servers.items() if isinstance(servers, dict) else ():
        try:
            msgspec.convert(given, ServerSettings)
        except msgspec.ValidationError:
            words = words.replace("servers[...]", f"servers.{name}").replace("servers.NAME", f"servers.{name}")
            break
    a_list = '; write it as a list: ["npx", "-y", "package"]' if words.endswith(".command`") else ""
    return words + a_list


def spell_files(path: Path, gateway: GatewaySettings) -> list[Path]:
    folders = [path.parent / Path(folder).expanduser() for folder in gateway.spells]
    return [spell for folder in folders for spell in sorted(folder.glob("*.spell.yaml"))]


def _gateway_problems(gateway: GatewaySettings) -> Iterator[str]:
    if gateway.idle_turns < 1:
        yield f"gateway.idle_turns must be 1 or more, not {gateway.idle_turns}"
    if not 0 <= gateway.idle_seconds < float("inf"):
        yield f"gateway.idle_seconds must be 0 or more, not {gateway.idle_seconds}"
    if gateway.token_budget < 0:
        yield f"gateway.token_budget must be 0 or more, not {gateway.token_budget}"
    if gateway.output_bytes < 1000:
        yield f"gateway.output_bytes must be 1000 or more, not {gateway.output_bytes}"


def problems(name: str, server: ServerSettings) -> Iterator[str]:
    """What is wrong with one server, the worst first."""
    if not NAME.fullmatch(name):
        yield f"{name!r} cannot be the name of a server: up to 32 of a-z, 0-9, - and single _, a letter or digit first"
    yield from _transport_problems(name, server)
    if len(server.steering) > LONGEST_STEERING:
        yield f"the steering of {name!r} has {len(server.steering)} characters; at most {LONGEST_STEERING} are told"
    if server.idle_turns is not None and server.idle_turns < 1:
        yield f"idle_turns of {name!r} must be 1 or more; `pinned = true` keeps a server for good"
    if not (0 < server.start_seconds < float("inf") and 0 < server.call_seconds < float("inf")):
        yield f"start_seconds and call_seconds of {name!r} must be more than 0"
    for value in (*server.env.values(), *server.headers.values()):
        if "${" in REFERENCE.sub("", value):
            yield f"{name!r} has a reference that cannot be read; write ${{env:NAME}} or ${{file:PATH}}"


def _transport_problems(name: str, server: ServerSettings) -> Iterator[str]:
    if bool(server.command) == bool(server.url):
        yield f"{name!r} needs a command or a url, and not both"
    elif (server.kind == "stdio") != bool(server.command):
        yield f"{name!r}: the transport {server.kind} needs a {'command' if server.kind == 'stdio' else 'url'}"
    if any(refers(each) for each in (*server.command, server.url)):
        yield f"{name!r} refers to a secret in its command or url, which others can read; put it into env or headers"
    if server.url:
        yield from _url_problems(name, "url", server.url)
    if server.url and (server.env or server.cwd):
        yield f"{name!r} runs elsewhere and cannot be given env or cwd"
    if server.command and (server.headers or server.auth):
        yield f"{name!r} is a local program and cannot be given headers or auth; use env"
    if server.auth is not None:
        yield from _auth_problems(name, server.auth)


def _url_problems(name: str, key: str, url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        yield f"the {key} of {name!r} must begin with https:// or http:// and name a host"
    elif parts.username or parts.password:
        yield f"the {key} of {name!r} holds a password; put it into auth"
    elif key == "token_url" and parts.scheme == "http" and host not in LOOPBACK:
        yield f"the {key} of {name!r} must be https: a secret is sent there"


def _auth_problems(name: str, auth: AuthSettings) -> Iterator[str]:
    for key in AUTH_NEEDS[auth.type]:
        if not getattr(auth, key):
            yield f"auth of {name!r} is {auth.type} and needs {key}"
    if auth.type == "client_credentials" and auth.token_url:
        yield from _url_problems(name, "token_url", auth.token_url)
