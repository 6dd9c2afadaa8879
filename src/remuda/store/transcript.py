"""Where everything an agent said is kept: two append-only JSONL files for each session.

`0001.jsonl` has what was understood, an entry a line; `0001.wire.jsonl` has every line as it crossed the pipe. A line
goes to the kernel in one write as soon as it is there, so that killing the runtime loses none of it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.store.output import Entry, Lines, OutputRing

_ENTRY = msgspec.json.Decoder(Entry)
_ENCODE = msgspec.json.Encoder().encode
_TAIL_BYTES = 256 * 1024  # enough for a ring of lines; a transcript may be gigabytes


class Transcript:
    """The open files of one session, and the ring of its recent lines."""

    def __init__(self, path: Path, ring: OutputRing) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.ring = ring
        self._lines = Lines()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._wire = os.open(wire_path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._file).st_size
        self.line_count = 0

    def add(self, entry: Entry) -> None:
        data = _ENCODE(entry) + b"\n"
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
        _write(self._wire, _ENCODE({"at": at, "side": side, "line": line}) + b"\n")

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


def read_entries(path: Path, offset: int = 0, size: int | None = None) -> Iterator[Entry]:
    """Entries from a byte offset that begins one. A torn last line, as a power cut leaves it, is passed over."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read() if size is None else file.read(size)
    for line in data.split(b"\n"):
        try:
            yield _ENTRY.decode(line)
        except msgspec.MsgspecError:
            continue


def recent_entries(folder: Path, agent: str) -> list[Entry]:
    """The end of the agent's last transcripts, newest session last."""
    sessions = sorted(each for each in (folder / agent).glob("*.jsonl") if not each.name.endswith(".wire.jsonl"))
    entries: list[Entry] = []
    room = _TAIL_BYTES
    for path in reversed(sessions):
        size = path.stat().st_size
        entries[:0] = read_entries(path, max(0, size - room))
        room -= size
        if room <= 0:
            break
    return entries


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
