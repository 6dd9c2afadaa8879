"""One tool server as another program writes it down, in our words.

What it refers to is written out where that can be known now: folders, and defaults of what is not set. What may be a
secret is not copied: in a variable or a header it becomes a reference, and a command or an address that holds one is
left to its owner.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from remuda.gateway.references import SET_IT, refers
from remuda.runtime.tool_servers import AuthSettings, ServerSettings, Transport

Json = Mapping[str, Any]

_REFERENCE = re.compile(r"\$\{(?:(?P<kind>env|input):)?(?P<name>[A-Za-z_][\w.-]*)(?::-(?P<default>[^}]*))?\}")
_BARE = re.compile(r"\$([A-Za-z_]\w*)")  # as Gemini refers to something, and nobody else

SECRET = re.compile(
    r"token|key|secret|passw|credential|auth(?!ors?(?![a-z]))|cookie|_pat$|dsn|connection.?string", re.IGNORECASE
)
# Values that give themselves away: keys as the well-known makers shape them, and addresses with a password.
_GIVEN_AWAY = re.compile(
    r"\b(?:[spr]k[-_][\w-]{6}|gh[pousr]_\w{6}|github_pat_|glpat-|xox[abprs]-|AKIA[0-9A-Z]{12}|eyJ[\w-]{16})"
    r"|://[^/\s:@]*:[^/\s:@]+@"
)
_PLAIN = re.compile(r"[./~].*|.*\.\w{2,4}|\d+")  # paths, files and numbers, which an option may want as well
SHORTEST_SECRET = 8  # characters behind an option; `--auth none` is no secret

# What is read of a server, and what says nothing of it that matters here.
_READ = frozenset(
    {
        "command",
        "args",
        "env",
        "env_vars",
        "envFile",
        "cwd",
        "url",
        "httpUrl",
        "serverUrl",
        "type",
        "transport",
        "headers",
    }
    | {"http_headers", "env_http_headers", "bearer_token_env_var", "description", "disabled", "enabled", "timeout"}
    | {"includeTools", "excludeTools", "enabled_tools", "disabled_tools", "startup_timeout_sec", "tool_timeout_sec"}
)
_OF_NO_ACCOUNT = frozenset({"name", "version", "gallery", "trust", "alwaysAllow", "autoApprove", "required", "dev"})


class LeftOut(Exception):
    """Why a server cannot be taken over."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the other program's settings are taken over, and what may be known there."""

    root: Path
    home: Path
    target: Path  # the folder of the file that they are written to, from which relative paths are read
    environ: Mapping[str, str] = field(repr=False)
    stand_ins: dict[str, str] = field(default_factory=dict, repr=False)  # variable -> the secret that it stands for

    @property
    def folders(self) -> Mapping[str, str]:
        here = dict.fromkeys(("workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR", "PWD"), str(self.root))
        return {**here, "userHome": str(self.home), "HOME": str(self.home)}


