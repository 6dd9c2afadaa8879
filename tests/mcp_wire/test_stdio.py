"""The front on stdin and stdout, as a real child process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_wire.test_http import HELLO, LIST
from remuda.mcp.jsonrpc import INVALID_REQUEST, PARSE_ERROR
from remuda.mcp.stdio import LONGEST_LINE

TESTS = Path(__file__).parents[1]


def exchange(*lines: bytes, code: str = "") -> list[dict[str, object]]:
    """What it writes to stdout when these lines are all that it is told."""
    start = code or "import mcp_wire.desk as d, uvloop; uvloop.run(d.serve(d.ToolDesk()))"
    done = subprocess.run(
        [sys.executable, "-c", start],
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        env={"PYTHONPATH": str(TESTS)},
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def told(message: object) -> bytes:
    return json.dumps(message).encode()


def test_it_answers_and_exits_by_itself_when_its_client_closes_the_pipe() -> None:
    answers = {answer["id"]: answer for answer in exchange(told(HELLO), b"", told({**LIST, "method": "ping"}))}
    assert answers[1]["result"] == {}
    assert "instructions" in answers[0]["result"]  # type: ignore[operator]


def test_bad_lines_are_answered_and_the_good_ones_after_them_too() -> None:
    long = b'"' + b"x" * LONGEST_LINE + b'"'
    bad = (b"oops", b'{"id":3}', long)
    answers = exchange(told(HELLO), *bad, told({**LIST, "id": 9, "method": "ping"}))
    codes = [answer["error"]["code"] for answer in answers if "error" in answer]  # type: ignore[index]
    assert codes == [PARSE_ERROR, INVALID_REQUEST, INVALID_REQUEST]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_a_stray_print_does_not_break_the_protocol() -> None:
    code = """
import mcp_wire.desk as d, uvloop
class Loud(d.ToolDesk):
    def offer(self, who):
        print("a library says hello", flush=True)
        return super().offer(who)
uvloop.run(d.serve(Loud()))
"""
    (answer,) = exchange(told(HELLO), code=code)
    assert answer["id"] == 0


@pytest.mark.parametrize("source", ["a file", os.devnull])
def test_stdin_and_stdout_need_not_be_pipes(tmp_path: Path, source: str) -> None:
    given, taken = tmp_path / "in", tmp_path / "out"
    given.write_bytes(told(HELLO) + b"\n")
    program = [sys.executable, "-m", "mcp_wire.desk"]
    with (given if source == "a file" else Path(source)).open("rb") as stdin, taken.open("wb") as stdout:
        done = subprocess.run(
            program, stdin=stdin, stdout=stdout, env={"PYTHONPATH": str(TESTS)}, timeout=60, check=False
        )
    assert done.returncode == 0
    answers = [json.loads(line)["id"] for line in taken.read_bytes().splitlines()]
    assert answers == ([0] if source == "a file" else [])


def test_a_client_that_does_not_read_is_answered_and_misses_what_it_is_only_told() -> None:
    code = """
import mcp_wire.desk as d, uvloop
class Loud(d.ToolDesk):
    async def answer(self, client, request):
        for number in range(100):
            client.notify("notifications/message", d.raw({"level": "info", "data": "x" * 1_000_000}))
        client.notify("notifications/tools/list_changed", d.raw({}))
        return d.raw({})
uvloop.run(d.serve(Loud()))
"""
    with running(code) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(told(HELLO) + b"\n" + told(LIST) + b"\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline())]
        while answers[-1].get("id") != LIST["id"]:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    messages = [each.get("method") for each in answers]
    assert messages.count("notifications/tools/list_changed") == 1
    assert 1 <= messages.count("notifications/message") < 20


def test_it_exits_when_its_client_no_longer_reads() -> None:
    with running("import mcp_wire.desk as d, uvloop; uvloop.run(d.serve(d.ToolDesk()))") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(told(HELLO) + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=20) == 0  # although its stdin is open


@contextmanager
def running(code: str) -> Iterator["subprocess.Popen[bytes]"]:
    start = [sys.executable, "-c", code]
    with subprocess.Popen(
        start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(TESTS)}
    ) as process:
        try:
            yield process
        finally:
            process.kill()
