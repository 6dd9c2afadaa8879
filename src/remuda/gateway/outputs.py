"""Results that are too long for a conversation: kept in files, told by how they begin, and read on in parts.

An agent may not be allowed to read files outside its project, nor those of Remuda. So whatever was kept can be read
through the gateway as well, and by its number alone: no path comes from the model.
"""

import itertools
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Raw

from remuda.domain.errors import Invalid, RemudaError
from remuda.gateway.passing import content_of, text_result

EXCERPT = 2000  # characters of it that are told at once
PART = 20_000  # characters of it that are read at a time
MOST_KEPT = 100  # files; the oldest make room
READ = "read_output"


class Output(NamedTuple):
    path: Path
    characters: int


class Outputs:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._kept: dict[int, Output] = {}

    def keep(self, result: Raw, what: str) -> Raw:
        """What is told instead of the result. Blocks: call it in a thread."""
        content = content_of(result)
        only_text = bool(content.content) and all(block.type == "text" for block in content.content)
        text = "\n".join(block.text for block in content.content) if only_text else bytes(result).decode()
        number = next(self._numbers)
        path = self._folder / f"{secrets.token_hex(6)}-{number}.{'txt' if only_text else 'json'}"
        self._write(path, text)
        self._kept[number] = Output(path, len(text))
        said = f"The result of {what} has {len(result):,} bytes, too many for here. All of it is in {path}. "
        said += f"To read on, use call_tool with the name {READ} and the arguments "
        said += f'{{"output": {number}, "from": {EXCERPT}}}. It begins:\n\n{text[:EXCERPT]}'
        return text_result(said, error=content.is_error)

    def read(self, number: object, start: object) -> Raw:
        """The next part. Blocks as well."""
        output = self._kept.get(number) if isinstance(number, int) else None
        if output is None:
            raise Invalid(f"there is no output {str(number)[:40]!r}", possible=map(str, self._kept))
        begin = max(0, start) if isinstance(start, int) else 0
        try:
            with output.path.open(encoding="utf-8") as file:
                file.read(begin)
                part = file.read(PART)
        except OSError as error:
            raise RemudaError(f"the output {number} is no longer there: {error.strerror}") from error
        end = begin + len(part)
        more = f"\n\n({output.characters - end:,} characters follow, from {end})" if end < output.characters else ""
        return text_result(part + more)

    def _write(self, path: Path, text: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = sorted(self._folder.iterdir(), key=lambda each: each.stat().st_mtime)
        for each in old[: max(0, len(old) - MOST_KEPT + 1)]:
            with suppress(OSError):
                each.unlink()
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
