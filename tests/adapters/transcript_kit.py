"""Reads transcripts whole, as no reader of the product does: they may be gigabytes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from remuda.store.output import Entry, Lines
from remuda.store.transcript import decode_entries


def read_entries(path: Path, offset: int = 0, size: int | None = None) -> Iterator[Entry]:
    """Entries from a byte offset that begins one."""
    data = path.read_bytes()[offset:]
    yield from decode_entries(data if size is None else data[:size])


def to_lines(entries: Iterable[Entry]) -> list[str]:
    lines = Lines()
    return [line for entry in entries for line in lines.feed(entry)] + lines.rest()
