"""Tool servers that other programs are configured with, taken over: Claude, Codex, Gemini, Cursor, VS Code.

Their files hold secrets in plain text. Such a value becomes a reference of the same name, and is told by name only: to
copy it would be to spread it.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from remuda.domain.errors import Invalid
from remuda.gateway.config import NAME, problems, read
from remuda.gateway.foreign import Foreign, Json, LeftOut, Place
from remuda.runtime.tool_servers import ServerSettings

LARGEST = 64 << 20  # Claude keeps much else in the same file


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


def import_all(every: Sequence[Source], place: Place, there: Collection[str], only: Collection[str] = ()) -> Found:
    """The servers of several programs, each name once. One file that cannot be read is no reason to read no other."""
    whole = Found()
    for source in every:
        try:
            found = import_from(source, place)
        except Invalid as error:
            if len(every) == 1:
                raise
            whole.notes.append(f"{error.message}; nothing of it was taken")
            continue
        whole.notes += found.notes
        for name, server in found.servers.items():
            if only and name not in only:
                continue
            if name in whole.servers or name in there:
                whole.notes.append(f"{name} of {source.path} was left out: there is one of that name already")
            else:
                whole.servers[name] = server
    return whole


def import_from(source: Source, place: Place) -> Found:
    found = Found()
    for name, given in _servers(source, place.root):
        slug = _slug(name)
        if not NAME.fullmatch(slug):
            found.notes.append(f"{name!r} was left out: it has no name that can be used")
            continue
        try:
            server = Foreign(slug, given, source.program, place, found.notes).settings()
        except LeftOut as why:
            found.notes.append(f"{slug} was left out: {why}")
            continue
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
