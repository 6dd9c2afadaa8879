"""The settings of what is noticed: `[watch.*]`."""

import math
from collections.abc import Iterator

import msgspec

from remuda.domain.errors import Invalid
from remuda.domain.spin import Limits
from remuda.domain.trigger import Course
from remuda.watch.bodies import Room
from remuda.watch.changeset import Wrong
from remuda.watch.gang import Wayward
from remuda.watch.verdict import Patience


class SpinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    nudge: float = 6.0  # points without progress until it is told
    fire: float = 14.0  # until it is stopped
    nudge_rounds: int = 3  # of the same calls with the same outcome
    fire_rounds: int = 6


class StallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    silences: int = 2  # sessions in a row that say and do nothing; see turns.silence_seconds


class ChangesetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failures: int = 3  # checks in a row that fail in the same way; 0: any number
    conflicts: int = 3
    files: int = 0  # that a task may change; 0: any number
    outside: bool = False  # whether it is wrong to change files outside the paths that the task names


class GangSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    share: float = 0.5  # of those below an agent that were stopped
    least: int = 3  # so many of them at any rate; 0: never for that reason
    tokens: int = 0  # that they may spend without an accepted change; 0: any number
    same_files: int = 3  # of them whose work fails on the very same files; 0: any number


class VerdictSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: float = 600.0  # to wait for one
    restarts: int = 3  # then it is given up,
    restart_seconds: float = 3600.0  # if they were in so short a time


class BodySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the oldest of the dead are buried without being asked for; 0: never for that reason."""

    days: float = 0.0  # that a body lies there
    at_most: int = 0  # bodies
    megabytes: float = 0.0  # of their transcripts together

    @property
    def room(self) -> Room:
        return Room(self.days * 86400, self.at_most, int(self.megabytes * 1_000_000))


class WatchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    spin: SpinSettings = SpinSettings()
    stall: StallSettings = StallSettings()
    changeset: ChangesetSettings = ChangesetSettings()
    gang: GangSettings = GangSettings()
    verdict: VerdictSettings = VerdictSettings()
    idle: bool = True  # agents whose work is done and verified expire or hibernate

    @property
    def limits(self) -> Limits:
        said = self.spin
        return Limits(said.nudge, said.fire, said.nudge_rounds, said.fire_rounds)

    @property
    def wrong(self) -> Wrong:
        said = self.changeset
        return Wrong(said.failures, said.conflicts, said.files, said.outside)

    @property
    def wayward(self) -> Wayward:
        return Wayward(self.gang.share, self.gang.least, self.gang.tokens, self.gang.same_files)

    def patience(self, course: Course) -> Patience:
        said = self.verdict
        return Patience(said.seconds, course, said.restarts, said.restart_seconds)


def check_watches(settings: WatchSettings) -> None:
    for key, fine, rule in _rules(settings):
        if not fine:
            raise Invalid(f"watch.{key} must be {rule}")


def check_bodies(settings: BodySettings) -> None:
    for key, value in (("days", settings.days), ("at_most", settings.at_most), ("megabytes", settings.megabytes)):
        if not 0 <= value < math.inf:  # also not nan
            raise Invalid(f"bodies.{key} must be 0 or more, not {value}")


def _rules(settings: WatchSettings) -> Iterator[tuple[str, bool, str]]:
    spin, gang, verdict = settings.spin, settings.gang, settings.verdict
    yield "spin.nudge", 0 < spin.nudge < math.inf, "more than 0"
    yield "spin.fire", spin.nudge < spin.fire < math.inf, "more than watch.spin.nudge"
    yield "spin.nudge_rounds", spin.nudge_rounds >= 2, "2 or more"
    yield "spin.fire_rounds", spin.fire_rounds > spin.nudge_rounds, "more than watch.spin.nudge_rounds"
    yield "stall.silences", settings.stall.silences >= 1, "1 or more"
    yield "gang.share", 0 < gang.share <= 1, "more than 0 and at most 1"
    yield "verdict.seconds", 0 < verdict.seconds <= 30 * 86400, "more than 0 and at most 30 days"
    yield "verdict.restarts", verdict.restarts >= 0, "0 or more"
    yield "verdict.restart_seconds", 0 < verdict.restart_seconds < math.inf, "more than 0"
