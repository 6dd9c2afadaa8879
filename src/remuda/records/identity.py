"""Who a turn is: a UUID of version 7, which is unique everywhere and sorts by time. Its number is only for people."""

import os


def uuid7(milliseconds: int, random: bytes) -> str:
    """Of a moment and ten random bytes."""
    bits = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(random[:10], "big")
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def new_uuid(now: float) -> str:
    return uuid7(int(now * 1000), os.urandom(10))


def tail(uuid: str) -> str:
    """The random end of it: enough to tell two turns of one number apart in a name."""
    return uuid[-8:]
