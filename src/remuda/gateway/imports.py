"""Tool servers that other programs are configured with, taken over: Claude, Codex, Gemini, Cursor, VS Code.

Their files hold secrets in plain text. Such a value becomes a reference of the same name, and is told by name only: to
copy it would be to spread it.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from remuda.domain.errors import Invalid
from remuda.gateway.config import NAME, problems, read
from remuda.gateway.references import refers
from remuda.runtime.tool_servers import AuthSettings, ServerSettings, Transport

SECRET = re.compile(r"token|key|secret|passw|credential|auth|cookie|_pat$|dsn|connection.?string", re.IGNORECASE)
# ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:name}, $NAME: how each of them refers to something.
_FOREIGN = re.compile(r"\$\{(?:(env|input):)?([A-Za-z_][\w.-]*)(?::-[^}]*)?\}|\$([A-Za-z_]\w*)")
LARGEST = 64 << 20  # Claude keeps much else in the same file

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    program: str
    path: Path


@dataclass(slots=True)
class Found:
    servers: dict[str, ServerSettings] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what the user has to know or do


PROGRAMS: Mapping[str, tuple[str, ...]] = {
    # relative to the project, then to the home
    "claude": (".mcp.json", "~/.claude.json", "~/.config/Claude/claude_desktop_config.json"),
    "codex": (".codex/config.toml", "~/.codex/config.toml"),
    "gemini": (".gemini/settings.json", "~/.gemini/settings.json"),
    "cursor": (".cursor/mcp.json", "~/.cursor/mcp.json"),
    "vscode": (".vscode/mcp.json", "~/.config/Code/User/mcp.json"),
}


def sources(root: Path, home: Path, program: str = "") -> list[Source]:
    """The files that are here, of one program or of all."""
    every = [
        Source(name, home / place[2:] if place.startswith("~/") else root / place)
        for name, places in PROGRAMS.items()
        if program in ("", name)
        for place in places
    ]
    return [each for each in every if each.path.is_file()]


def program_of(path: Path) -> str:
    """Whose file it is, by how it is called."""
    for name, places in PROGRAMS.items():
        if any(str(path.absolute()).endswith(place.removeprefix("~")) for place in places):
            return name
    return "codex" if path.suffix == ".toml" else "vscode" if path.parent.name == ".vscode" else "claude"


def import_from(source: Source, root: Path) -> Found:
    found = Found()
    for name, given in _servers(source, root):
        slug = _slug(name)
        if not NAME.fullmatch(slug):
            found.notes.append(f"{name!r} was left out: it has no name that can be used")
            continue
        server = _server(slug, given, found)
        if problem := next(problems(slug, server), ""):
            found.notes.append(f"{slug} was left out: {problem}")
        elif slug in found.servers:
            found.notes.append(f"{name!r} was left out: {slug} is there twice")
        else:
            found.servers[slug] = server
            if slug != name:
                found.notes.append(f"{name!r} is called {slug} here")
    return found


def _servers(source: Source, root: Path) -> Iterator[tuple[str, Json]]:
    whole = _read(source)
    places: list[object] = []
    match source.program:
        case "codex":
            places = [whole.get("mcp_servers")]
        case "vscode":
            places = [whole.get("servers"), _inside(whole, "mcp").get("servers")]
        case "claude":
            here = _inside(_inside(whole, "projects"), str(root))
            places = [whole.get("mcpServers"), here.get("mcpServers")]
        case _:
            places = [whole.get("mcpServers")]
    for place in places:
        for name, given in place.items() if isinstance(place, dict) else ():
            if isinstance(given, dict):
                yield str(name), given


def _inside(whole: Json, key: str) -> Json:
    inner = whole.get(key)
    return inner if isinstance(inner, dict) else {}


def _read(source: Source) -> Json:
    data = read(source.path, LARGEST)
    try:
        if source.program == "codex":
            return tomllib.loads(data.decode())
        whole = msgspec.json.decode(without_comments(data.decode()))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"{source.path} cannot be read as a file of {source.program}: {error}") from error
    if not isinstance(whole, dict):
        raise Invalid(f"{source.path} is no file of settings of {source.program}")
    return whole


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def without_comments(text: str) -> str:
    """JSON as editors write it: comments, and commas before a closing bracket."""
    bare = _TOKENS.sub(lambda found: found[0] if found[0][0] in '",' else " ", text)
    return _TOKENS.sub(lambda found: found[0] if found[0][0] == '"' else "", bare)


def _slug(name: str) -> str:
    return re.sub(r"_{2,}", "_", re.sub(r"[^a-z0-9_-]+", "-", name.lower())).strip("-_")[:32]


def _server(name: str, given: Json, found: Found) -> ServerSettings:
    url = _text(given, "httpUrl") or _text(given, "url") or _text(given, "serverUrl")
    command = (_text(given, "command"), *_texts(given.get("args"))) if given.get("command") else ()
    env = {key: _value(name, key, value, found) for key, value in _strings(given.get("env"))}
    env |= {key: f"${{env:{key}}}" for key in _texts(given.get("env_vars"))}
    headers = {key: _value(name, key, value, found) for key, value in _strings(given.get("headers"))}
    headers |= {key: _value(name, key, value, found) for key, value in _strings(given.get("http_headers"))}
    headers |= {key: f"${{env:{value}}}" for key, value in _strings(given.get("env_http_headers"))}
    bearer = _text(given, "bearer_token_env_var")
    if any(_FOREIGN.search(part) for part in command):
        found.notes.append(f"{name} names a variable in its command, which is not filled in here: look at it")
        command = tuple(_FOREIGN.sub(lambda each: each[0].replace("${", "{"), part) for part in command)
    return ServerSettings(
        command=command,
        url="" if command else url,
        transport=None if command else _transport(given),
        cwd=_text(given, "cwd"),
        env=env if command else {},
        headers={} if command else headers,
        auth=AuthSettings(type="bearer", token=f"${{env:{bearer}}}") if bearer and not command else None,
        allow=tuple(_texts(given.get("includeTools") or given.get("enabled_tools"))) or ("*",),
        deny=tuple(_texts(given.get("excludeTools") or given.get("disabled_tools"))),
        enabled=given.get("disabled") is not True and given.get("enabled") is not False,
    )


def _transport(given: Json) -> Transport | None:
    kind = str(given.get("type") or given.get("transport") or "").lower()
    if "sse" in kind or (not kind and "url" in given and str(given["url"]).rstrip("/").endswith("/sse")):
        return "sse"
    return None


def _value(server: str, key: str, value: str, found: Found) -> str:
    """A reference in our own words. What may be a secret is not copied but referred to."""
    ours = _FOREIGN.sub(lambda each: f"${{env:{_variable(each[2] or each[3])}}}", value)
    if "${input:" in value:
        found.notes.append(f"{server} asked for {key}; export it, or write it into the gateway's env_file")
    if not refers(ours) and SECRET.search(key):
        scheme = "Bearer " if value.lower().startswith("bearer ") else ""
        name = _variable(f"{server}_TOKEN".upper() if scheme else key)
        found.notes.append(f"{server}: the value of {key} was not copied; export {name}, or use the gateway's env_file")
        return f"{scheme}${{env:{name}}}"
    return ours


def _variable(name: str) -> str:
    return re.sub(r"\W+", "_", name).upper() if not re.fullmatch(r"\w+", name) else name


def _text(given: Json, key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [str(each) for each in value if isinstance(each, str | int | float)] if isinstance(value, list) else []


def _strings(value: object) -> list[tuple[str, str]]:
    return [(str(key), str(each)) for key, each in value.items()] if isinstance(value, dict) else []
