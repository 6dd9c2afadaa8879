"""Which way of listing suits which client. Pure: a table of what was measured, and the rule for all others."""

from enum import StrEnum
from typing import NamedTuple

from remuda.mcp.eras import Who
from remuda.runtime.tool_servers import Listing


class Mode(StrEnum):
    STABLE = "stable"  # a server's tools are added when it is first started, and stay when it leaves
    DYNAMIC = "dynamic"  # the tools of the servers that run, and of no others
    SEARCH = "search"  # never anything but the gateway's own tools


class Profile(NamedTuple):
    mode: Mode
    refreshes: bool  # asks for the list again when it is told that it changed


# By how the client's own name begins. Measured: Claude Code 2.1 and OpenCode 1.18 are a request late without the
# barrier; Gemini 0.61 asks again, but over ACP its model sees the new tools with the next prompt and no sooner;
# Codex 0.166 never asks again.
PROFILES: dict[str, Profile] = {
    "claude": Profile(Mode.STABLE, refreshes=True),
    "opencode": Profile(Mode.STABLE, refreshes=True),
    "gemini": Profile(Mode.STABLE, refreshes=False),
    "codex": Profile(Mode.SEARCH, refreshes=False),
}
UNKNOWN = Profile(Mode.STABLE, refreshes=True)  # whether it does is found out at the first barrier


def profile_of(who: Who, listing: Listing = "auto") -> Profile:
    """What the user says goes before what the table knows."""
    name = who.name.lower()
    known = next((profile for start, profile in PROFILES.items() if name.startswith(start)), UNKNOWN)
    return known if listing == "auto" else known._replace(mode=Mode(listing))
