"""Words for a terminal: numbers people can read, and text that cannot play tricks on the one who reads it."""

import time
import unicodedata

ELLIPSIS = "…"


def neutral(text: str) -> str:
    """Without characters that move the cursor, colour the screen or turn the reading direction: they are spelled out.

    What agents say is untrusted, and a terminal obeys what it is shown.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _spelled(each) for each in text)


def _spelled(character: str) -> str:
    return "\t" if character == "\t" else character.encode("unicode_escape", "surrogatepass").decode()


def first_line(text: str, longest: int = 200) -> str:
    """The first line that says something, so that a long message fits a short place."""
    if len(text) <= longest and text.isprintable():
        return text.strip()
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = lines[0].rstrip()
    return line[:longest] + ELLIPSIS if len(line) > longest or len(lines) > 1 else line


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: some characters take two, some none."""
    return len(text) if text.isascii() else sum(_columns(each) for each in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int) -> str:
    """As much of a text as fits, with a mark where it was cut."""
    if columns(text) <= room:
        return text
    if room <= 0:
        return ""
    if text.isascii():
        return text[: room - 1] + ELLIPSIS
    taken, used = [], 0
    for each in text:
        used += _columns(each)
        if used > room - 1:
            break
        taken.append(each)
    return "".join(taken) + ELLIPSIS


def pad(text: str, room: int, *, right: bool = False) -> str:
    space = " " * (room - columns(text))
    return space + text if right else text + space


def age(seconds: float) -> str:
    seconds = max(0, int(seconds))
    if seconds < 120:
        return f"{seconds}s"
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def count(number: int) -> str:
    if number < 10_000:
        return str(number)
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number / 1000:.0f}k"


def usd(amount: float | None, *, complete: bool = True) -> str:
    """Money; "?" where nobody knows it, a plus where there is more that nobody knows."""
    if amount is None:
        return "?"
    return f"${amount:.2f}{'' if complete else '+'}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at else "never"
