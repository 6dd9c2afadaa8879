"""The settings, `remuda.toml` at the project's root. Every key stands here; any other is refused."""

import math
import re
from pathlib import Path
from typing import Literal

import msgspec

from remuda.domain.decide import MOST_WORKERS
from remuda.domain.errors import Invalid
from remuda.domain.permission import Policy, Ruling
from remuda.domain.routing import Route
from remuda.domain.trigger import Course
from remuda.effects.work import WorkRules
from remuda.effects.world import DEFAULT_SILENCE
from remuda.records.keeping import BESIDE, DIRECTORY, FOLDER, BadKeeping, Keeping
from remuda.records.validations import COMMANDS, DEFAULT_LIMIT, Checks
from remuda.runtime.budget_settings import BudgetSettings, MeterSettings
from remuda.runtime.nearest import in_words
from remuda.runtime.tool_servers import GatewaySettings
from remuda.runtime.watch_settings import BodySettings, WatchSettings, check_bodies, check_watches
from remuda.runtime.work_settings import AcceptanceSettings, MergeSettings, WorktreeSettings, work_rules
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
    verdict: Course = Course.REAP  # what follows from a trigger where nobody answers


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
    tokens: int = 0  # the budget of those that are spawned for them; 0 in all four: as [budget] says
    usd: float = 0.0
    turns: int = 0
    minutes: float = 0.0

    def route(self) -> Route:
        own = BudgetSettings(self.tokens, self.usd, self.turns, self.minutes)
        budget = own.limits() if own != BudgetSettings() else None
        return Route(self.labels, self.paths, self.role, self.backend, self.model, budget)


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
    worktrees: WorktreeSettings = WorktreeSettings()
    acceptance: AcceptanceSettings = AcceptanceSettings()
    merge: MergeSettings = MergeSettings()
    roles: dict[str, RoleSettings] = {}
    agents: dict[str, AgentSettings] = {}
    gateway: GatewaySettings = GatewaySettings()
    budget: BudgetSettings = BudgetSettings()
    meter: MeterSettings = MeterSettings()
    watch: WatchSettings = WatchSettings()
    bodies: BodySettings = BodySettings()

    @property
    def work(self) -> WorkRules:
        return work_rules(self.worktrees, self.acceptance, self.merge)

    def policy(self, role: str) -> Policy:
        said = self.roles.get(role, RoleSettings())
        return Policy(said.allow, said.ask, said.deny, said.default, said.outside)


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
    settings.budget.limits()
    settings.meter.services({})
    if not 0 <= settings.tasks.workers <= MOST_WORKERS:
        raise Invalid(f"{path}: tasks.workers must be from 0 to {MOST_WORKERS}, not {settings.tasks.workers}")
    if not 0 < settings.turns.silence_seconds < math.inf:  # also not nan, which TOML can write
        raise Invalid(f"{path}: turns.silence_seconds must be more than 0, not {settings.turns.silence_seconds}")
    try:
        settings.work  # noqa: B018 - it must make sense
        check_watches(settings.watch)
        check_bodies(settings.bodies)
        for each in settings.routing:
            each.route()
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from error
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
