"""The connection to Claude Code against programs in its place that break the rules."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapters.agent_kit import WITHIN, Recorder, Undecided, alive, allow_all, launch_in
from adapters.stand_in import stand_in
from remuda.agents import Answered, Asked, Launch, McpServer, Text, TurnResult
from remuda.agents.claude import ClaudeSession, command, open_session
from remuda.domain.errors import AgentFault, Conflict, Invalid
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from waiting import until

CLAUDE = ("claude",)
READY = {"type": "control_response", "response": {"subtype": "success", "request_id": "1"}}
DONE = {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn"}


def said(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}}


def asks(tool: str = "Write", **fields: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "t1", "input": {"file_path": "a.txt"}}
    return {"type": "control_request", "request_id": "q1", "request": {**request, **fields}}


def launched(
    folder: Path, *, start: list[object] | None = None, user: list[object] | None = None, **fields: Any
) -> Launch:
    """A launch that finds on its PATH a claude of ours, which answers each type of line from a table."""
    table: dict[str, list[Any]] = {"control_request": [READY], "user": [DONE]}
    table |= {key: lines for key, lines in (("control_request", start), ("user", user)) if lines is not None}
    return launch_in(folder, backend="claude", env=stand_in(folder, "claude", table), **fields)


def one_turn(launch: Launch, heard: Recorder | None = None, ask: Any = allow_all) -> TurnResult:
    async def story() -> TurnResult:
        session = await open_session(CLAUDE, launch, heard or Recorder(), ask, patience=WITHIN)
        try:
            async with asyncio.timeout(WITHIN):
                return await session.prompt("go")
        finally:
            await session.end(gentle=False)

    return asyncio.run(story())


def test_a_turn_ends_with_its_result(tmp_path: Path) -> None:
    heard = Recorder()
    assert one_turn(launched(tmp_path, user=[said("Hello."), DONE]), heard) == TurnResult(Outcome.COMPLETED, "end_turn")
    assert heard.text() == "Hello."


def test_a_turn_that_the_program_began_by_itself_does_not_answer_ours(tmp_path: Path) -> None:
    heard = Recorder()
    other = {**DONE, "is_error": True, "origin": {"kind": "task-notification"}}
    result = one_turn(launched(tmp_path, user=[said("By the way."), other, said("Hello."), DONE]), heard)
    assert result.outcome is Outcome.COMPLETED
    assert heard.text() == "By the way.Hello."


@pytest.mark.parametrize("line", ["Segmentation fault", '{"type":"result","is_error":"perhaps"}'])
def test_a_line_that_cannot_be_understood_is_a_fault_and_still_on_the_wire_log(tmp_path: Path, line: str) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault) as caught:
        one_turn(launched(tmp_path, user=[line, DONE]), heard)
    assert caught.value.failure is Failure.MALFORMED
    assert line in heard.lines("agent")


def test_kinds_of_lines_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    strange = [{"type": "weather"}, {"type": "system", "subtype": "mood"}, {"type": "assistant"}, 42]
    assert one_turn(launched(tmp_path, user=[*strange, DONE])).outcome is Outcome.COMPLETED


def test_half_a_line_and_then_the_end_is_a_crash(tmp_path: Path) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault, match="exited with code 7") as caught:
        one_turn(launched(tmp_path, user=[said("Hel"), {"exit": 7, "with": '{"type":"resu'}]), heard)
    assert caught.value.failure is Failure.CRASHED
    assert heard.lines("agent")[-1] == '{"type":"resu'


@pytest.mark.parametrize(
    ("allow", "decision"),
    [
        (True, {"behavior": "allow", "updatedInput": {"file_path": "a.txt"}}),
        (False, {"behavior": "deny", "message": "Not in here."}),
    ],
)
def test_a_question_is_put_and_its_answer_sent(tmp_path: Path, allow: bool, decision: dict[str, Any]) -> None:
    heard = Recorder()
    questions: list[Asked] = []

    async def ask(asked: Asked) -> Answered:
        questions.append(asked)
        return Answered(allow, "Not in here.")

    launch = launched(
        tmp_path, user=[asks(blocked_path="/etc/a.txt", description="a.txt")], start=[READY, {"then": [DONE]}]
    )
    one_turn(launch, heard, ask)
    assert questions == [Asked("t1", "Write", '{"file_path": "a.txt"}', ("/etc/a.txt", "a.txt"), "a.txt")]
    sent = json.loads(heard.lines("remuda")[-1])["response"]
    assert (sent["request_id"], sent["response"]) == ("q1", decision)


def test_a_question_that_cannot_be_put_is_a_no(tmp_path: Path) -> None:
    heard = Recorder()

    async def ask(_: Asked) -> Answered:
        raise OSError("the disk is full")

    one_turn(launched(tmp_path, user=[asks()], start=[READY, {"then": [DONE]}]), heard, ask)
    decision = json.loads(heard.lines("remuda")[-1])["response"]["response"]
    assert decision["behavior"] == "deny"
    assert "the disk is full" in decision["message"]


def test_a_request_that_we_do_not_serve_is_answered_with_an_error(tmp_path: Path) -> None:
    heard = Recorder()
    one_turn(launched(tmp_path, user=[asks(subtype="mcp_message")], start=[READY, {"then": [DONE]}]), heard)
    assert json.loads(heard.lines("remuda")[-1])["response"]["subtype"] == "error"


def test_a_question_is_taken_back_when_the_program_says_so(tmp_path: Path) -> None:
    gone = {"then": [{"type": "control_cancel_request", "request_id": "q1"}, said("Never mind."), DONE]}
    heard = Recorder()
    asking = Undecided()

    async def story() -> None:
        launch = launched(tmp_path, start=[READY, gone], user=[asks()])
        session = await open_session(CLAUDE, launch, heard, asking, patience=WITHIN)
        turn = asyncio.create_task(session.prompt("go"))
        await until(lambda: asking.asked == 1)
        await session.cancel()
        await until(lambda: asking.withdrawn == 1)
        assert (await turn).outcome is Outcome.COMPLETED
        await session.end(gentle=False)

    asyncio.run(story())
    assert not [line for line in heard.lines("remuda") if "behavior" in line]


@pytest.mark.parametrize("state", ["cancelled", "refused"])
def test_a_prompt_that_is_dropped_without_a_result_ends_the_turn(tmp_path: Path, state: str) -> None:
    dropped = {"type": "command_lifecycle", "command_uuid": "asked", "state": state}
    result = one_turn(launched(tmp_path, user=[{**dropped, "command_uuid": "another"}, dropped]))
    assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.CANCELLED)


def test_a_resume_that_becomes_another_conversation_is_a_fault(tmp_path: Path) -> None:
    init = {"type": "system", "subtype": "init", "session_id": "another"}
    with pytest.raises(AgentFault, match="began another instead"):
        one_turn(launched(tmp_path, user=[init, DONE], resume="old"))


def test_a_conversation_that_the_program_begins_afresh_is_the_one_to_resume(tmp_path: Path) -> None:
    init = {"type": "system", "subtype": "init", "session_id": "another"}

    async def story() -> str:
        session = await open_session(CLAUDE, launched(tmp_path, user=[init, DONE]), Recorder(), allow_all)
        await session.prompt("/clear")
        await session.end(gentle=False)
        return session.ref

    assert asyncio.run(story()) == "another"


def test_a_program_that_does_not_answer_is_given_up_and_killed(tmp_path: Path) -> None:
    heard = Recorder()
    launch = launched(tmp_path, start=[])

    async def story() -> None:
        opening = asyncio.create_task(open_session(CLAUDE, launch, heard, allow_all, patience=1.5))
        await until(lambda: bool(heard.lines("stderr")) or opening.done())
        await opening

    with pytest.raises(AgentFault, match=r"did not start within 1.5 s"):
        asyncio.run(story())
    assert not alive(int(heard.lines("stderr")[0]))


def test_a_program_that_refuses_to_start_says_why(tmp_path: Path) -> None:
    refusal = {"type": "control_response", "response": {"subtype": "error", "request_id": "1", "error": "too old"}}
    with pytest.raises(AgentFault, match="too old"):
        one_turn(launched(tmp_path, start=[refusal]))


def test_one_session_runs_one_turn_at_a_time_and_knows_when_it_is_over(tmp_path: Path) -> None:
    async def story() -> None:
        session: ClaudeSession = await open_session(CLAUDE, launched(tmp_path, user=[]), Recorder(), allow_all)
        first = asyncio.create_task(session.prompt("one"))
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await session.prompt("two")
        await session.end(gentle=False)
        with pytest.raises(AgentFault, match="ended by Remuda"):
            await first
        with pytest.raises(AgentFault, match="ended by Remuda"):
            await session.prompt("three")
        await session.cancel()

    asyncio.run(story())


# How it is started


def argv_of(folder: Path, ref: str = "new", **fields: Any) -> tuple[list[str], dict[str, str]]:
    argv, env = command(CLAUDE, launched(folder, **fields), ref)
    return list(argv), env


def test_it_is_started_with_what_the_launch_says(tmp_path: Path) -> None:
    options = (("base_url", "http://127.0.0.1:1"), ("permission_mode", "acceptEdits"), ("max_retries", "0"))
    argv, env = argv_of(tmp_path, model="big", instructions="--be brief", options=options)
    assert argv[0] == "claude"
    assert argv[argv.index("--model") + 1] == "big"
    assert "--append-system-prompt=--be brief" in argv
    assert argv[argv.index("--session-id") + 1] == "new"
    assert argv[argv.index("--permission-mode") + 1] == "acceptEdits"
    assert (env["ANTHROPIC_BASE_URL"], env["CLAUDE_CODE_MAX_RETRIES"]) == ("http://127.0.0.1:1", "0")
    assert env["DISABLE_AUTOUPDATER"] == "1"


def test_a_resume_goes_on_and_a_fork_goes_on_under_another_id(tmp_path: Path) -> None:
    resumed, _ = argv_of(tmp_path, "old", resume="old")
    forked, _ = argv_of(tmp_path, "new", resume="old", fork=True)
    assert resumed[resumed.index("--resume") + 1] == forked[forked.index("--resume") + 1] == "old"
    assert "--session-id" not in resumed
    assert "--fork-session" in forked
    assert forked[forked.index("--session-id") + 1] == "new"


def test_secrets_of_tool_servers_are_in_its_environment_and_not_on_its_command_line(tmp_path: Path) -> None:
    servers = (
        McpServer("parrot", command=("parrot", "--loud"), env=(("TOKEN", "one-secret"),)),
        McpServer("owl", url="http://127.0.0.1:1/mcp", headers=(("X-Token", "another-secret"),)),
    )
    argv, env = argv_of(tmp_path, mcp_servers=servers)
    config = json.loads(argv[argv.index("--mcp-config") + 1])["mcpServers"]
    assert config["parrot"]["env"] == {"TOKEN": "${REMUDA_PARROT_TOKEN}"}
    assert config["owl"]["headers"] == {"X-Token": "${REMUDA_OWL_X_TOKEN}"}
    assert (env["REMUDA_PARROT_TOKEN"], env["REMUDA_OWL_X_TOKEN"]) == ("one-secret", "another-secret")
    assert not [part for part in argv if "-secret" in part]


def test_an_option_that_it_does_not_have_is_refused_with_the_nearest_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        argv_of(tmp_path, options=(("base_ulr", "x"),))
    assert caught.value.possible[0] == "base_url"


def test_text_is_heard_as_it_was_said(tmp_path: Path) -> None:
    heard = Recorder()
    one_turn(launched(tmp_path, user=[said("Grüße\nan alle"), DONE]), heard)
    assert [update for update in heard.updates if isinstance(update, Text)] == [Text("Grüße\nan alle")]
