"""Facts about turns that are under way, written down before anything is done with them.

    <the repository's git folder>/remuda/
      lock  counter                 one number for each turn, over all work trees and processes of the repository
      keys                          which prompt became which turn, so that a prompt told twice is one turn
      turns/7/begun.json            everything that was known at the beginning, and session_context.md
      turns/7/tools.jsonl  said.jsonl   while it runs: what was used, and what the agent gave to the record
      turns/7/ended.json            the end. From here on every byte of the record follows from these files
      turns/7/errors.jsonl          steps that failed; the folder is removed when none is left

A turn is in this folder for as long as its record is not complete, so `open_turns` is what recovery has to do.
"""

import json
import os
import time

from remuda.records.files import Lock, append, listed, read, write_whole
from remuda.records.identity import new_uuid
from remuda.records.repository import Repository, ref

KEYS_SEEN = 1 << 16  # bytes from the end of `keys`; some thousand prompts
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Facts = dict[str, Any]


class Already(Exception):
    """This prompt has begun its turn before."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"this prompt is turn {number} already")


class OpenTurn:
    """The folder of one turn that is under way."""

    def __init__(self, repository: Repository, number: int) -> None:
        self.repository, self.number = repository, number
        self.folder = f"{repository.shared}/turns/{number}"

    def facts(self, name: str) -> "Facts | None":
        data = read(f"{self.folder}/{name}.json")
        return json.loads(data) if data else None

    def lines(self, name: str) -> "list[Facts]":
        """A line that was cut by a crash is as if it had not been begun."""
        whole = (read(f"{self.folder}/{name}.jsonl") or b"").split(b"\n")[:-1]
        return [json.loads(line) for line in whole if line.startswith(b"{") and line.endswith(b"}")]

    def keep(self, name: str, facts: "Facts") -> None:
        write_whole(f"{self.folder}/{name}.json", encoded(facts), 0o600)

    def add(self, name: str, facts: "Facts") -> None:
        append(f"{self.folder}/{name}.jsonl", encoded(facts) + b"\n")

    def close(self) -> None:
        """Out of sight at once, so that a crash on the way leaves no half of a turn."""
        gone = f"{self.repository.shared}/turns/.closed-{self.number}"
        try:
            os.rename(self.folder, gone)
        except FileNotFoundError:
            return
        remove(gone)


def encoded(facts: "Facts") -> bytes:
    return json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode()


def remove(folder: str) -> None:
    with os.scandir(folder) as inside:
        for entry in inside:
            remove(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    os.rmdir(folder)


def open_turns(repository: Repository) -> list[OpenTurn]:
    names = listed(f"{repository.shared}/turns")
    for name in names:
        if name.startswith("."):
            _sweep(f"{repository.shared}/turns/{name}")
    return [OpenTurn(repository, number) for number in sorted(int(name) for name in names if name.isdigit())]


def _sweep(left: str) -> None:
    """What a crash left on its way in or out. One that is being made is held by its maker's lock, not by its name."""
    try:
        if left.rpartition("/")[2].startswith(".closed-") or time.time() - os.stat(left).st_mtime > 3600:
            remove(left)
    except FileNotFoundError:
        return


def claim(
    repository: Repository, key: str, taken: "Callable[[int], bool]", begin: "Callable[[str, int, str], None]"
) -> OpenTurn:
    """A new turn with a number of its own. `begin` fills its folder; it is not there for others until it is full.

    The number is counted before it is used, so a crash leaves a gap and never the same number twice.
    """
    os.makedirs(f"{repository.shared}/turns", mode=0o700, exist_ok=True)
    with Lock(f"{repository.shared}/lock"):
        before = known(repository, key) if key else 0
        if before:
            raise Already(before)
        number = _next(repository, taken)
        write_whole(f"{repository.shared}/counter", str(number).encode(), 0o600, flush=False)
        turn = OpenTurn(repository, number)
        part = f"{repository.shared}/turns/.{number}-{os.getpid()}"
        os.mkdir(part, 0o700)
        try:
            begin(part, number, new_uuid(time.time()))
        except BaseException:
            remove(part)
            raise
        os.rename(part, turn.folder)
        if key:
            append(f"{repository.shared}/keys", f"{key} {number}\n".encode())
    return turn


def known(repository: Repository, key: str) -> int:
    """The turn that a prompt became, or 0."""
    try:
        file = os.open(f"{repository.shared}/keys", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        size = os.fstat(file).st_size
        seen = os.pread(file, KEYS_SEEN, max(0, size - KEYS_SEEN))
    finally:
        os.close(file)
    found = seen.rfind(f"{key} ".encode())
    number = seen[found + len(key) + 1 : seen.find(b"\n", found)] if found >= 0 else b""
    return int(number) if number.isdigit() else 0


def _next(repository: Repository, taken: "Callable[[int], bool]") -> int:
    counted = read(f"{repository.shared}/counter") or b""
    last = int(counted) if counted.isdigit() else _highest_tag(repository)
    number = last + 1
    if taken(number) or ref(repository, f"refs/tags/turn/{number}"):  # others' turns have come in by a fetch or a merge
        number = max(number, _highest_tag(repository) + 1)
    while taken(number) or os.path.exists(f"{repository.shared}/turns/{number}"):
        number += 1
    return number


def _highest_tag(repository: Repository) -> int:
    """The one time that all turns are looked at: in a new clone, or when somebody else's came in."""
    numbers = [0, *(int(name) for name in listed(f"{repository.common}/refs/tags/turn") if name.isdigit())]
    for line in (read(f"{repository.common}/packed-refs") or b"").split(b"\n"):
        name = line.rpartition(b" refs/tags/turn/")[2]
        if name != line and name.isdigit():
            numbers.append(int(name))
    return max(numbers)
