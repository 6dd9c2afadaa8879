"""Transcripts: what was said is on the disk the moment it was said, and comes back as it was."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.transcript_kit import read_entries, to_lines
from remuda.store.output import Entry, OutputRing
from remuda.store.transcript import (
    Tail,
    Transcript,
    last_lines,
    session_path,
    wire_path,
)
from shapes import values


def said(text: str, turn: int = 1) -> Entry:
    return Entry(1.0, turn, "text", text)


def session(folder: Path, *entries: Entry, agent: str = "ada", epoch: int = 1) -> Path:
    path = session_path(folder, agent, epoch)
    transcript = Transcript(path, OutputRing())
    for entry in entries:
        transcript.add(entry)
    transcript.close()
    return path


def test_an_entry_is_on_the_disk_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = session_path(tmp_path, "ada", 1)
    transcript = Transcript(path, OutputRing())
    transcript.add(said("hello\n"))
    assert list(read_entries(path)) == [said("hello\n")]
    transcript.close()


def test_it_is_for_its_owners_eyes_only(tmp_path: Path) -> None:
    path = session(tmp_path / "transcripts", said("hello"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert wire_path(path).stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_sessions_have_their_own_files_that_sort_by_number(tmp_path: Path) -> None:
    assert session_path(tmp_path, "ada", 7).name == "0007.jsonl"
    assert wire_path(session_path(tmp_path, "ada", 7)).name == "0007.wire.jsonl"


def test_the_size_is_where_the_next_entry_begins(tmp_path: Path) -> None:
    path = session_path(tmp_path, "ada", 1)
    transcript = Transcript(path, OutputRing())
    transcript.add(said("one\n"))
    offset = transcript.size
    transcript.add(said("two\n"))
    size = transcript.size - offset
    transcript.add(said("three\n"))
    assert list(read_entries(path, offset, size)) == [said("two\n")]
    assert list(read_entries(path, offset)) == [said("two\n"), said("three\n")]
    assert transcript.size == path.stat().st_size
    transcript.close()


def test_what_is_added_goes_to_the_ring_line_by_line_and_is_counted(tmp_path: Path) -> None:
    ring = OutputRing(2)
    transcript = Transcript(session_path(tmp_path, "ada", 1), ring)
    transcript.add(said("one\ntwo\nthr"))
    assert (ring.lines(), transcript.line_count) == (["one", "two"], 2)
    transcript.add(said("ee"))
    transcript.end_line()
    transcript.end_line()
    assert (ring.lines(), transcript.line_count) == (["two", "three"], 3)
    transcript.close()


def test_the_wire_is_kept_word_for_word(tmp_path: Path) -> None:
    path = session_path(tmp_path, "ada", 1)
    transcript = Transcript(path, OutputRing())
    transcript.wire(1.5, "agent", 'not {"json" 🐎\x00')
    transcript.sync()
    transcript.close()
    assert [json.loads(line) for line in wire_path(path).read_text().splitlines()] == [
        {"at": 1.5, "side": "agent", "line": 'not {"json" 🐎\x00'}
    ]
    assert list(read_entries(path)) == []


@given(entries=st.lists(values(Entry) | st.builds(said, st.text()), max_size=5))
def test_entries_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]) -> None:
    path = session(tmp_path_factory.mktemp("transcript"), *entries)
    assert list(read_entries(path)) == entries


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = session(tmp_path, said("one\n"), said("two\n"), said("three\n"))
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[-1])):
        path.write_bytes(whole[:-cut])
        assert list(read_entries(path))[:2] == [said("one\n"), said("two\n")]
        assert len(list(read_entries(path))) == (3 if cut == 1 else 2)


def test_what_is_added_after_a_torn_line_is_not_torn_with_it(tmp_path: Path) -> None:
    path = session(tmp_path, said("one\n"), said("two\n"))
    path.write_bytes(path.read_bytes()[:-5])
    again = Transcript(path, OutputRing())
    offset = again.size
    again.add(said("three\n"))
    again.close()
    assert list(read_entries(path)) == [said("one\n"), said("three\n")]
    assert list(read_entries(path, offset)) == [said("three\n")]


def test_half_a_surrogate_pair_from_an_agent_does_not_stop_its_transcript(tmp_path: Path) -> None:
    path = session_path(tmp_path, "ada", 1)
    transcript = Transcript(path, OutputRing())
    transcript.add(said("half: \ud83d\n"))
    transcript.wire(1.0, "agent", "half: \ud83d")
    transcript.close()
    assert [entry.text for entry in read_entries(path)] == ["half: ?\n"]
    assert json.loads(wire_path(path).read_text())["line"] == "half: ?"


# --- reading on ---


def test_the_last_lines_are_of_all_sessions_in_the_order_they_were_had(tmp_path: Path) -> None:
    for epoch in (1, 2, 10):
        session(tmp_path, said(f"one of {epoch}\ntwo of {epoch}"), epoch=epoch)
    assert last_lines(tmp_path, "ada", 3) == ["two of 2", "one of 10", "two of 10"]
    assert last_lines(tmp_path, "ada", 100)[0] == "one of 1"
    assert last_lines(tmp_path, "ada", 0) == []
    assert last_lines(tmp_path, "nobody", 5) == []


def test_the_last_lines_of_a_long_transcript_are_the_same_as_those_of_all_of_it(tmp_path: Path) -> None:
    entries = [said(f"line {number} {'x' * (number % 700)}\n") for number in range(3000)]
    session(tmp_path, *entries)
    assert last_lines(tmp_path, "ada", 500) == to_lines(entries)[-500:]
    assert last_lines(tmp_path, "ada", 2999) == to_lines(entries)[-2999:]


def test_one_who_reads_on_gets_each_line_once_and_half_an_entry_never(tmp_path: Path) -> None:
    path = session(tmp_path, said("one\n"))
    tail = Tail(tmp_path, "ada")
    assert tail.last(10) == ["one"]
    assert tail.more() == []
    entry = json.dumps({"at": 1.0, "turn": 1, "kind": "text", "text": "two\n"}).encode() + b"\n"
    with path.open("ab") as file:
        file.write(entry[:20])
    assert tail.more() == []
    with path.open("ab") as file:
        file.write(entry[20:])
    assert tail.more() == ["two"]
    session(tmp_path, said("three\n"), epoch=2)
    assert tail.more() == ["three"]
