"""Secrets by reference: `${env:NAME}` and `${file:PATH}`, resolved when a server is started and never before.

A settings file is committed, shared and shown; a secret is none of that. Where a value came from may be told, the value
may not: `masked` takes what was resolved out of whatever is said afterwards.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remuda.domain.errors import Invalid
from remuda.runtime.tool_servers import AuthSettings, ServerSettings

REFERENCE = re.compile(r"\$\{(?:(?P<kind>env|file):)?(?P<what>[^${}:]+)\}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_SECRET = 64 << 10  # bytes of a file
SHORTEST_MASKED = 4  # characters; to take out every "1" would make a text unreadable and hide nothing
MASK = "•••"
SET_IT = "export {0}, or write NAME=value into the file that env_file under [gateway] names"


class MissingSecret(Invalid):
    """A server cannot be started, because something that it refers to is not there."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """What a token is asked for with (RFC 6749, section 4.4)."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a server is given. Not to be kept, shown or logged."""

    env: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    credentials: ClientCredentials | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def masked(self, text: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text


@dataclass(frozen=True, slots=True)
class Sources:
    """Where references are looked up."""

    environ: Mapping[str, str] = field(repr=False)
    folder: Path  # relative paths begin here

    def look_up(self, kind: str, what: str) -> str | None:
        return _read(self.folder / Path(what).expanduser()) if kind == "file" else self.environ.get(what)


def names_in(value: str) -> Iterator[tuple[str, str]]:
    """Each reference in a value: its kind and what it names."""
    for found in REFERENCE.finditer(value):
        yield found["kind"] or "env", found["what"].strip()


def refers(value: str) -> bool:
    return REFERENCE.search(value) is not None


def references_of(server: ServerSettings) -> list[tuple[str, str]]:
    """All that a server needs to be told from elsewhere, each once."""
    return list(dict.fromkeys(each for value in _values(server) for each in names_in(value)))


def resolve(name: str, server: ServerSettings, sources: Sources) -> Resolved:
    found = {each: sources.look_up(*each) for each in references_of(server)}
    missing = [each for each, value in found.items() if value is None]
    if missing:
        raise MissingSecret(f"the tool server {name!r} needs {_wanted(missing)}")
    known = {each: value for each, value in found.items() if value is not None}
    filled = _Filled(known)
    auth = server.auth
    secrets = {value for value in known.values() if len(value) >= SHORTEST_MASKED}
    headers = {key: filled(value) for key, value in server.headers.items()}
    credentials = None
    if auth is not None and auth.type == "client_credentials":
        credentials = ClientCredentials(
            auth.token_url, filled(auth.client_id), filled(auth.client_secret), filled(auth.scope)
        )
    elif auth is not None:
        headers["Authorization"] = _authorization(auth, filled)
        secrets.add(headers["Authorization"].partition(" ")[2])
    env = {key: filled(value) for key, value in server.env.items()}
    return Resolved(env, headers, credentials, frozenset(secrets))


@dataclass(frozen=True, slots=True)
class _Filled:
    known: Mapping[tuple[str, str], str]

    def __call__(self, value: str) -> str:
        return REFERENCE.sub(lambda found: self.known[found["kind"] or "env", found["what"].strip()], value)


def _authorization(auth: AuthSettings, filled: _Filled) -> str:
    if auth.type == "basic":
        pair = f"{filled(auth.username)}:{filled(auth.password)}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return f"Bearer {filled(auth.token)}"


def _values(server: ServerSettings) -> Iterator[str]:
    yield from server.env.values()
    yield from server.headers.values()
    if (auth := server.auth) is not None:
        yield from (auth.token, auth.username, auth.password, auth.client_id, auth.client_secret, auth.scope)


def _wanted(missing: Sequence[tuple[str, str]]) -> str:
    unset = [what for kind, what in missing if kind != "file"]
    unread = [what for kind, what in missing if kind == "file"]
    said: list[str] = []
    if unread:
        said.append(f"the file {' and the file '.join(unread)}, which cannot be read")
    if unset:
        names = " and ".join(unset)
        said.append(f"{names}, which {'is' if len(unset) == 1 else 'are'} not set: {SET_IT.format(names)}")
    return "; and ".join(said)


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_SECRET).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        return None


def read_env_file(path: Path) -> dict[str, str]:
    """NAME=value lines, as other tools write them: comments, `export` and one pair of quotes are understood."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    values: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not VARIABLE.fullmatch(name.strip()):
            raise Invalid(f"{path}, line {number}: expected NAME=value")  # the line may hold a secret: not shown
        values[name.strip()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"" else value
