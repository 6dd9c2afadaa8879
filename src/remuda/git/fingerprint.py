"""What a working tree holds, in one short word: the same word for the same content, however it came about."""

from hashlib import blake2b
from pathlib import Path

from remuda.domain.errors import EffectFailed
from remuda.git import ask

WITHIN = 5.0  # seconds; a tree for which git takes longer is not measured
MOST_FILES = 500  # changed ones whose content is looked at
LARGEST = 1 << 20  # bytes of one
# Untracked ones that programs write by themselves: were a log that grows a change, nobody who runs the same thing
# again and again would be seen to go in circles.
LOGS = (b".log", b".out", b".pid", b".tmp", b".swp", b".pyc", b"/.coverage", b" .coverage")


def fingerprint(folder: Path) -> str:
    """Empty where nobody can tell: no repository, no git, too slow. Ignored files and logs do not count. It
    blocks."""
    try:
        status = ask(folder, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", within=WITHIN)
    except EffectFailed:
        return ""
    if status.code:
        return ""
    told = b"\0".join(each for each in status.out.split(b"\0") if not (each[:2] == b"? " and each.endswith(LOGS)))
    mark = blake2b(told, digest_size=8)
    top = _top(folder)
    for name in _changed(told)[:MOST_FILES]:
        mark.update(_content(top / name))
    return mark.hexdigest()


def _top(folder: Path) -> Path:
    found = ask(folder, "rev-parse", "--show-toplevel", within=WITHIN)
    return Path(found.out.decode(errors="surrogateescape").rstrip("\n")) if not found.code else folder


def _changed(porcelain: bytes) -> list[str]:
    """The paths that `git status --porcelain=v2 -z` names: the last of 8, 9 or 10 fields, or all after the sign."""
    fields = {b"1": 8, b"2": 9, b"u": 10, b"?": 1}
    names = []
    for entry in porcelain.split(b"\0"):
        count = fields.get(entry[:1])
        parts = entry.split(b" ", count) if count else []
        if count and len(parts) == count + 1:
            names.append(parts[count].decode(errors="surrogateescape"))
    return names


def _content(path: Path) -> bytes:
    try:
        if path.is_symlink() or not path.is_file():
            return b"-"
        size = path.stat().st_size
        return path.read_bytes() if size <= LARGEST else str(size).encode()
    except OSError:
        return b"-"
