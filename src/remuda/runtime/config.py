"""The settings, `remuda.toml` at the project's root. Every key stands here; any other is refused."""

import difflib
import math
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from remuda.domain.decide import MOST_WORKERS
from remuda.domain.errors import Invalid
from remuda.domain.permission import Policy, Ruling
from remuda.effects.world import DEFAULT_SILENCE
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


class TaskSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How work is given out: see watch/coordinator.py."""

    coordinator: Literal["remuda", "none"] = "remuda"  # who assigns while no agent of role coordinator is alive
    review: Literal["other", "none"] = "other"  # who reviews before a merge
    workers: int = 0  # spawned, up to so many, while there is work for them


class RoutingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks with one of these labels, or about such files, are for these agents."""

    labels: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    role: str = "worker"
    backend: str = ""
    model: str = ""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program of the user's own that speaks ACP, or another command for one that Remuda knows."""

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # names of the variables that may pass to it from the user's environment
    title: str = ""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: ProjectSettings = ProjectSettings()
    output: OutputSettings = OutputSettings()
    turns: TurnSettings = TurnSettings()
    tasks: TaskSettings = TaskSettings()
    routing: tuple[RoutingSettings, ...] = ()
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

[tasks]
# coordinator = "remuda"  # "none": nobody assigns but you, and an agent of role coordinator
# review = "other"        # "none": what passes its checks is merged without a review
# workers = 0             # spawned, up to so many, while there is work for them

# [[routing]]             # who gets a task: the first that fits, by a label or by a file
#   labels = []
#   paths = []            # patterns, as in "docs/*"
#   role = "worker"
#   backend = ""
#   model = ""

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
    if not 0 <= settings.tasks.workers <= MOST_WORKERS:
        raise Invalid(f"{path}: tasks.workers must be from 0 to {MOST_WORKERS}, not {settings.tasks.workers}")
    if not 0 < settings.turns.silence_seconds < math.inf:  # also not nan, which TOML can write
        raise Invalid(f"{path}: turns.silence_seconds must be more than 0, not {settings.turns.silence_seconds}")
    return settings


def known_keys() -> list[str]:
    keys: list[str] = []
    for section in msgspec.structs.fields(Settings):
        struct, prefix = _shape(section.name, section.type)
        keys += [f"{prefix}.{each.name}" for each in msgspec.structs.fields(struct)]
    return keys


def _shape(name: str, kind: Any) -> tuple[Any, str]:
    """What a section holds, and how its keys begin: plain, or with a name of the user's own, or one of many."""
    match get_args(kind):
        case (_, struct) if get_origin(kind) is dict:
            return struct, f"{name}.NAME"
        case (struct, _):
            return struct, name
        case _:
            return kind, name


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
