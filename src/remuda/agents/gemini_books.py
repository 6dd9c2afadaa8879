"""The books of gemini: a file for each conversation in its home, with every model call and what it used.

Its ACP answer gives the turn's sum and leaves out what came from the cache; the file has it call by call.

The same files have to be seen to before a conversation is gone on with (seen with 0.61.0). Gemini names a file by the
minute in which it opens the conversation, and begins one anew whenever it opens it, though it then goes on in the old
one. Loaded within the minute of its birth, a conversation would be overwritten by its own empty beginning and lost: its
file is given the name of the minute before. And the empty beginning that a load leaves is swept at the next start, with
all files of that conversation: it is removed before.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from remuda.agents import Launch, Retry
from remuda.agents.books import Kept, Page
from remuda.domain.state import Usage

MINUTE = timedelta(minutes=1)
NAMED = "%Y-%m-%dT%H-%M"
_ANSWERED = re.compile(rb'"type"\s*:\s*"gemini"')


class _Tokens(Struct):
    input: int = 0
    output: int = 0
    cached: int = 0
    thoughts: int = 0
    tool: int = 0


class _Record(Struct):
    id: str = ""
    type: str = ""
    tokens: _Tokens | None = None
    model: str = ""


class GeminiBooks:
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    def __init__(self, launch: Launch) -> None:
        self._home = home_of(launch)

    async def page(self, ref: str, _known: frozenset[str]) -> Page:
        return Page(await asyncio.to_thread(self._calls, ref))

    async def retry(self, _ref: str) -> Retry | None:
        return None  # it keeps its retries to itself

    def _calls(self, ref: str) -> Sequence[Kept]:
        found: dict[str, Kept] = {}
        for path in files_of(self._home, ref):
            try:
                found |= {each.id: each for each in read(path.read_bytes().splitlines())}
            except OSError:
                continue  # gone meanwhile; what it had told is counted
        return list(found.values())


def read(lines: Iterable[bytes]) -> Iterable[Kept]:
    """The model calls in a file. A record may be written again when its tools are done; its tokens stay the same."""
    for line in lines:
        try:
            record = msgspec.json.decode(line, type=_Record)
        except (msgspec.DecodeError, UnicodeError):
            continue  # half a line, which will be whole at the next look, or a record of another kind
        if record.type == "gemini" and record.tokens is not None:
            yield Kept(record.id, _usage(record.tokens), record.model)


def _usage(used: _Tokens) -> Usage:
    return Usage(
        input_tokens=max(0, used.input + used.tool - used.cached),
        output_tokens=used.output + used.thoughts,
        cache_read_tokens=used.cached,
        context_tokens=used.input + used.tool,
    )


def before_resume(launch: Launch, now: datetime | None = None) -> None:
    """See to it that the conversation can be loaded without harm."""
    now = now or datetime.now(UTC)
    for path in _swept(files_of(home_of(launch), launch.resume)):
        if f"-{now:{NAMED}}-" in path.name:
            path.rename(_free_name(path, now))


def _free_name(path: Path, minute: datetime) -> Path:
    """By the last minute before this one of which there is no file."""
    before = minute - MINUTE
    earlier = path.with_name(path.name.replace(f"{minute:{NAMED}}", f"{before:{NAMED}}"))
    return _free_name(earlier, before) if earlier.exists() else earlier


def _swept(files: Sequence[Path]) -> Sequence[Path]:
    """The files of a conversation, without the empty beginnings that loading it has left."""
    answered = [path for path in files if _is_answered(path)]
    with suppress(OSError):
        for path in set(files) - set(answered) if answered else ():
            path.unlink()
    return answered or files


def _is_answered(path: Path) -> bool:
    try:
        return _ANSWERED.search(path.read_bytes()) is not None
    except OSError:
        return True  # nobody can tell, so it stays


def files_of(home: Path, ref: str) -> list[Path]:
    return sorted(home.glob(f".gemini/tmp/*/chats/session-*-{ref[:8]}.jsonl")) if ref else []


def home_of(launch: Launch) -> Path:
    return Path(launch.env.get("HOME") or os.environ.get("HOME") or "/nonexistent")
