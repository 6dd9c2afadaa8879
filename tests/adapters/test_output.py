"""The recent lines of an agent: a ring with so much room, and pieces that join to lines wherever they were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.transcript_kit import to_lines
from remuda.store.output import DEFAULT_LINES, LONGEST_LINE, Entry, OutputRing


def ring_of(*lines: str, capacity: int = DEFAULT_LINES) -> OutputRing:
    ring = OutputRing(capacity)
    for line in lines:
        ring.append(line)
    return ring


def test_a_hundred_lines_are_kept_unless_told_otherwise() -> None:
    ring = ring_of(*(str(number) for number in range(250)))
    assert ring.lines() == [str(number) for number in range(150, 250)]


def test_the_oldest_go_when_there_is_no_more_room() -> None:
    assert ring_of("a", "b", "c", "d", capacity=3).lines() == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, ["c"]), (2, ["b", "c"]), (3, ["a", "b", "c"]), (99, ["a", "b", "c"]), (-1, [])]
)
def test_the_last_lines_are_as_many_as_asked_for_or_as_there_are(count: int, expected: list[str]) -> None:
    assert ring_of("a", "b", "c").last(count) == expected


def test_lines_are_a_copy() -> None:
    ring = ring_of("a")
    ring.lines().append("not said")
    ring.last(1).append("not said either")
    assert ring.lines() == ["a"]


def test_clearing_leaves_an_empty_ring_that_goes_on() -> None:
    ring = ring_of("a", "b")
    ring.clear()
    assert ring.lines() == []
    ring.append("c")
    assert ring.lines() == ["c"]


@given(lines=st.lists(st.text(), max_size=30), capacity=st.integers(1, 10), count=st.integers(0, 40))
def test_a_ring_is_the_end_of_all_that_was_appended(lines: list[str], capacity: int, count: int) -> None:
    ring = ring_of(*lines, capacity=capacity)
    assert ring.lines() == lines[-capacity:]
    assert ring.last(count) == (lines[-capacity:][-count:] if count else [])


def pieces(text: str, cuts: list[int]) -> list[Entry]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    parts = [text[start:end] for start, end in pairwise(edges)]
    return [Entry(1.0, 1, "text", part) for part in parts]


@given(
    text=st.text(alphabet=st.sampled_from("ab \n🐎\r"), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=10),
)
def test_any_way_of_cutting_a_text_into_pieces_gives_the_same_lines(text: str, cuts: list[int]) -> None:
    assert to_lines(pieces(text, cuts)) == to_lines(pieces(text, []))
    expected = text.split("\n")
    assert to_lines(pieces(text, cuts)) == (expected if expected[-1] else expected[:-1])


def test_what_comes_between_two_pieces_ends_the_line_that_was_begun() -> None:
    entries = [
        Entry(1.0, 1, "text", "I will loo"),
        Entry(1.0, 1, "tool", "ls -l", name="run", status="started"),
        Entry(1.0, 1, "text", "k\n"),
    ]
    assert to_lines(entries) == ["I will loo", "· run started: ls -l", "k"]


def test_each_kind_of_entry_is_told_apart() -> None:
    entries = [
        Entry(1.0, 1, "prompt", "do it\nnow", name="user"),
        Entry(1.0, 1, "thought", "hm"),
        Entry(1.0, 1, "stderr", "warning"),
        Entry(1.0, 1, "tool", "", name="read", status="completed"),
        Entry(1.0, 1, "note", "the session ended"),
    ]
    assert to_lines(entries) == [
        "» user: do it",
        "» user: now",
        "(thinks) hm",
        "stderr: warning",
        "· read completed",
        "the session ended",
    ]


@pytest.mark.timeout(30)
def test_a_line_that_never_ends_costs_no_more_for_being_long() -> None:
    """If each piece cost as much as all before it, this would take minutes."""
    pieces_of_it = 80_000
    entries = [Entry(1.0, 1, "text", "x" * 50) for _ in range(pieces_of_it)]
    lines = to_lines(entries)
    assert "".join(lines) == "x" * 50 * pieces_of_it
    assert max(len(line) for line in lines) <= LONGEST_LINE + 50  # nor does anybody have to keep all of it
