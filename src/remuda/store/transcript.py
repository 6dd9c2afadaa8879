"""Where everything an agent said is kept: two append-only JSONL files for each session.

`0001.jsonl` has what was understood, an entry a line; `0001.wire.jsonl` has every line as it crossed the pipe. A line
goes to the kernel in one write as soon as it is there, so that killing the runtime loses none of it.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from remuda.store.output import Entry, Lines, OutputRing

_ENTRY = msgspec.json.Decoder(Entry)
_ENCODE = msgspec.json.Encoder().encode
_TAIL_BYTES = 256 * 1024  # enough for a ring of lines; a transcript may be gigabytes


@dataclass(frozen=True, slots=True)
class _Wire:
    at: float
    side: str
    line: str


class Transcript:
    """The open files of one session, and the ring of its recent lines."""

    def __init__(self, path: Path, ring: OutputRing) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.ring = ring
        self._lines = Lines()
        self._file = _open(path)
        self._wire = _open(wire_path(path))
        self.size = os.fstat(self._file).st_size
        self.line_count = 0

    def add(self, entry: Entry) -> None:
        data = _encode(entry)
        _write(self._file, data)
        self.size += len(data)
        for line in self._lines.feed(entry):
            self.ring.append(line)
            self.line_count += 1

    def end_line(self) -> None:
        """The agent has said its piece: what it began is a line."""
        for line in self._lines.rest():
            self.ring.append(line)
            self.line_count += 1

    def wire(self, at: float, side: str, line: str) -> None:
        _write(self._wire, _encode(_Wire(at, side, line)))

    def sync(self) -> None:
        os.fsync(self._file)
        os.fsync(self._wire)

    def close(self) -> None:
        os.close(self._file)
        os.close(self._wire)


def session_path(folder: Path, agent: str, epoch: int) -> Path:
    return folder / agent / f"{epoch:04}.jsonl"


def wire_path(path: Path) -> Path:
    return path.with_suffix(".wire.jsonl")


def decode_entries(data: bytes) -> Iterator[Entry]:
    for line in data.split(b"\n"):
        try:
            yield _ENTRY.decode(line)
        except msgspec.MsgspecError:
            continue


class Tail:
    """Reads what an agent says, over all its sessions: the last lines of it, then those that have come since."""

    def __init__(self, folder: Path, agent: str) -> None:
        self._folder = folder / agent
        self._read: dict[Path, int] = {}  # how far, in bytes
        self._lines = Lines()
        self._finished = 0  # sessions that have been read to their end
        self._path: Path | None = None  # where the last entry was
        self._turn = 0  # and its turn

    def last(self, count: int) -> list[str]:
        """The last lines. Reads from the end, and no more than it takes: a transcript may be gigabytes."""
        room = _TAIL_BYTES
        while True:
            self._lines, self._finished, self._read = Lines(), 0, self._starts(room)
            whole = not any(self._read.values())
            lines = self.more()
            if whole or len(lines) >= count:
                return lines[max(0, len(lines) - count) :]
            room *= 8

    def _starts(self, room: int) -> dict[Path, int]:
        """For each session the offset from which on all of them together fill the room. It may be within an entry,
        which is then passed over."""
        starts: dict[Path, int] = {}
        for path in reversed(self._sessions()):
            size = path.stat().st_size
            starts[path] = max(0, size - max(0, room))
            room -= size
        return starts

    def more(self) -> list[str]:
        """The lines that have come since the last call."""
        found: list[str] = []
        sessions = self._sessions()
        for path in sessions[self._finished :]:
            found += self._read_on(path)
        # A session ends before the next one begins, so only the newest can still grow.
        self._finished = max(0, len(sessions) - 1)
        return found

    def _read_on(self, path: Path) -> list[str]:
        offset = self._read.get(path, 0)
        lines = self._lines.rest() if path != self._path else []  # a new session begins a new line
        self._path = path
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
        end = data.rfind(b"\n") + 1  # an entry that is half written is for the next time
        self._read[path] = offset + end
        for entry in decode_entries(data[:end]):
            self._turn = entry.turn
            lines += self._lines.feed(entry)
        return lines

    def _sessions(self) -> list[Path]:
        found = [each for each in self._folder.glob("*.jsonl") if each.stem.isdigit()]
        return sorted(found, key=lambda each: int(each.stem))

    def rest(self, turn: int | None = None) -> list[str]:
        """The line that was begun; where a turn is named, only if it was begun in that one."""
        return self._lines.rest() if turn in (None, self._turn) else []


def last_lines(folder: Path, agent: str, count: int) -> list[str]:
    tail = Tail(folder, agent)
    lines = [*tail.last(count), *tail.rest()]
    return lines[max(0, len(lines) - count) :]


def _open(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")  # a line torn by a power cut or a full disk must not take the next one with it
    return file


def _encode(record: Entry | _Wire) -> bytes:
    try:
        return _ENCODE(record) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        fields = asdict(record)
        for name, value in fields.items():
            fields[name] = value.encode(errors="replace").decode() if isinstance(value, str) else value
        return _ENCODE(fields) + b"\n"


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
