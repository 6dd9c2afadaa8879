"""Text of strangers in our files: nothing in it may break a table, hide a word, turn a line around or end a fence."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_LINE = 200
LONGEST_PROMPT = 1 << 16  # characters that are kept of a prompt; its digest is of the whole
ENDS = {"\n": " ", "\r": " ", "\t": " ", "\v": " ", "\f": " ", "\x85": " ", "\u2028": " ", "\u2029": " "}


def visible(text: str) -> str:
    """Characters that do something instead of being seen are written out; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if _harmless(each) else _written_out(each) for each in text)


def _harmless(each: str) -> bool:
    return each in "\n\t" or (each.isprintable() and each not in "\u061c\u200e\u200f")


def _written_out(each: str) -> str:
    code = ord(each)
    if each in " \u00a0\u3000":
        return each
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Its first words, on one line."""
    head = text[: longest * 4]
    line = " ".join(visible("".join(ENDS.get(each, each) for each in head)).split())
    return line if len(line) <= longest and len(head) == len(text) else f"{line[: longest - 1].rstrip()}…"


def cell(text: str, longest: int = LONGEST_LINE) -> str:
    """For a cell of a Markdown table, as text: no column, no HTML, no link, no code."""
    line = one_line(text, longest)
    return "".join({"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(c, f"\\{c}" if c in "|`[]*_\\~#" else c) for c in line)


def fenced(text: str) -> str:
    """As a block of code that its own backticks cannot end."""
    shown = visible(text)
    run = longest = 0
    for each in shown:
        run = run + 1 if each == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown.rstrip()}\n{fence}"


def table(heads: tuple[str, ...], rows: "Sequence[tuple[str, ...]]") -> str:
    """Cells come as Markdown already."""
    if not rows:
        return "None."
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def path_text(path: bytes) -> str:
    """A path as text. What is no UTF-8, or holds characters that are not seen, is quoted as git quotes it, so that it
    can be taken back."""
    try:
        text = path.decode()
        if text.isprintable() and not text.startswith('"'):
            return text
    except UnicodeDecodeError:
        pass
    named = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x09: "\\t"}
    return '"' + "".join(named.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in path) + '"'


def path_bytes(text: str) -> bytes:
    """The path that `path_text` wrote."""
    if not text.startswith('"'):
        return os.fsencode(text)
    out, at = bytearray(), 1
    while at < len(text) - 1:
        if text[at] != "\\":
            out += text[at].encode()
            at += 1
        elif text[at + 1] in '"\\nt':
            out += {'"': b'"', "\\": b"\\", "n": b"\n", "t": b"\t"}[text[at + 1]]
            at += 2
        else:
            out.append(int(text[at + 1 : at + 4], 8) & 0xFF)
            at += 4
    return bytes(out)
