"""Recorded runs through the detector, from the command line."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from remuda.cli.dev import dev

LOOP = {
    "tool": "bash",
    "args": "make",
    "output": "<returncode>0</returncode>\n<output>\nup to date\n</output>",
    "error": False,
}


def written(file: Path, *runs: object) -> Path:
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    file.write_bytes(gzip.compress(lines.encode()) if file.suffix == ".gz" else lines.encode())
    return file


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_one_line_of_json_tells_of_each_run_where_it_was_nudged_and_cut_and_why(tmp_path: Path, name: str) -> None:
    file = written(
        tmp_path / name, {"id": "loops", "steps": [LOOP] * 7}, {"id": "works", "exit": None, "steps": [LOOP]}
    )
    result = CliRunner().invoke(dev, ["spin", str(file)])
    assert result.exit_code == 0, result.output
    loops, works = map(json.loads, result.output.splitlines())
    assert (loops["id"], loops["nudge"], loops["fire"], loops["rule"]) == ("loops", 2, 5, "cycle")
    assert "6 times in a row" in loops["evidence"]
    assert works == {"id": "works", "nudge": None, "fire": None, "rule": None, "evidence": None, "numbers": None}


def test_what_a_recorder_left_out_or_wrote_as_an_object_is_read_as_well(tmp_path: Path) -> None:
    step = {"tool": "bash", "args": {"command": "make"}, "output": None, "error": None, "text": None}
    blank = {"tool": None, "args": None, "output": ["x"]}
    file = written(tmp_path / "runs.jsonl", {"id": "odd", "model": None, "steps": [blank, *[step] * 6]})
    result = CliRunner().invoke(dev, ["spin", str(file)])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["fire"] == 6


def test_the_thresholds_can_be_given(tmp_path: Path) -> None:
    file = written(tmp_path / "runs.jsonl", {"id": "loops", "steps": [LOOP] * 7})
    result = CliRunner().invoke(dev, ["spin", str(file), "--rounds", "4"])
    assert json.loads(result.output)["fire"] == 3


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"id": 1, "steps": []}', b'{"id": "a", "steps": [{"tool": 3}]}', b"\xff\xfe"]
)
def test_a_line_that_is_no_run_is_named(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(json.dumps({"id": "fine", "steps": []}).encode() + b"\n\n" + line + b"\n")
    result = CliRunner().invoke(dev, ["spin", str(file)])
    assert result.exit_code == 1
    assert "line 3" in result.output


def test_a_file_that_was_cut_off_is_told_of(tmp_path: Path) -> None:
    file = written(tmp_path / "runs.jsonl.gz", {"id": "fine", "steps": [LOOP] * 500})
    file.write_bytes(file.read_bytes()[:-20])
    result = CliRunner().invoke(dev, ["spin", str(file)])
    assert result.exit_code == 1
    assert "cannot be read" in result.output
