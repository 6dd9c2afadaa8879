"""How one step of an agent reads: what it was for, whether it came to nothing, and what of it is mere noise.

Agents repeat themselves with other line numbers, ports and times; the words stay. So two texts are compared as they
are without what changes by itself (`plain`), and calls also without any number (`shape`). All of this is reading, and
may be wrong about a text; it is never asked to be right about one step, only about a dozen.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

from remuda.domain.spin_output import bare, exit_code
from remuda.domain.spin_tools import Kind, kind_of, reads

LONGEST = 4000  # characters that are looked at: of what is longer, the two ends
SHOWN = 120  # characters of a step that are kept as evidence
TELLING = 300  # characters of an error from which on it tells something
CHANT = 8  # times that one sentence stands in one message

_NOISE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),  # colours
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d([.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+([.,]\d+)?\s?(ms|s|secs?|seconds?|min|minutes?)\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    (re.compile(r"(/private)?(/var)?/tmp/[\w.\-/]+|/var/folders/[\w.\-/]+"), "<temp>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "<hash>"),
    (re.compile(r"\b(line|pid|port|process) \d+", re.IGNORECASE), r"\1"),
)
_NUMBER = re.compile(r"\d+")
_SPACE = re.compile(r"\s+")


class Step(NamedTuple):
    """One tool call with its outcome, or one message (then `tool` is empty)."""

    tool: str = ""
    arguments: str = ""
    result: str = ""
    ok: bool = True
    text: str = ""
    tree: str = ""  # fingerprint of the working tree after it; empty where nobody measured
    digest: str = ""  # of the whole call, where `arguments` is only part of it


class Reading(NamedTuple):
    """All that is asked of a step later. Made where the step is seen: to read costs more than to count."""

    kind: str
    exact: int  # the call
    call: int  # the same, without numbers
    outcome: int
    failed: bool = False
    telling: bool = False  # it failed, and said at length why
    tests: bool = False  # it tells how tests went
    empty: bool = False
    untold: bool = False  # a file was read, and its program does not tell what it saw
    places: tuple[int, ...] = ()
    tree: str = ""
    shown: str = ""
    lines: tuple[int, int] = (0, 0)  # of a file that were asked for, the first and the last; 0: nobody said
    gist: int = 0  # of a look that failed in a few words: what they say, whatever was asked for


_ASIDE = re.compile(  # what is said about a call beside it, in other words each time
    r',?\s*"(description|explanation|justification|reason|timeout\w*)"\s*:\s*("(?:[^"\\]|\\.)*"|\d+)'
)
_FAILURE = re.compile(
    r"\berror\b|exception\b|traceback|\bnot found\b|no such file|\bcannot |\bcan't |\bcould not |permission denied"
    r"|\btimed? ?out\b|\bfailed\b|\bfailure\b|\bunable to\b|\bunexpected\b|\bno (matches|results|files)\b|\binvalid\b"
    r"|unrecognized|\busage:|not recognized|no installation candidate|not installable|\bfatal\b|is a directory",
    re.IGNORECASE,
)
_WELL = re.compile(r"\bexit(ed with)? code:? 0\b|\berror: \(?none\b", re.IGNORECASE)
_SHORT = 300  # characters: an answer as short as this is about one thing
_RUNNING = re.compile(
    r"still (running|waiting|building|in progress)|\b(in progress|in_progress|queued|pending|not ready yet)\b"
    r"|\b(ContainerCreating|PodInitializing|provisioning|deploying)\b|\bprocess running with session\b",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"\b\d+ (failed|passed|failing|passing|tests?|errors)\b|\bTests run: \d|\(failures=\d|\bRan \d+ tests?\b",
    re.IGNORECASE,
)
_SPANS = tuple(  # which lines of a file are to be shown: the first and, where it is said, the last
    re.compile(each)
    for each in (
        r'"(?:view_range|line_range)"\s*:\s*\[\s*(\d{1,9})\s*,\s*(\d{1,9})?',
        r"--view_range\s+(\d{1,9})\s+(\d{1,9})?",
        r"\bsed\s+-n\s+\W{0,2}(\d{1,9}),\s*(\d{1,9})p",
        r'"(?:start_?[lL]ine\w*)"\s*:\s*(\d{1,9})(?:.{0,80}?"(?:end_?[lL]ine\w*)"\s*:\s*(\d{1,9}))?',
        r'"offset"\s*:\s*(\d{1,9})()',
    )
)
_WORDS = re.compile(r"[^\s\"'`,:{}\[\]()]{4,}")
_PLACE = re.compile(r"[\w.~-]*/[\w./-]+|[\w-]+\.[A-Za-z]\w{0,7}\b")


def read(step: Step) -> Reading:
    if not step.tool:
        return _read_message(step)
    code = exit_code(step.result)
    step = step._replace(result=bare(step.result), ok=step.ok and not code)
    kind = kind_of(step.tool, step.arguments)
    if under_way(kind, step.result):
        kind = Kind.WAIT
    wrong = not step.ok or (code is None and failed(kind, step.result))
    called = _ASIDE.sub("", step.arguments)
    outcome = plain(step.result) if kind is Kind.RUN else shape(step.result)
    short = len(step.result) <= _SHORT
    silent = not step.result.strip()
    shows = reads(step.tool)
    return Reading(
        kind=kind,
        exact=_mark(f"{step.tool} {plain(called)} {step.digest}"),
        call=_mark(f"{step.tool} {shape(called)}"),
        outcome=_mark(f"{step.ok} {outcome}"),
        gist=_mark(shape(_without_echo(step.result, called))) if wrong and kind is Kind.LOOK and short else 0,
        failed=wrong,
        telling=wrong and kind is not Kind.WRITE and len(step.result) > TELLING,
        tests=bool(_TESTS.search(step.result)),
        empty=silent and not shows,
        untold=silent and shows,
        places=tuple(sorted(_mark(place) for place in places(step.arguments))),
        lines=lines_of(step.arguments),
        tree=step.tree,
        shown=_shown(f"{step.tool}: {step.arguments}"),
    )


def _without_echo(result: str, arguments: str) -> str:
    """What a short failure says, without the words of the call that it gives back: it is the same for other words."""
    for word in sorted(set(_WORDS.findall(arguments[:LONGEST])), key=len, reverse=True):
        result = result.replace(word, "<it>")
    return result


def _read_message(step: Step) -> Reading:
    said = _mark(shape(step.text))
    kind = Kind.CHANT if chants(step.text) else Kind.SAY
    return Reading(kind, said, said, said, tree=step.tree, shown=_shown(step.text))


def _shown(text: str) -> str:
    return _SPACE.sub(" ", text[: 2 * SHOWN]).strip()[:SHOWN]


def _mark(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=6).digest())


def chants(text: str) -> bool:
    """Whether a message is little else than one sentence, over and over."""
    sentences = [shape(each) for each in re.split(r"[.!?\n]+", text[-2 * LONGEST :])]
    counts: dict[str, int] = {}
    for each in sentences:
        if len(each) >= 12:  # a bracket, a bullet and a rule across the page may be repeated
            counts[each] = counts.get(each, 0) + 1
    most = max(counts.values(), default=0)
    return most >= CHANT and 2 * most >= sum(counts.values())


def plain(text: str) -> str:
    """Without what changes by itself: times, addresses, ids, names of temporary files, colours."""
    if len(text) > LONGEST:
        text = text[: LONGEST // 2] + text[-LONGEST // 2 :]
    for noise, instead in _NOISE:
        text = noise.sub(instead, text)
    return _SPACE.sub(" ", text).strip()


def shape(text: str) -> str:
    """And without numbers: the same thing done to another line, for the tenth time, is the same thing."""
    return _NUMBER.sub("#", plain(text))


def failed(kind: Kind, result: str) -> bool:
    """Whether a step came to nothing although its tool called it a success."""
    told = result.strip()
    if not told:
        return False
    if _WELL.search(told[-_SHORT:]):
        return False
    if len(told) <= _SHORT and _FAILURE.search(told):
        return True
    return kind is not Kind.WRITE and bool(_FAILURE.search(told.rsplit("\n", 1)[-1]))


def under_way(kind: Kind, result: str) -> bool:
    """Whether it waits for something that goes on: to ask again is then the right thing to do."""
    return (
        kind is Kind.WAIT
        or "no new output after" in result
        or (len(result) <= _SHORT and bool(_RUNNING.search(result)))
    )


def places(arguments: str) -> frozenset[str]:
    """The files and folders that a call names."""
    return frozenset(_PLACE.findall(arguments[:_SHORT]))


def lines_of(arguments: str) -> tuple[int, int]:
    for span in _SPANS:
        found = span.search(arguments[:LONGEST])
        if found:
            first = int(found[1])
            return first, max(first, int(found[2] or 0))
    return 0, 0
