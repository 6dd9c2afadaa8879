"""The books that agents keep of their own."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

from adapters.agent_kit import launch_in
from remuda.agents.books import Page
from remuda.agents.gemini_books import GeminiBooks, before_resume
from remuda.agents.opencode_books import OpencodeBooks
from remuda.domain.failure import Failure
from remuda.domain.state import Usage

REF = "85cb848c-a101-45dd-8a7c-455e2291821f"


def message(number: int, **fields: object) -> dict[str, object]:
    tokens = {"input": 10, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}
    info = {"id": f"m{number}", "role": "assistant", "modelID": "gpt-5", "tokens": tokens, "cost": 0.25, **fields}
    return {"info": info, "parts": []}


def ask_opencode(folder: Path, answers: dict[str, object], *asked: str) -> tuple[list[Page], list[str]]:
    """Pages that the books give when the program answers so, and what was asked of it."""
    targets: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split()[1]
        targets.append(target)
        allowed = "Authorization: Basic" in head
        path, _, query = target.partition("?")
        body = answers.get(path)
        if isinstance(body, list):
            body = body[-int(query.partition("=")[2]) :]
        status = "200 OK" if allowed and body is not None else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\r\n{json.dumps(body)}".encode())
        writer.close()

    async def story() -> list[Page]:
        books = OpencodeBooks(launch_in(folder))
        port = int(books.arguments[-1])
        async with await asyncio.start_server(serve, "127.0.0.1", port):
            return [await books.page(ref, frozenset({"m1"})) for ref in asked]

    return asyncio.run(story()), targets


def test_opencode_tells_every_call_with_its_price(tmp_path: Path) -> None:
    user = {"info": {"id": "u", "role": "user"}, "parts": []}
    unfinished = message(3, tokens={"input": 0, "output": 0, "cache": {"read": 0, "write": 0}})
    (page,), _ = ask_opencode(tmp_path, {"/session/s/message": [user, message(1), message(2), unfinished]}, "s")
    assert [each.id for each in page.calls] == ["m1", "m2"]
    assert page.calls[0].usage == Usage(10, 3, 3, 0, 13, 0, 250_000_000)
    assert page.calls[0].model == "gpt-5"
    assert page.cause is None


def test_opencode_is_asked_for_more_until_a_known_call_is_among_them(tmp_path: Path) -> None:
    many = [message(number) for number in range(1, 71)]
    (page,), targets = ask_opencode(tmp_path, {"/session/s/message": many}, "s")
    assert len(page.calls) == 70
    assert [each.rpartition("=")[2] for each in targets] == ["20", "40", "80"]


def test_opencode_tells_the_status_of_a_call_that_failed_and_how_long_to_wait(tmp_path: Path) -> None:
    data = {"message": "slow down", "statusCode": 429, "responseHeaders": {"Retry-After": "17"}}
    failed = message(2, error={"name": "APIError", "data": data}, tokens={"input": 0})
    (page,), _ = ask_opencode(tmp_path, {"/session/s/message": [message(1), failed]}, "s")
    assert page.cause is not None
    assert (page.error, page.cause.failure, page.cause.retry_after) == ("slow down", Failure.RATE_LIMITED, 17.0)


def test_books_that_cannot_be_read_are_empty_and_no_error(tmp_path: Path) -> None:
    (page,), _ = ask_opencode(tmp_path, {}, "s")
    assert page == Page([])
    assert asyncio.run(OpencodeBooks(launch_in(tmp_path)).page("s", frozenset())) == Page([])


def test_opencode_tells_which_call_it_is_about_to_try_again(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        state = {"s": {"type": "retry", "attempt": 2, "message": "Too Many Requests", "next": 0}}
        writer.write(f"HTTP/1.1 200 OK\r\n\r\n{json.dumps(state)}".encode())
        writer.close()

    async def story() -> None:
        books = OpencodeBooks(launch_in(tmp_path))
        async with await asyncio.start_server(serve, "127.0.0.1", int(books.arguments[-1])):
            retry = await books.retry("s")
            assert retry is not None
            assert (retry.attempt, retry.failure, retry.seconds) == (2, Failure.RATE_LIMITED, 0.0)
            assert await books.retry("another") is None

    asyncio.run(story())


def gemini_file(home: Path, minute: str, *lines: object) -> Path:
    path = home / ".gemini/tmp/project/chats" / f"session-{minute}-{REF[:8]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines))
    return path


def test_gemini_tells_every_call_once_and_passes_over_the_rest(tmp_path: Path) -> None:
    tokens = {"input": 1200, "output": 34, "cached": 100, "thoughts": 6, "tool": 0, "total": 1240}
    call = {"id": "a", "type": "gemini", "content": "hi", "tokens": tokens, "model": "gemini-2.5-flash"}
    again = {**call, "toolCalls": []}
    gemini_file(tmp_path, "2026-11-16T00-04", {"sessionId": REF}, {"$set": {"x": 1}}, call, again, '{"id":"b","ty')
    page = asyncio.run(GeminiBooks(launch_in(tmp_path, env={"HOME": str(tmp_path)})).page(REF, frozenset()))
    (kept,) = page.calls
    assert (kept.id, kept.model, kept.usage) == ("a", "gemini-2.5-flash", Usage(1100, 40, 100, 0, 1200))


def test_the_empty_beginning_that_a_load_leaves_goes_before_gemini_sweeps_the_conversation_with_it(
    tmp_path: Path,
) -> None:
    launch = launch_in(tmp_path, env={"HOME": str(tmp_path)}, resume=REF)
    told = gemini_file(tmp_path, "2026-11-16T00-03", {"id": "1", "type": "user"}, {"id": "2", "type": "gemini"})
    left = gemini_file(tmp_path, "2026-11-16T00-04", {"id": "3", "type": "user"})
    before_resume(launch, datetime(2026, 11, 16, 0, 4, 45, tzinfo=UTC))
    assert (told.exists(), left.exists()) == (True, False)
    unanswered = gemini_file(tmp_path, "2026-11-16T00-03", {"id": "1", "type": "user"})
    before_resume(launch)
    assert unanswered.exists(), "where nothing was answered yet, it is the conversation itself"


def test_a_gemini_conversation_of_this_minute_is_not_overwritten_by_its_own_beginning(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, env={"HOME": str(tmp_path)}, resume=REF)
    young, old = (
        gemini_file(tmp_path, f"2026-11-16T00-0{minute}", {"id": minute, "type": "gemini"}) for minute in "43"
    )
    told = young.read_bytes(), old.read_bytes()
    before_resume(launch, datetime(2026, 11, 16, 0, 5, 0, tzinfo=UTC))
    assert (young.read_bytes(), old.read_bytes()) == told
    before_resume(launch_in(tmp_path, env={"HOME": str(tmp_path)}, resume="other"))
    before_resume(launch, datetime(2026, 11, 16, 0, 4, 45, tzinfo=UTC))
    assert not young.exists(), "Gemini will begin one of this name"
    moved = young.with_name(young.name.replace("00-04", "00-02"))
    assert (moved.read_bytes(), old.read_bytes()) == told
