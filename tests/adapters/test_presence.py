"""Which programs are here, and that they are asked for their version once and not again until they change."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from remuda.agents.catalog import Row
from remuda.agents.presence import AT_ONCE, look_closely, versions_kept


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"])))
    return tmp_path


def put(place: Path, name: str, version: str = "1.2.3") -> Path:
    """A program that notes each time it is asked."""
    program = place / "bin" / name
    program.write_text(f"#!/bin/sh\necho {name} >> {place}/asked\necho version {version}\n")
    program.chmod(0o755)
    return program


def versions(place: Path, *names: str) -> list[str]:
    found = asyncio.run(look_closely({name: Row(name, name) for name in names}, place / "cache" / "versions.json"))
    return [each.version for each in found]


def asked(place: Path) -> list[str]:
    notes = place / "asked"
    return notes.read_text().split() if notes.exists() else []


def test_a_program_is_asked_once_and_again_when_its_file_has_changed(place: Path) -> None:
    put(place, "one-of-the-tests")
    assert versions(place, "one-of-the-tests") == ["1.2.3"]
    assert versions(place, "one-of-the-tests") == ["1.2.3"]
    assert asked(place) == ["one-of-the-tests"]
    put(place, "one-of-the-tests", "1.10.0")
    assert versions(place, "one-of-the-tests") == ["1.10.0"]
    assert len(asked(place)) == 2


@pytest.mark.parametrize(
    ("said", "version"),
    [("2.0.", "2.0"), ("v1.2.3-beta.4,", "1.2.3-beta.4"), ("1.0.0+build5)", "1.0.0+build5"), ("7", "")],
)
def test_a_version_is_read_out_of_a_sentence(place: Path, said: str, version: str) -> None:
    put(place, "one-of-the-tests", f"'{said} is it'")
    assert versions(place, "one-of-the-tests") == [version]


def test_a_link_is_asked_again_when_it_leads_elsewhere(place: Path) -> None:
    link = place / "bin" / "link-of-the-tests"
    link.symlink_to(put(place, "old", "1.0"))
    assert versions(place, link.name) == ["1.0"]
    link.unlink()
    link.symlink_to(put(place, "newer", "2.0.0"))
    assert versions(place, link.name) == ["2.0.0"]


def test_one_that_would_not_say_is_asked_again(place: Path) -> None:
    put(place, "mute-of-the-tests", "unknown")
    assert versions(place, "mute-of-the-tests") == [""]
    assert versions(place, "mute-of-the-tests") == [""]
    assert len(asked(place)) == 2


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"\xff\xfe",
        b"[1, 2",
        b'{"x": 3}',
        b'{"x": {"changed": "y"}}',
        json.dumps({"{program}": {"changed": 0, "size": 0, "version": "\x1b[31mred"}}).encode(),
    ],
)
def test_what_was_kept_and_cannot_be_read_is_asked_anew(place: Path, kept: bytes) -> None:
    program = put(place, "one-of-the-tests")
    told = program.stat()
    text = kept.replace(b"{program}", str(program).encode())
    text = text.replace(b'"changed": 0, "size": 0', f'"changed": {told.st_mtime_ns}, "size": {told.st_size}'.encode())
    (place / "cache").mkdir()
    (place / "cache" / "versions.json").write_bytes(text)
    assert versions(place, "one-of-the-tests") == ["1.2.3"]


def test_where_nothing_can_be_kept_it_is_asked_each_time(place: Path) -> None:
    put(place, "one-of-the-tests")
    (place / "cache").write_text("a file where a folder should be")
    assert versions(place, "one-of-the-tests") == ["1.2.3"]


def test_no_more_than_a_few_are_asked_at_once(place: Path) -> None:
    names = [f"crowd-{number}" for number in range(3 * AT_ONCE)]
    for name in names:
        # Each counts who is there while it is.
        program = put(place, name)
        program.write_text(
            f"#!/bin/sh\ntouch {place}/in-{name}\nls {place} | grep -c '^in-' >> {place}/crowd\n"
            f"rm {place}/in-{name}\necho 1.0\n"
        )
    assert versions(place, *names) == ["1.0"] * len(names)
    assert max(map(int, (place / "crowd").read_text().split())) <= AT_ONCE


def test_they_are_kept_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert versions_kept() == tmp_path / "elsewhere" / "remuda" / "versions.json"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert versions_kept() == tmp_path / ".cache" / "remuda" / "versions.json"
