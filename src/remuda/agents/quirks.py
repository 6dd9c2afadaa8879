"""What each ACP agent does in its own way, as data. Every row was seen on the wire; tests/live holds them to it.

The protocol leaves open what an agent's numbers mean and how it tells that a model call failed. These rows say it, so
that the code which reads the protocol has no agent's name in it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from remuda.agents import Launch
from remuda.agents.books import Books
from remuda.agents.gemini_books import GeminiBooks, before_resume
from remuda.agents.opencode_books import OpencodeBooks

Pattern = re.Pattern[str]


class Counting(StrEnum):
    """What the numbers of an agent mean: the same field means five things in five agents."""

    TURN = "turn"  # the answer to a prompt counts the whole turn
    LAST_CALL = "last call"  # ... only its last model call; the ones before are not told
    SESSION = "session"  # ... everything since the session began
    QUOTA = "turn by model"  # the turn, in the answer's `_meta.quota`; what was cached is not told apart
    CALLS = "call"  # each model call, in notices of the agent's own
    CONTEXT = "context only"  # how full the window is, and nothing else
    NONE = "nothing"

    @property
    def exact(self) -> bool:
        """Whether the tokens of several model calls add up to what was really used."""
        return self not in (Counting.LAST_CALL, Counting.CONTEXT, Counting.NONE)

    @property
    def priceable(self) -> bool:
        """A price table needs each call by itself, with what was cached told apart. Else a price is a guess."""
        return self is Counting.CALLS


@dataclass(frozen=True, slots=True)
class Quirks:
    counting: Counting = Counting.TURN  # in the protocol
    cached_inside: bool = False  # input tokens include the cached ones, which Remuda counts apart
    # A message of the agent that is the report of a failure, whole: what a model says never looks quite like it.
    complaint: Pattern | None = None
    # A message that is no word of the model's but says that a failed call is tried again: `attempt`, `seconds`.
    retries: Pattern | None = None
    # To say nothing, use no tool and call it a good end is how this agent reports a failure.
    silence_fails: bool = False
    ask_mode: str = ""  # the mode in which it asks before each tool that changes something
    bypass_mode: str = ""  # the mode in which it asks nothing
    forks_unasked: bool = False  # session/fork works, though it is not among its capabilities
    hello: Mapping[str, object] = field(default_factory=dict)  # what to say in `clientCapabilities._meta`
    tool_in_id: Pattern | None = None  # finds the tool's name in the id of its call
    replays_late: bool = False  # the history of a loaded session comes after the answer that it is loaded
    books: Callable[[Launch], Books] | None = None  # of its own, which tell each call where its protocol does not
    before_resume: Callable[[Launch], None] | None = None  # sees to its files, so that nothing is lost by it
    notices: str = ""  # the method of its own notices, which are read as updates of the session too

    @property
    def counts(self) -> Counting:
        """What is told in all, the agent's own books included."""
        return Counting.CALLS if self.books else self.counting


PLAIN = Quirks()

# Claude Code and Codex are spoken to in protocols of their own, which tell each call.
NATIVE = Quirks(counting=Counting.CALLS)

# A user's own command may be any of them. What would be wrong for one of the others is left out.
CUSTOM = Quirks(
    complaint=re.compile(r"Ran into this error: .*|API Error: \d{3} .*", re.DOTALL),
    silence_fails=True,
)

OPENCODE = Quirks(counting=Counting.LAST_CALL, silence_fails=True, books=OpencodeBooks)

# Without being asked for its own notices goose counts only the last call, and says nothing of a full context.
GOOSE = Quirks(
    counting=Counting.CALLS,
    cached_inside=True,
    complaint=re.compile(
        r"Ran into this error: .*Please retry if you think this is a transient or recoverable error\.\s*"
        r"|Network error: .*Please resend your message to try again\.\s*"
        r"|Unable to continue: .*",
        re.DOTALL,
    ),
    silence_fails=True,
    ask_mode="approve",
    bypass_mode="auto",
    forks_unasked=True,
    hello={"goose": {"customNotifications": True}},
    notices="_goose/unstable/session/update",
)

GEMINI = Quirks(
    counting=Counting.QUOTA,
    cached_inside=True,
    ask_mode="default",
    bypass_mode="yolo",
    replays_late=True,
    books=GeminiBooks,
    before_resume=before_resume,
    tool_in_id=re.compile(r"(.+)__"),  # run_shell_command__call_1794779729206
)

QWEN = Quirks(counting=Counting.CALLS, cached_inside=True, ask_mode="default", bypass_mode="yolo")

COPILOT = Quirks(
    counting=Counting.SESSION, cached_inside=True, complaint=re.compile(r"Error: .*", re.DOTALL), silence_fails=True
)

PI = Quirks(
    counting=Counting.CONTEXT,
    silence_fails=True,
    retries=re.compile(
        r"Retrying \(attempt (?P<attempt>\d+)/\d+, waiting (?P<seconds>\d+)s\)\.\.\.|Retry finished, resuming\."
    ),
)
