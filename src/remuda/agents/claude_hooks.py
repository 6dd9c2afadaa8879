"""What Claude Code tells of the user's hooks: which let pass what was to come, which forbade it, which broke. Pure.

A hook forbids by its exit code, or by what it writes; the program then calls the one an error and the other a success.
"""

import msgspec
from msgspec import Struct, field

from remuda.agents import Hook
from remuda.agents.claude_wire import System

BLOCKS = 2  # the exit code by which a hook forbids
# What these are told of has happened already: their no is a complaint.
TOO_LATE = ("PostToolUse", "PostToolUseFailure", "PostCompact", "Notification", "SessionStart", "SessionEnd")


class _Permission(Struct):
    decision: str = field(default="", name="permissionDecision")
    reason: str = field(default="", name="permissionDecisionReason")


class _Said(Struct):
    """What a hook may write for the program to heed."""

    decision: str | None = None
    reason: str | None = None
    goes_on: bool = field(default=True, name="continue")
    stop_reason: str | None = field(default=None, name="stopReason")
    permission: _Permission = field(default_factory=_Permission, name="hookSpecificOutput")

    @property
    def forbids(self) -> bool:
        return self.decision == "block" or not self.goes_on or self.permission.decision == "deny"


def hook(line: System) -> Hook:
    said = _said(line.stdout)
    by_code = line.exit_code == BLOCKS
    if (by_code or said.forbids) and line.hook_event not in TOO_LATE:
        why = line.stderr if by_code else said.reason or said.permission.reason or said.stop_reason or ""
        return Hook(line.hook_name, "blocked", why.strip())
    if line.outcome != "success" or line.exit_code:
        return Hook(line.hook_name, "failed", line.stderr.strip() or f"it exited with code {line.exit_code}")
    return Hook(line.hook_name, "passed", line.stdout.strip())


def _said(stdout: str) -> _Said:
    try:
        return msgspec.json.decode(stdout, type=_Said)
    except (msgspec.DecodeError, UnicodeError):
        return _Said()  # words for the transcript
