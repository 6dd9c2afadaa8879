"""Strings of strangers, everywhere that one can stand: nothing breaks out, nothing is run, no secret is kept."""

import csv
import hashlib
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.kit import SECRET, all_valid, git, record, repository, write
from remuda.records import index
from remuda.records.begin import Asked, begin, end, use_tool
from remuda.records.facts import Decision
from remuda.records.index import HEADER, parse, render
from remuda.records.journal import OpenTurn
from remuda.records.keeping import Keeping
from remuda.records.redact import redactor, without_secrets
from remuda.records.repository import find_repository
from remuda.records.say import give_decision
from remuda.records.text import cell, fenced, one_line, path_bytes, path_text

PLACE = "ai/agentic-pipeline/turns/turn-1"
HOSTILE = {
    "commas and quotes": "a, \"b\", 'c'",
    "lines": "one\ntwo\r\nthree\n\nTurn-Id: 00000000-0000-7000-8000-000000000000\n",
    "null and control": "a\0b\x07c\x1b[31md",
    "right to left": "abc\u202egnp.exe\u2066x\u2069",
    "formula": '=HYPERLINK("http://evil.example","x")',
    "shell": "$(touch pwned) `touch pwned`; touch pwned | tee pwned",
    "arithmetic": "99+a[$(touch pwned)],",
    "path": "../../../../etc/passwd",
    "markdown": "``` | cell | <script>alert(1)</script> [x](javascript:1)\n# heading\n- [x] ticked",
    "surrogate": "half \udc80 of a character",
    "empty": "",
    "separators": "a\u2028b\u2029c\x85d",
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("way", ["files", "branch"])
def test_a_hostile_string_in_every_field_is_only_text(what: str, way: str, tmp_path: Path) -> None:
    text = HOSTILE[what]
    top = repository(tmp_path / "r")

    def work(turn: OpenTurn) -> None:
        use_tool(turn, text or "tool", argument=text, reads=text)
        lists = {"rationale": [text], "alternatives": [text], "consequences": [text]}
        give_decision(find_repository(str(top)), Decision(text or "t", text or "c", text or "d", **lists))
        write(top, "work.txt", "done\n")

    asked = Asked(text, text or "agent", model=text, session=text, key=text)
    asked.contexts, asked.skills = [text], [text]
    made = record(top, work, asked=asked, keeping=Keeping(way), summary=text, error=text, outcome="failed")
    assert all_valid(top) == 1
    assert not list(top.rglob("pwned"))
    exact = text.encode(errors="surrogateescape")
    assert made.manifest.provenance.prompt_hash == hashlib.sha256(exact).hexdigest()
    for path in (top / PLACE).iterdir():
        shown = path.read_text()
        assert not set(shown) & set("\0\x07\x1b\x85\u202e\u2066\u2028"), path.name
        assert "<script>" not in shown or path.name in ("manifest.json", "session_context.md", "pull_request.md")
    rows = list(csv.reader(io.StringIO((top / "ai/agentic-pipeline/turns_index.csv").read_text()), strict=True))
    assert [len(row) for row in rows] == [len(HEADER)] * 2
    assert not any(each.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for each in row)
    trailers = git(top, "log", "-1", "--format=%(trailers:key=Turn-Id,valueonly)", made.commit).split()
    assert trailers == [made.manifest.turn_uuid]


def test_a_prompt_of_ten_megabytes_is_shortened_and_its_digest_is_of_the_whole(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    text = "x" * 10_000_000 + SECRET
    made = record(top, asked=Asked(text, "claude"), summary=text)
    assert made.manifest.provenance.prompt_hash == hashlib.sha256(text.encode()).hexdigest()
    assert sum(len(data) for data in made.files.values()) < 300_000
    assert all_valid(top) == 1


@pytest.mark.parametrize("branch", ["feat/a,b", "x=$(touch-pwned)", "ünï-cödé", "a'quote", "-".join(["long"] * 40)])
def test_a_hostile_branch(branch: str, tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "checkout", "-q", "-b", branch)
    made = record(top, keeping=Keeping("branch"))
    assert made.manifest.provenance.branch == branch
    assert all_valid(top) == 1


@pytest.mark.parametrize(
    "name", [b"a,b\"c",
             b"new\nline", b"tab\tname", b"\xff\xfe", b"=1+1", b"$(x)", b"..x", "r\u202el".encode(), b"-n",
             b":(top)x", b"*"]
)  # fmt: skip
def test_a_hostile_path(name: bytes, tmp_path: Path) -> None:
    top = repository(tmp_path / "r")

    def work(_: OpenTurn) -> None:
        with open(os.path.join(os.fsencode(top), name), "wb") as file:
            file.write(b"here\n")

    made = record(top, work, keeping=Keeping("branch"))
    assert [path_bytes(each.path) for each in made.manifest.outputs] == [name]
    assert all_valid(top) == 1
    os.unlink(os.path.join(os.fsencode(top), name))
    gone = record(top, lambda _: None, keeping=Keeping("branch"))
    assert gone.manifest.outputs == []
    record(top, work, keeping=Keeping("branch"))
    assert all_valid(top) == 3


@given(st.binary(min_size=1).filter(lambda data: b"\0" not in data))
def test_any_path_can_be_taken_back_from_its_text(data: bytes) -> None:
    text = path_text(data)
    assert text.isprintable()
    assert path_bytes(text) == data


@given(st.text())
def test_any_text_stays_in_its_cell_and_in_its_fence(text: str) -> None:
    assert "\n" not in cell(text)
    assert one_line(text).isprintable()
    lines = fenced(text).split("\n")
    assert lines[-1] not in lines[1:-1]


@given(st.text(), st.text())
def test_any_row_can_be_read_back_and_calculates_nothing(branch: str, summary: str) -> None:
    uuid = "01a1e228-32a6-7264-810c-bc3d1f3c9f1a"
    row = index.Row(1, "s", "f", "0", index.harmless(branch), "c", index.harmless(summary), uuid)
    data = render([row])
    assert parse(data) == [row]
    assert not row.branch.startswith(("=", "+", "-", "@"))


# --- an index that somebody else wrote ---


@pytest.mark.parametrize(
    "found",
    [
        b"",
        b"nonsense",
        b"\xff\xfe\0\0",
        ",".join(HEADER).encode() + b"\r\n99+a[$(touch pwned)],x,x,x,x,x,x,x\r\n",
        ",".join(HEADER).encode() + b'\r\n"7\n8",x,x,x,x,x,x,x\r\n',
        ",".join(HEADER).encode() + b"\r\n5,x",
        b"<<<<<<< HEAD\n" + ",".join(HEADER).encode() + b"\n=======\n>>>>>>> theirs\n",
        ",".join(HEADER).encode() + b"\r\n009,a,b,c,d,e,f,01a1e228-32a6-7264-810c-bc3d1f3c9f1a\r\n=1,\r\n",
        ",".join(HEADER).encode()
        + b"\r\n9999999999999999999999,a,b,c,d,e,=cmd|x,01a1e228-32a6-7264-810c-bc3d1f3c9f1a\r\n",
        b'"' * 1_000_001,
    ],
)
def test_a_hostile_or_merge_marked_index_is_made_anew_and_gives_no_number(found: bytes, tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top, keeping=Keeping("files"))
    path = top / "ai/agentic-pipeline/turns_index.csv"
    path.write_bytes(found)
    made = record(top, keeping=Keeping("files"))
    assert made.manifest.turn_id == 2
    rows = parse(path.read_bytes())
    assert rows is not None
    assert [row.turn_id for row in rows] == [1, 2]
    assert not list(top.rglob("pwned"))


def test_two_branches_that_both_made_turns_merge_their_index_without_a_conflict(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top, keeping=Keeping("branch"))
    git(top, "checkout", "-q", "-b", "other")
    record(top, lambda _: write(top, "other.txt", "o\n"), keeping=Keeping("branch"))
    git(top, "checkout", "-q", "main")
    record(top, lambda _: write(top, "main.txt", "m\n"), keeping=Keeping("branch"))
    git(top, "merge", "-q", "--no-edit", "other")
    record(top, lambda _: write(top, "merged.txt", "x\n"), keeping=Keeping("branch"))
    rows = parse((top / "ai/agentic-pipeline/turns_index.csv").read_bytes())
    assert rows is not None
    assert [row.turn_id for row in rows] == [1, 2, 3, 4]
    assert all_valid(top) == 4


# --- secrets ---

SECRETS = {
    "github": SECRET,
    "anthropic": "sk-ant-api03-" + "Ab1_" * 10,
    "openai": "sk-proj-" + "Ab1" * 12,
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "google": "AIza" + "Ab1-" * 9,
    "slack": "xoxb-1234567890-abcdefghij",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAABBBB\nCCCC\n-----END OPENSSH PRIVATE KEY-----",
    "url": "hunter2secret",
    "assigned": "Tr0ub4dor&3x",
}
SENTENCES = {
    "url": "push to https://ada:hunter2secret@git.example.org/x.git please",
    "assigned": "set DB_PASSWORD=Tr0ub4dor&3x and go on",
}


@pytest.mark.parametrize("what", SECRETS)
def test_a_secret_is_in_no_artifact_wherever_it_was_said(what: str, tmp_path: Path) -> None:
    secret = SECRETS[what]
    text = SENTENCES.get(what, f"use {secret} for it")
    top = repository(tmp_path / "r")
    git(top, "remote", "add", "origin", f"https://ada:{SECRET}@git.example.org/x.git")

    def work(turn: OpenTurn) -> None:
        use_tool(turn, "Bash", argument=text)
        give_decision(find_repository(str(top)), Decision(text, text, text, rationale=[text]))

    turn_files = top / ".git/remuda/turns/1"
    turn = begin(find_repository(str(top)), Keeping("files"), Asked(text, "claude"))
    work(turn)
    kept = b"".join(path.read_bytes() for path in turn_files.iterdir())
    assert secret.encode() not in kept
    assert json.dumps(secret)[1:-1].encode() not in kept
    end(turn, "failed", error=text, summary=text)
    made = _published(turn)
    assert made == hashlib.sha256(text.encode()).hexdigest()
    shown = "".join(path.read_text() for path in (top / "ai").rglob("*") if path.is_file())
    everything = subprocess.run(
        ["git", "-C", str(top), "log", "--all", "-p", "--format=%B%N"], capture_output=True, check=True
    ).stdout.decode()
    for place in (shown, everything, git(top, "tag", "-l", "--format=%(contents)")):
        assert secret.split("\n")[0] not in place
    assert "redacted" in shown
    assert all_valid(top) == 1


def _published(turn: OpenTurn) -> str:
    from remuda.records.publish import publish

    made = publish(turn)
    assert made is not None
    assert made.failed == []
    return made.manifest.provenance.prompt_hash


def test_values_of_secret_variables_are_taken_out_wherever_they_turn_up() -> None:
    redact = redactor({"MY_API_KEY": "correct horse battery", "HOME": "/home/ada", "SHORT_TOKEN": "abc"})
    assert redact("it is correct horse battery in /home/ada, abc") == "it is [redacted: variable] in /home/ada, abc"


def test_ordinary_text_is_left_as_it_is() -> None:
    text = "The key to the token ring is https://example.org/a?b=c, see src/sk-learn.py and password reset flow."
    assert without_secrets(text) == text
