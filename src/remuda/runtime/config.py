"""The settings, `remuda.toml` at the project's root. Every key stands here; any other is refused."""

import difflib
import math
import re
from pathlib import Path
from typing import get_args

import msgspec

from remuda.domain.errors import Invalid
from remuda.domain.permission import Policy, Ruling
from remuda.effects.world import DEFAULT_SILENCE
from remuda.records.keeping import BESIDE, DIRECTORY, FOLDER, BadKeeping, Keeping
from remuda.records.validations import COMMANDS, DEFAULT_LIMIT, Checks
from remuda.store.output import DEFAULT_LINES


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    backend: str = "scripted"  # who runs an agent when `spawn` does not say


class OutputSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lines: int = DEFAULT_LINES  # recent lines of output kept in memory for each live agent


class TurnSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    silence_seconds: float = DEFAULT_SILENCE  # a turn without a sign of life for so long is given up
    # How records are kept: see records/keeping.py.
    records: str = BESIDE
    folder: str = FOLDER
    directory: str = DIRECTORY
    signing_key: str = ""  # a file with an ed25519 key; a path in the project, or anywhere
    allowed_signers: str = ""  # a file with the keys whose signatures count
    # What is checked before a turn counts as complete: commands, as lists of words.
    tests: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    typecheck: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    scan: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # files that must begin with a metadata header
    versions: tuple[str, ...] = ()  # files whose version must be raised when they change
    branch_pattern: str = ""
    commit_pattern: str = ""
    check_seconds: float = DEFAULT_LIMIT
    blocking: bool = False  # whether a turn whose checks fail, fails

    def keeping(self) -> Keeping:
        return Keeping(self.records, self.folder, self.directory)

    def checks(self) -> Checks:
        return Checks(
            commands={rule: getattr(self, name) for rule, name in COMMANDS.items()},
            headers=self.headers,
            versions=self.versions,
            branch=self.branch_pattern,
            commit=self.commit_pattern,
            seconds=self.check_seconds,
            blocking=self.blocking,
        )


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

    def policy(self, role: str) -> Policy:
        said = self.roles.get(role, RoleSettings())
        return Policy(said.allow, said.ask, said.deny, said.default, said.outside)


TEMPLATE = """\
# Settings of Remuda for this project. Every key is optional; what is here are the defaults.

[project]
# backend = "scripted"    # who runs an agent when `remuda spawn` does not say

[turns]
# silence_seconds = 900   # a turn without a sign of life for so long is given up; tools and questions do not count
# records = "beside"      # in git under tags; "files": in the work tree too; "branch": committed as well; "off"
# folder = "ai/agentic-pipeline"   # of the records
# directory = "turn-{number}"      # of one turn in it; add {id} where records of many clones are merged
# signing_key = ""        # a file with an ed25519 key, as ssh-keygen makes it
# allowed_signers = ""    # a file with the keys whose signatures count
# tests = []              # commands that are run before a turn counts as complete: ["make", "test"]
# lint = []
# typecheck = []
# build = []
# scan = []
# headers = []            # files that must begin with a metadata header: ["src/**/*.ts"]
# versions = []           # files whose version must be raised when they change
# branch_pattern = ""     # a regular expression for the branch that work is done on
# commit_pattern = ""     # and one for the first line of each commit
# check_seconds = 600     # a check that takes longer has failed
# blocking = false        # whether a turn whose checks fail has failed

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
        raise Invalid(f"{path}: {_in_words(str(error))}") from error
    if not 1 <= settings.output.lines <= 100_000:
        raise Invalid(f"{path}: output.lines must be from 1 to 100000, not {settings.output.lines}")
    if not 0 < settings.turns.silence_seconds < math.inf:  # also not nan, which TOML can write
        raise Invalid(f"{path}: turns.silence_seconds must be more than 0, not {settings.turns.silence_seconds}")
    _check_turns(path, settings.turns)
    return settings


def _check_turns(path: Path, turns: TurnSettings) -> None:
    if not 0 < turns.check_seconds < math.inf:
        raise Invalid(f"{path}: turns.check_seconds must be more than 0, not {turns.check_seconds}")
    try:
        turns.keeping()
        for name in ("branch_pattern", "commit_pattern"):
            re.compile(getattr(turns, name))
    except BadKeeping as error:
        raise Invalid(f"{path}: {error}") from error
    except re.error as error:
        raise Invalid(f"{path}: turns.{name} is no regular expression: {error}") from error


def signing_key(root: Path) -> Path | None:
    """The key that a project's records are signed with, if it has one."""
    key = load_settings(root / "remuda.toml").turns.signing_key
    return root / Path(key).expanduser() if key else None


def known_keys() -> list[str]:
    keys: list[str] = []
    for section in msgspec.structs.fields(Settings):
        named = get_args(section.type)  # a section with a name of the user's own, as in [roles.reviewer]
        struct, prefix = (named[1], f"{section.name}.NAME") if named else (section.type, section.name)
        keys += [f"{prefix}.{each.name}" for each in msgspec.structs.fields(struct)]
    return keys


def _in_words(error: str) -> str:
    """For a key that does not exist, name the nearest that does."""
    unknown = re.search(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", error)
    if not unknown:
        return error
    section = (unknown[2] or "").replace("[...]", ".NAME")
    key = f"{section}.{unknown[1]}" if section else unknown[1]
    sections = [field.name for field in msgspec.structs.fields(Settings)]
    near = difflib.get_close_matches(key, known_keys() if section else sections, n=1, cutoff=0.4)
    return f"there is no setting {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
