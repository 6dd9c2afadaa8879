"""A server's settings as text, added to a file that people write too: what stands there stays as it is."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from remuda.domain.errors import Invalid, Refused, StoreFailed
from remuda.gateway.config import decode, problems, read
from remuda.runtime.tool_servers import ServerSettings


def section(name: str, server: ServerSettings) -> str:
    """As a person would write it: what is as usual is left out."""
    usual = ServerSettings()
    given = {field: getattr(server, field) for field in server.__struct_fields__}
    told = {field: value for field, value in given.items() if value != getattr(usual, field)}
    lines = [f"[gateway.servers.{name}]"]
    for field, value in told.items():
        plain = msgspec.to_builtins(value)
        if field == "auth":
            plain = {key: each for key, each in plain.items() if each}
        lines.append(f"{field} = {_value(plain)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    match value:
        case str():
            return _string(value)
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(f'{_string(key)} = {_value(each)}' for key, each in value.items())} }}"
        case _:
            return repr(value)


def _string(text: str) -> str:
    """JSON's strings are TOML's, but for two characters."""
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise Invalid(f"{text!r} cannot be written: it holds half a character")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def add_servers(path: Path, servers: Mapping[str, ServerSettings]) -> None:
    """All or none. The file is read back before it takes the old one's place."""
    data = read(path)
    known = decode(path, data).servers
    for name, server in servers.items():
        if name in known:
            raise Refused(f"there is a server {name!r} in {path} already; choose another name, or edit the file")
        for problem in problems(name, server):
            raise Invalid(problem)
    text = data.decode()
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    new = text + gap + "\n".join(section(name, server) for name, server in servers.items())
    if decode(path, new.encode()).servers != {**known, **servers}:
        raise Invalid(f"{path} is written in a way that nothing can be added to; put [gateway.servers.NAME] there")
    _replace(path, new)


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(mode)
        beside.replace(path.resolve())
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreFailed(f"{path} cannot be written: {error.strerror}") from error
