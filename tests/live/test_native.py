"""Claude Code and Codex themselves, over their own protocols, against a scripted model.

Exit codes and stop reasons of these programs lie, and their usage has several meanings. Here it is seen that a failed
model call is a failed turn, and that what was used adds up to the token.
"""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from adapters.agent_kit import WITHIN, Undecided
from live.native_kit import NATIVE, Stage, Story, script, stage
from remuda.agents import Answered, Asked, Hook, McpServer, Retry, TurnResult
from remuda.agents.codex import CodexSession
from remuda.agents.strays import marked
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from waiting import until

pytestmark = pytest.mark.live


@pytest.fixture(params=sorted(NATIVE))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def play(name: str, folder: Path, story: Story) -> None:
    async def on_stage() -> None:
        async with stage(name, folder) as it, asyncio.timeout(3 * WITHIN):
            await story(it)

    asyncio.run(on_stage())


def command_lines() -> list[str]:
    """Those of all processes, as anyone on the machine can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(path.read_bytes().decode(errors="replace"))
    return found


def running(token: str) -> list[str]:
    """The processes whose last argument it is."""
    return [line for line in command_lines() if line.endswith(f"\0{token}\0")]


def counted(it: Stage) -> list[tuple[int, int, int, int]]:
    used = [call.usage for call in it.heard.calls()]
    return [(u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_creation_tokens) for u in used]


def test_it_speaks_runs_a_command_and_writes_a_file(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            steps = ({"say": "Well."}, {"shell": "echo one > shell.txt && cat shell.txt"})
            write = {"write": {"path": "notes.txt", "text": "alpha\n"}}
            result = await session.prompt(script({"think": "Hm."}, *steps, write, {"say": "All done."}))
        assert result == TurnResult(Outcome.COMPLETED, "end_turn")
        assert it.heard.text() == "Well.All done."
        assert it.heard.thoughts() == "Hm."
        assert (it.work / "shell.txt").read_text() == "one\n"
        assert (it.work / "notes.txt").read_text() == "alpha\n"
        tools = it.heard.tools()
        assert [tool.status for tool in tools] == ["started", "completed", "started", "completed"]
        assert "echo one" in tools[0].arguments
        assert tools[1].result.strip() == "one"

    play(name, tmp_path, story)


def test_a_command_that_fails_is_a_failed_tool_call_in_a_completed_turn(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            result = await session.prompt(script({"shell": "echo no >&2; exit 3"}, {"say": "It failed."}))
        assert result.outcome is Outcome.COMPLETED
        failed = it.heard.tools()[-1]
        assert failed.status == "failed"
        assert "no" in failed.result
        assert "3" in failed.result

    play(name, tmp_path, story)


def test_five_model_calls_of_known_usage_add_up_exactly(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        each = [{"use": {"input": 1000 + n, "cached": 10 * n, "output": n, "cache_write": n}} for n in range(1, 6)]
        acts = [{"shell": f"echo {n}"} for n in range(1, 5)]
        steps = [step for pair in zip(each, [*acts, {"say": "Done."}], strict=True) for step in pair]
        async with it.session() as session:
            await session.prompt(script(*steps))
        assert counted(it) == it.used()
        assert len(counted(it)) == 5
        assert it.heard.calls()[-1].usage.context_tokens == 1005 + 5
        assert it.heard.calls()[-1].usage.context_window > 100_000
        assert {call.model for call in it.heard.calls()} == {it.model.calls[-1].model}

    play(name, tmp_path, story)


def test_what_was_used_before_a_resume_is_not_counted_again(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as first:
            await first.prompt(script({"say": "One."}))
        before = [call.usage.cost_nanousd for call in it.heard.calls()]
        async with it.session(resume=first.ref) as second:
            await second.prompt(script({"say": "Two."}))
            await second.prompt(script({"say": "Three."}))
        assert counted(it) == it.used()
        assert [call.usage.cost_nanousd for call in it.heard.calls()] == before * 3

    play(name, tmp_path, story)


FAILURES: dict[str, tuple[tuple[object, ...], Failure]] = {
    "401": (({"error": 401},), Failure.NOT_LOGGED_IN),
    "429": (({"error": 429},), Failure.RATE_LIMITED),
    "500": (({"error": 500},), Failure.MODEL_ERROR),
    "503": (({"error": 503},), Failure.OVERLOADED),
    "529": (({"error": 529},), Failure.OVERLOADED),
    "400": (({"error": 400},), Failure.MODEL_ERROR),
    "context": (({"context_exceeded": True},), Failure.CONTEXT_EXCEEDED),
    "refusal": (({"refuse": "I will not."},), Failure.REFUSED),
    "cut": (({"say": "Half a sent"}, {"cut": True}), Failure.MODEL_ERROR),
    "cut after work": (({"shell": "echo 1"}, {"say": "Half a sent"}, {"cut": True}), Failure.MODEL_ERROR),
    "garbage": (({"garbage": "<html>"},), Failure.MODEL_ERROR),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_a_failed_model_call_is_a_failed_turn_and_says_what_it_was(name: str, tmp_path: Path, fault: str) -> None:
    steps, failure = FAILURES[fault]

    async def story(it: Stage) -> None:
        async with it.session() as session:
            result = await session.prompt(script(*steps))
            assert (result.outcome, result.failure) == (Outcome.FAILED, failure)
            assert result.error
            assert (await session.prompt(script({"say": "Fine again."}))).outcome is Outcome.COMPLETED

    play(name, tmp_path, story)


def test_a_rate_limit_that_passes_is_a_retry_and_then_a_completed_turn(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            result = await session.prompt(script({"error": 429, "retry_after": 0.2, "times": 1}, {"say": "Now."}))
        assert result.outcome is Outcome.COMPLETED
        retries = [update for update in it.heard.updates if isinstance(update, Retry)]
        assert [(each.attempt, each.failure) for each in retries] == [(1, Failure.RATE_LIMITED)]
        assert counted(it) == it.used()

    play(name, tmp_path, story)


def test_a_turn_is_interrupted_in_the_middle_of_a_sentence(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            turn = asyncio.create_task(session.prompt(script({"slow": 0.05}, {"say": "word ", "repeat": 2000})))
            await until(lambda: "word" in it.heard.text())
            await session.cancel()
            result = await turn
            assert (result.stop_reason, result.failure) == ("cancelled", Failure.CANCELLED)
            assert (await session.prompt(script({"say": "Yes?"}))).outcome is Outcome.COMPLETED

    play(name, tmp_path, story)


def test_a_cancel_right_behind_the_prompt_is_not_lost(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            turn = asyncio.create_task(session.prompt(script({"say": "Working. "}, {"hang": True})))
            await asyncio.sleep(0)
            await session.cancel()
            assert (await turn).failure is Failure.CANCELLED
            assert (await session.prompt(script({"say": "Yes?"}))).outcome is Outcome.COMPLETED

    play(name, tmp_path, story)


def test_a_turn_is_interrupted_in_the_middle_of_a_command(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        token = f"asleep-{name}-{os.getpid()}"  # the command may be in a sandbox where pids are others
        command = f"{sys.executable} -c 'import time; time.sleep(600)' {token}"
        async with it.session() as session:
            turn = asyncio.create_task(session.prompt(script({"shell": command}, {"say": "Slept."})))
            await until(lambda: bool(running(token)))
            await session.cancel()
            result = await turn
            assert (result.stop_reason, result.failure) == ("cancelled", Failure.CANCELLED)
            assert [tool.status for tool in it.heard.tools()] == ["started", "failed"]
            await until(lambda: not running(token))
            assert (await session.prompt(script({"say": "Yes?"}))).outcome is Outcome.COMPLETED

    play(name, tmp_path, story)


def test_a_conversation_goes_on_after_kill_9(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        ours = f"killed-hard-{name}-{os.getpid()}"
        async with it.session(mark=ours) as first:
            await first.prompt(script({"say": "Remember this."}))
            for pid, mark in marked():
                if mark == ours:
                    os.kill(pid, signal.SIGKILL)
            assert (await first.gone()).returncode == -signal.SIGKILL
        async with it.session(resume=first.ref) as second:
            await second.prompt(script({"recall": True}))
            assert second.ref == first.ref
        assert "2 scripted prompts" in it.heard.text()

    play(name, tmp_path, story)


def test_a_fork_leaves_the_original_as_it_is(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as original:
            await original.prompt(script({"say": "Shared."}))
        async with it.session(resume=original.ref, fork=True) as fork:
            await fork.prompt(script({"recall": True}))
            assert fork.ref not in ("", original.ref)
        assert "2 scripted prompts" in it.heard.text()
        async with it.session(resume=original.ref) as again:
            await again.prompt(script({"recall": True}))
        assert it.heard.text().count("2 scripted prompts") == 2

    play(name, tmp_path, story)


@pytest.mark.parametrize("fork", [False, True])
def test_a_conversation_that_is_forgotten_begins_anew(name: str, tmp_path: Path, fork: bool) -> None:
    unknown = "01a1e18a-c869-7082-aba8-524d66940000"

    async def story(it: Stage) -> None:
        async with it.session(resume=unknown, fork=fork) as session:
            assert session.ref not in ("", unknown)
            assert (await session.prompt(script({"say": "Who are you?"}))).outcome is Outcome.COMPLETED

    play(name, tmp_path, story)


@pytest.mark.parametrize("allow", [True, False])
def test_a_write_is_asked_for_and_done_only_when_allowed(name: str, tmp_path: Path, allow: bool) -> None:
    questions: list[Asked] = []

    async def ask(asked: Asked) -> Answered:
        questions.append(asked)
        return Answered(allow, "Not in here.")

    async def story(it: Stage) -> None:
        write = {"write": {"path": "notes.txt", "text": "alpha\n"}}
        async with it.session(ask=ask) as session:
            result = await session.prompt(script(write, {"say": "So be it."}))
        assert result.outcome is Outcome.COMPLETED
        assert (it.work / "notes.txt").exists() is allow
        assert [question.paths for question in questions] == [(str(it.work / "notes.txt"),)]
        last = it.heard.tools()[-1]
        assert (last.id, last.status) == (questions[0].id, "completed" if allow else "failed")
        assert questions[0].tool == last.name

    play(name, tmp_path, story)


def test_a_command_that_is_not_allowed_is_not_run_and_the_turn_goes_on(name: str, tmp_path: Path) -> None:
    async def ask(asked: Asked) -> Answered:
        return Answered(allow="harmless" in asked.arguments, why="Not in here.")

    async def story(it: Stage) -> None:
        async with it.session(ask=ask) as session:
            steps = [{"shell": f"touch {each}.txt"} for each in ("harmful", "harmless")]
            result = await session.prompt(script(*steps, {"say": "So be it."}))
        assert result.outcome is Outcome.COMPLETED
        assert [path.name for path in it.work.iterdir()] == ["harmless.txt"]
        assert [tool.status for tool in it.heard.tools()] == ["started", "failed", "started", "completed"]

    play(name, tmp_path, story)


def test_a_question_is_taken_back_when_the_turn_is_interrupted(name: str, tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        asking = Undecided()
        async with it.session(ask=asking) as session:
            turn = asyncio.create_task(session.prompt(script({"shell": "touch never.txt"})))
            await until(lambda: asking.asked == 1)
            await session.cancel()
            assert (await turn).failure is Failure.CANCELLED
            await until(lambda: asking.withdrawn == 1)
            assert (await session.prompt(script({"say": "Yes?"}))).outcome is Outcome.COMPLETED
        assert not (it.work / "never.txt").exists()

    play(name, tmp_path, story)


def test_the_tools_of_a_tool_server_can_be_used_and_its_secrets_stay_unseen(name: str, tmp_path: Path) -> None:
    server = McpServer(
        "parrot",
        command=(sys.executable, str(Path(__file__).parent / "echo_server.py")),
        env=(("ECHO_TOKEN", "secret-parrot"),),
    )

    async def story(it: Stage) -> None:
        call = {"tool": {"name": "echo", "arguments": {"text": "polly"}}}
        async with it.session(mcp_servers=(server,), model=it.native.plain_model) as session:
            argv = command_lines()
            await session.prompt(script(call, {"say": "Called."}))
        done = it.heard.tools()[-1]
        assert (done.name, done.status) == ("mcp__parrot__echo", "completed")
        assert done.result == "polly secret-parrot"
        assert argv
        assert not [line for line in (*argv, *it.heard.lines("remuda")) if "secret-" in line]

    play(name, tmp_path, story)


def test_calls_of_subagents_are_counted_too(tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        errand = {"description": "An errand", "prompt": script({"say": "Ran."}), "subagent_type": "general-purpose"}
        async with it.session() as session:
            call = {"tool": {"name": "Agent", "arguments": errand}}
            assert (await session.prompt(script(call, {"say": "Back."}))).outcome is Outcome.COMPLETED
        assert len(it.used()) == 3
        assert [sum(column) for column in zip(*counted(it), strict=True)] == [
            sum(column) for column in zip(*it.used(), strict=True)
        ]
        assert it.heard.text() == "Back."

    play("claude", tmp_path, story)


def test_a_running_turn_can_be_steered(tmp_path: Path) -> None:
    async def story(it: Stage) -> None:
        async with it.session() as session:
            assert isinstance(session, CodexSession)
            wait = "until test -e go.txt; do sleep 0.02; done"
            turn = asyncio.create_task(session.prompt(script({"shell": wait}, {"say": "As planned."})))
            await until(lambda: bool(it.heard.tools()))
            await session.steer(script({"say": "As you wish."}))
            (it.work / "go.txt").touch()
            assert (await turn).outcome is Outcome.COMPLETED
        assert it.heard.text() == "As you wish."

    play("codex", tmp_path, story)


def test_a_hook_of_the_users_is_heard_and_a_prompt_that_it_stops_is_a_failed_turn(tmp_path: Path) -> None:
    stops = {"type": "command", "command": "grep -q unheard && { echo 'not this prompt' >&2; exit 2; }; echo fine"}
    settings = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [stops]}]}})

    async def story(it: Stage) -> None:
        async with it.session(options={"settings": settings}) as session:
            assert (await session.prompt(script({"say": "Good."}))).outcome is Outcome.COMPLETED
            result = await session.prompt(script({"say": "unheard"}))
        assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.REFUSED)
        assert "not this prompt" in result.error
        hooks = [each for each in it.heard.updates if isinstance(each, Hook)]
        assert [(each.status, each.text) for each in hooks] == [("passed", "fine"), ("blocked", "not this prompt")]

    play("claude", tmp_path, story)
