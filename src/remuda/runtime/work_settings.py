"""The settings of how tasks are worked on, checked and merged."""

import math

import msgspec

from remuda.domain.errors import Invalid
from remuda.effects.work import SECONDS, WorkRules
from remuda.git.keeping import PRECIOUS
from remuda.git.merge import Mode
from remuda.git.rebase import History


class WorktreeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    set_up: tuple[str, ...] = ()  # run in each new worktree, before anyone works in it
    set_up_seconds: float = SECONDS
    precious: tuple[str, ...] = PRECIOUS  # ignored files that keep a worktree from being removed


class AcceptanceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: float = SECONDS  # for each command
    env: tuple[str, ...] = ()  # names of variables that may pass to the commands, and to the set-up


class MergeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode = "branch-only"
    history: History = "rebase"
    target: str = ""  # the branch to merge into; empty: the one that the user is on


def work_rules(worktrees: WorktreeSettings, acceptance: AcceptanceSettings, merge: MergeSettings) -> WorkRules:
    for name, seconds in (
        ("worktrees.set_up_seconds", worktrees.set_up_seconds),
        ("acceptance.seconds", acceptance.seconds),
    ):
        if not 0 < seconds < math.inf:
            raise Invalid(f"{name} must be more than 0, not {seconds}")
    return WorkRules(
        mode=merge.mode,
        history=merge.history,
        target=merge.target,
        seconds=acceptance.seconds,
        env=acceptance.env,
        set_up=worktrees.set_up,
        set_up_seconds=worktrees.set_up_seconds,
        precious=worktrees.precious,
    )