class Foreign:
    """A server of another program. `notes` gets what its owner has to know or do."""

    def __init__(self, name: str, given: Json, program: str, place: Place, notes: list[str]) -> None:
        self._name, self._given, self._program = name, given, program
        self._place, self._notes = place, notes

    def settings(self) -> ServerSettings:
        given, usual = self._given, ServerSettings()
        url = self._written_out("url", _text(given, "httpUrl") or _text(given, "url") or _text(given, "serverUrl"))
        words = (_text(given, "command"), *_texts(given.get("args"))) if given.get("command") else ()
        command = tuple(self._written_out("command", word) for word in words)
        if (where := _secret_in(command)) or (where := "" if command else _secret_in_url(url)):
            raise LeftOut(_held_back(self._name, where, bool(command)))
        if command and url:
            self._note("it has a command and a url; the command was taken")
        self._note_the_rest()
        bearer = _text(given, "bearer_token_env_var")
        return ServerSettings(
            command=command,
            url="" if command else url,
            transport=None if command else self._transport(),
            cwd=self._cwd(),
            env=self._env() if command else {},
            headers={} if command else self._headers(),
            auth=AuthSettings(type="bearer", token=f"${{env:{bearer}}}") if bearer and not command else None,
            description=_text(given, "description"),
            allow=tuple(_texts(given.get("includeTools") or given.get("enabled_tools"))) or ("*",),
            deny=tuple(_texts(given.get("excludeTools") or given.get("disabled_tools"))),
            enabled=given.get("disabled") is not True and given.get("enabled") is not False,
            start_seconds=_seconds(given.get("startup_timeout_sec")) or usual.start_seconds,
            call_seconds=_seconds(given.get("tool_timeout_sec")) or self._timeout() or usual.call_seconds,
        )

    def _note(self, said: str) -> None:
        self._notes.append(f"{self._name}: {said}")

    def _note_the_rest(self) -> None:
        if file := _text(self._given, "envFile"):
            self._note(f"it reads variables from {self._filled(file)}; name that file with env_file under [gateway]")
        if rest := sorted(self._given.keys() - _READ - _OF_NO_ACCOUNT):
            self._note(f"not taken over: {', '.join(key[:40] for key in rest)}")

    def _cwd(self) -> str:
        """Where it was meant, also when it is read from elsewhere."""
        cwd = self._written_out("cwd", _text(self._given, "cwd"))
        relative = cwd and not cwd.startswith(("/", "~"))
        return str(self._place.root / cwd) if relative and self._place.target != self._place.root else cwd

    def _timeout(self) -> float:
        """In thousandths by those who have it; of whoever else may write it nobody knows what is meant."""
        return _seconds(self._given.get("timeout")) / 1000 if self._program in ("claude", "gemini") else 0

    def _transport(self) -> Transport | None:
        given = self._given
        kind = str(given.get("type") or given.get("transport") or "").lower()
        if "sse" in kind or (not kind and "url" in given and str(given["url"]).rstrip("/").endswith("/sse")):
            return "sse"
        return None

    # --- what it refers to ---

    def _filled(self, text: str) -> str:
        place = self._place

        def fill(found: "re.Match[str]") -> str:
            if found["kind"] != "input" and found["name"] in place.folders:
                return place.folders[found["name"]]
            unset = found["default"] is not None and found["name"] not in place.environ
            return found["default"] if unset else found[0]

        text = _BARE.sub(r"${\1}", text) if self._program == "gemini" else text
        return _REFERENCE.sub(fill, text)

    def _written_out(self, what: str, text: str) -> str:
        """For what others can read, so that nothing may be looked up for it later."""
        filled = self._filled(text)
        if found := _REFERENCE.search(filled):
            raise LeftOut(
                f"its {what} names {found['name']}, which has to be written out: add it by `remuda gateway add`"
            )
        return filled

    def _env(self) -> dict[str, str]:
        env = {key: self._value(key, value) for key, value in _pairs(self._given.get("env"))}
        return env | {key: f"${{env:{key}}}" for key in _texts(self._given.get("env_vars"))}

    def _headers(self) -> dict[str, str]:
        given = self._given
        both = [*_pairs(given.get("headers")), *_pairs(given.get("http_headers"))]
        headers = {key: self._value(key, value, f"{self._name}_{key}") for key, value in both}
        return headers | {key: f"${{env:{value}}}" for key, value in _pairs(given.get("env_http_headers"))}

    def _value(self, key: str, value: str, variable: str = "") -> str:
        """A reference in our own words. What may be a secret is not copied but referred to."""
        filled = self._filled(value)
        for found in _REFERENCE.finditer(filled):
            if found["kind"] == "input":
                self._note(f"{self._program} asks for {key}; here {SET_IT.format(_variable(found['name'].upper()))}")
        ours = _REFERENCE.sub(_reference, filled)
        if refers(ours) or not (SECRET.search(key) or _GIVEN_AWAY.search(filled)):
            return ours
        scheme, _, secret = filled.partition(" ") if filled.lower().startswith("bearer ") else ("", "", filled)
        stand_in = self._stand_in(f"{self._name}_token" if scheme else variable or key, secret, exact=not variable)
        self._note(f"the value of {key} was not copied; {SET_IT.format(stand_in)}")
        return f"{scheme} ${{env:{stand_in}}}".strip()

    def _stand_in(self, wanted: str, secret: str, *, exact: bool) -> str:
        """The variable for a secret: two servers that each have an API_KEY of their own do not share one."""
        variable = _variable(wanted if exact and re.fullmatch(r"\w+", wanted) else wanted.upper())
        if self._place.stand_ins.setdefault(variable, secret) != secret:
            variable = _variable(f"{self._name}_{variable}".upper())
            self._place.stand_ins[variable] = secret
        return variable


def _reference(found: "re.Match[str]") -> str:
    name = found["name"]
    return f"${{env:{_variable(name.upper() if found['kind'] == 'input' else name)}}}"


def _variable(name: str) -> str:
    return re.sub(r"\W+", "_", name)


# --- secrets where they should not be ---


def _secret_in(command: Sequence[str]) -> str:
    """Where a command holds what may be a secret, in words; or nothing."""
    for option, value in _options(command):
        if _GIVEN_AWAY.search(value):
            return f"after {option}" if option else "in an address or key"
        if SECRET.search(option) and len(value) >= SHORTEST_SECRET and not _PLAIN.fullmatch(value):
            return f"after {option}"
    return ""


def _options(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each value, with the option or variable that it belongs to."""
    before = ""
    for word in command[1:]:
        option, equals, value = word.partition("=")
        if equals and re.fullmatch(r"[\w-]+", option):
            yield option, value
        else:
            yield before, "" if word.startswith("-") else word
        before = word if word.startswith("-") and not equals else ""


def _secret_in_url(url: str) -> str:
    try:
        given = parse_qsl(urlsplit(url).query)
    except ValueError:
        return ""  # which is told as what it is
    return next((key for key, value in given if SECRET.search(key) or _GIVEN_AWAY.search(value)), "")


def _held_back(name: str, where: str, command: bool) -> str:
    if command:
        said = f"its command holds what may be a secret ({where}), which everybody sees in the list of processes"
        return f"{said}; if that is as you want it: `remuda gateway add {name} -- COMMAND…`"
    said = f"its url holds what may be a secret ({where})"
    return f"{said}; give it in a header: `remuda gateway add {name} --url URL --header 'NAME=${{env:SECRET}}'`"


# --- values of the right kind ---


def _text(given: Json, key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [str(each) for each in value if isinstance(each, str | int | float)] if isinstance(value, list) else []


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(str(key), str(each)) for key, each in value.items()] if isinstance(value, dict) else []
