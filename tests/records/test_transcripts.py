"""What a turn has used, from the transcript of a program that may still be writing it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from remuda.records import transcripts
from remuda.records.transcripts import used


def line(kind: str, number: int, text: str) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": 10}
    message = {"id": f"m{number}", "model": "m", "content": [{"type": "text", "text": text}], "usage": usage}
    return json.dumps({"type": kind, "message": message}).encode() + b"\n"


def test_the_last_word_is_waited_for_and_what_it_cost_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt has the same words in it, and is not the answer."""
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(line("user", 0, "Say: Made it.") + line("assistant", 1, "I will."))
    looks: list[float] = []

    def write(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            path.write_bytes(path.read_bytes() + line("assistant", 2, "Made it."))

    monkeypatch.setattr(transcripts, "time", SimpleNamespace(sleep=write, monotonic=lambda: 0.0))
    found = used(str(path), 0, "Made it.")
    assert found == {"tokens": {"input": 200, "output": 20, "cache_read": 0, "cache_creation": 0}, "model": "m"}
    assert len(looks) == 3


def test_a_last_word_that_never_comes_is_waited_for_no_longer_than_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(line("assistant", 1, "Something else."))
    clock = [0.0]
    later = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda seconds: clock.append(clock.pop() + seconds))
    monkeypatch.setattr(transcripts, "time", later)
    assert used(str(path), 0, "Made it.")["tokens"]["input"] == 100
    assert 1.0 <= clock[0] < 1.1


def test_where_nothing_is_written_nothing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: pytest.fail("it waits"))
    monkeypatch.setattr(transcripts, "time", stopped)
    assert used(str(tmp_path / "none"), 0, "Made it.") == {"tokens": None, "model": ""}
