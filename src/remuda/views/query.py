"""What may follow an address: `?all=1&width=80`."""

from collections.abc import Mapping

from remuda.domain.errors import Invalid


def number(asked: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    text = asked.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) > most:
        raise Invalid(f"{name} must be a whole number from 0 to {most}, not {text[:40]!r}")
    return int(text)


def flag(asked: Mapping[str, str], name: str) -> bool:
    return asked.get(name, "") in ("1", "true", "yes")
