"""The connection to Codex's app-server against programs in its place that break the rules."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from adapters.agent_kit import WITHIN, Recorder, Undecided, alive, allow_all, launch_in
from adapters.stand_in import stand_in
from remuda.agents import Answered, Asked, Launch, McpServer, TurnResult
from remuda.agents.codex import command, open_session, thread
from remuda.domain.errors import AgentFault, Conflict, Invalid
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from waiting import until

WELCOME = {"id": "asked", "result": {}}
CODEX = ("codex",)
OPENED = {"id": "asked", "result": {"thread": {"id": "ours"}, "model": "big"}}
STARTED = {"id": "asked", "result": {"turn": {"id": "t1", "status": "inProgress"}}}


def notice(method: str, thread: str = "ours", **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": thread, **params}}


def completed(turn: str = "t1", status: str = "completed", **fields: Any) -> dict[str, Any]:
    return notice("turn/completed", turn={"id": turn, "status": status, **fields})


def said(text: str) -> dict[str, Any]:
    return notice("item/agentMessage/delta", itemId="i1", delta=text)


def launched(
    folder: Path, turn: list[Any] | None = None, table: dict[str, list[Any]] | None = None, **fields: Any
) -> Launch:
    """A launch that finds on its PATH a codex of ours, which answers each method from a table."""
    usual: dict[str, list[Any]] = {"initialize": [WELCOME], "thread/start": [OPENED]}
    usual["turn/start"] = [STARTED, completed()] if turn is None else turn
    env = stand_in(folder, "codex", usual | (table or {}))
    return launch_in(folder, backend="codex", env=env, **fields)


def one_turn(launch: Launch, heard: Recorder | None = None, ask: Any = allow_all) -> TurnResult:
    async def story() -> TurnResult:
        session = await open_session(CODEX, launch, heard or Recorder(), ask, patience=WITHIN)
        try:
            async with asyncio.timeout(WITHIN):
                return await session.prompt("go")
        finally:
            await session.end(gentle=False)

    return asyncio.run(story())


def sent(heard: Recorder, method: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in heard.lines("remuda")]
    return [line for line in lines if line.get("method") == method]


def test_a_turn_ends_when_it_is_completed(tmp_path: Path) -> None:
    heard = Recorder()
    result = one_turn(launched(tmp_path, [STARTED, said("Hello."), completed()]), heard)
    assert result == TurnResult(Outcome.COMPLETED, "end_turn")
    assert heard.text() == "Hello."


def test_a_turn_that_completes_before_its_start_is_answered_is_completed(tmp_path: Path) -> None:
    assert one_turn(launched(tmp_path, [completed(), STARTED])).outcome is Outcome.COMPLETED


def test_the_end_of_another_turn_or_thread_is_not_ours(tmp_path: Path) -> None:
    others = [completed("t0", "failed"), notice("turn/completed", "another", turn={"id": "t1", "status": "failed"})]
    assert one_turn(launched(tmp_path, [STARTED, *others, completed()])).outcome is Outcome.COMPLETED


def test_a_turn_that_may_not_start_is_a_failed_turn(tmp_path: Path) -> None:
    refused = {"id": "asked", "error": {"code": -32600, "message": "the model is unknown"}}
    result = one_turn(launched(tmp_path, [refused]))
    assert (result.outcome, result.error) == (Outcome.FAILED, "the model is unknown")


@pytest.mark.parametrize("line", ["Segmentation fault", '{"method":"turn/completed","params":{"turn":7}}'])
def test_a_line_that_cannot_be_understood_is_a_fault_and_still_on_the_wire_log(tmp_path: Path, line: str) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault):
        one_turn(launched(tmp_path, [STARTED, line, completed()]), heard)
    assert line in heard.lines("agent")


def test_notices_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    strange = [notice("weather/changed"), {"method": "item/started", "params": {"item": 7}}, {"method": "x"}]
    assert one_turn(launched(tmp_path, [STARTED, *strange, completed()])).outcome is Outcome.COMPLETED


def test_half_a_line_and_then_the_end_is_a_crash(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="exited with code 7") as caught:
        one_turn(launched(tmp_path, [STARTED, {"exit": 7, "with": '{"method":"turn/comp'}]))
    assert caught.value.failure is Failure.CRASHED


ANSWERS = {
    "item/commandExecution/requestApproval": ({"decision": "accept"}, {"decision": "decline"}),
    "item/fileChange/requestApproval": ({"decision": "accept"}, {"decision": "decline"}),
    "item/permissions/requestApproval": ({"permissions": {"network": True}}, {"permissions": {}}),
    "mcpServer/elicitation/request": ({"action": "accept", "content": {}}, {"action": "decline", "content": None}),
}


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize("method", ANSWERS)
def test_each_kind_of_question_is_answered_in_its_own_words(tmp_path: Path, method: str, allow: bool) -> None:
    heard = Recorder()

    async def ask(_: Asked) -> Answered:
        return Answered(allow)

    question = {"id": 7, "method": method, "params": {"threadId": "ours", "permissions": {"network": True}}}
    one_turn(launched(tmp_path, [STARTED, question], {"answer": [completed()]}), heard, ask)
    reply = json.loads(heard.lines("remuda")[-1])
    assert (reply["id"], reply["result"]) == (7, ANSWERS[method][0 if allow else 1])


def test_a_request_that_we_do_not_serve_is_answered_as_unknown(tmp_path: Path) -> None:
    heard = Recorder()
    question = {"id": 7, "method": "account/chatgptAuthTokens/refresh", "params": {}}
    one_turn(launched(tmp_path, [STARTED, question], {"answer": [completed()]}), heard)
    assert json.loads(heard.lines("remuda")[-1])["error"]["code"] == -32601


def test_a_question_is_taken_back_when_the_program_says_so(tmp_path: Path) -> None:
    question = {"id": 7, "method": "item/fileChange/requestApproval", "params": {}}
    gone = [notice("serverRequest/resolved", requestId=7), said("Never mind."), completed()]
    heard = Recorder()
    asking = Undecided()

    async def story() -> None:
        launch = launched(tmp_path, [STARTED, question], {"turn/interrupt": gone})
        session = await open_session(CODEX, launch, heard, asking, patience=WITHIN)
        turn = asyncio.create_task(session.prompt("go"))
        await until(lambda: asking.asked == 1)
        await session.cancel()
        await until(lambda: asking.withdrawn == 1)
        assert (await turn).outcome is Outcome.COMPLETED
        await session.end(gentle=False)

    asyncio.run(story())
    assert not [line for line in heard.lines("remuda") if "decision" in line]


def test_a_cancel_before_the_turn_has_begun_is_sent_when_it_has(tmp_path: Path) -> None:
    heard = Recorder()
    table: dict[str, list[Any]] = {"turn/interrupt": [completed(status="interrupted")]}
    begun = notice("turn/started", turn={"id": "t1", "status": "inProgress"})

    async def story() -> TurnResult:
        session = await open_session(CODEX, launched(tmp_path, [STARTED, begun], table), heard, allow_all)
        turn = asyncio.create_task(session.prompt("go"))
        await asyncio.sleep(0)
        await session.cancel()
        try:
            async with asyncio.timeout(WITHIN):
                return await turn
        finally:
            await session.end(gentle=False)

    assert asyncio.run(story()).failure is Failure.CANCELLED
    assert [each["params"]["turnId"] for each in sent(heard, "turn/interrupt")] == ["t1"]
    assert sent(heard, "thread/backgroundTerminals/clean")


def test_a_turn_can_be_steered_only_while_it_runs(tmp_path: Path) -> None:
    heard = Recorder()
    table: dict[str, list[Any]] = {"turn/steer": [{"id": "asked", "result": {"turnId": "t1"}}, completed()]}

    async def story() -> None:
        session = await open_session(CODEX, launched(tmp_path, [STARTED, said("Going.")], table), heard, allow_all)
        with pytest.raises(Conflict):
            await session.steer("left")
        turn = asyncio.create_task(session.prompt("go"))
        await until(lambda: bool(heard.text()))
        await session.steer("left")
        assert (await turn).outcome is Outcome.COMPLETED
        await session.end(gentle=False)

    asyncio.run(story())
    assert [each["params"]["expectedTurnId"] for each in sent(heard, "turn/steer")] == ["t1"]


UNKNOWN = {"id": "asked", "error": {"code": -32600, "message": "no rollout found"}}


@pytest.mark.parametrize(
    ("table", "fork", "ref", "tried"),
    [
        ({"thread/resume": [{"id": "asked", "result": {"thread": {"id": "old"}}}]}, False, "old", ["thread/resume"]),
        ({"thread/fork": [{"id": "asked", "result": {"thread": {"id": "copy"}}}]}, True, "copy", ["thread/fork"]),
        ({"thread/resume": [UNKNOWN]}, False, "ours", ["thread/resume", "thread/start"]),
    ],
    ids=["resumed", "forked", "forgotten"],
)
def test_a_conversation_is_resumed_or_forked_or_begun_anew(
    tmp_path: Path, table: dict[str, list[Any]], fork: bool, ref: str, tried: list[str]
) -> None:
    heard = Recorder()

    async def story() -> str:
        session = await open_session(CODEX, launched(tmp_path, table=table, resume="old", fork=fork), heard, allow_all)
        await session.end(gentle=False)
        return session.ref

    assert asyncio.run(story()) == ref
    methods = [json.loads(line)["method"] for line in heard.lines("remuda")]
    assert [method for method in methods if method.startswith("thread/")] == tried


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"initialize": [{"id": "asked", "error": {"code": 1, "message": "too old"}}]}, "too old"),
        ({"thread/start": [{"id": "asked", "error": {"code": 1, "message": "no provider"}}]}, "no provider"),
        ({"thread/start": [{"id": "asked", "result": {"thread": {}}}]}, "without an id"),
        ({"thread/start": [{"id": "asked", "result": {}}]}, "something else"),
    ],
)
def test_a_program_that_will_not_open_a_conversation_says_why(
    tmp_path: Path, table: dict[str, list[Any]], words: str
) -> None:
    with pytest.raises(AgentFault, match=words):
        one_turn(launched(tmp_path, table=table))


def test_a_program_that_does_not_answer_is_given_up_and_killed(tmp_path: Path) -> None:
    heard = Recorder()
    launch = launched(tmp_path, table={"initialize": []})

    async def story() -> None:
        opening = asyncio.create_task(open_session(CODEX, launch, heard, allow_all, patience=1.5))
        await until(lambda: bool(heard.lines("stderr")) or opening.done())
        await opening

    with pytest.raises(AgentFault, match=r"did not start within 1.5 s"):
        asyncio.run(story())
    assert not alive(int(heard.lines("stderr")[0]))


# How it is started


def test_it_is_started_with_a_model_at_an_address(tmp_path: Path) -> None:
    argv, _ = command(CODEX, launched(tmp_path, options=(("base_url", "http://127.0.0.1:1/v1"), ("max_retries", "0"))))
    settings = dict(part.split("=", 1) for flag, part in pairwise(argv) if flag == "-c")
    assert argv[0] == "codex"
    assert settings["model_provider"] == '"remuda"'
    assert settings["model_providers.remuda.base_url"] == '"http://127.0.0.1:1/v1"'
    assert settings["model_providers.remuda.request_max_retries"] == "0"
    assert settings["analytics.enabled"] == "false"
    assert argv[-3:] == ("--disable", "plugins", "app-server")


def test_it_is_started_with_a_provider_of_the_users_own_settings(tmp_path: Path) -> None:
    argv, _ = command(CODEX, launched(tmp_path, options=(("provider", "azure"),)))
    assert 'model_provider="azure"' in argv


def test_a_conversation_is_opened_with_what_the_launch_says(tmp_path: Path) -> None:
    options = (("sandbox", "read-only"), ("approval_policy", "never"))
    params = thread(launched(tmp_path, model="big", instructions="Be brief.", options=options), "thread/start")
    assert params == {
        "cwd": str(tmp_path),
        "model": "big",
        "developerInstructions": "Be brief.",
        "sandbox": "read-only",
        "approvalPolicy": "never",
    }


def test_everything_is_asked_for_unless_the_options_say_otherwise(tmp_path: Path) -> None:
    params = thread(launched(tmp_path, resume="old"), "thread/resume")
    assert (params["approvalPolicy"], params["sandbox"]) == ("untrusted", "workspace-write")
    assert (params["threadId"], params["excludeTurns"]) == ("old", True)


def test_secrets_of_tool_servers_are_in_its_environment_and_not_in_what_we_tell_it(tmp_path: Path) -> None:
    servers = (
        McpServer("parrot", command=("parrot", "--loud"), env=(("TOKEN", "one-secret"),)),
        McpServer("owl", url="http://127.0.0.1:1/mcp", headers=(("X-Token", "another-secret"),)),
    )
    launch = launched(tmp_path, mcp_servers=servers)
    argv, env = command(CODEX, launch)
    config = thread(launch, "thread/start")["config"]["mcp_servers"]
    assert config["parrot"] == {"command": "parrot", "args": ["--loud"], "env_vars": ["TOKEN"]}
    assert config["owl"] == {"url": "http://127.0.0.1:1/mcp", "env_http_headers": {"X-Token": "REMUDA_OWL_X_TOKEN"}}
    assert (env["TOKEN"], env["REMUDA_OWL_X_TOKEN"]) == ("one-secret", "another-secret")
    assert "-secret" not in json.dumps([argv, config])


def test_tool_servers_that_want_one_variable_with_two_values_are_refused(tmp_path: Path) -> None:
    servers = tuple(McpServer(name, command=("x",), env=(("TOKEN", name),)) for name in ("parrot", "owl"))
    with pytest.raises(Invalid, match="TOKEN"):
        command(CODEX, launched(tmp_path, mcp_servers=servers))


def test_an_option_that_it_does_not_have_is_refused_with_the_nearest_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        command(CODEX, launched(tmp_path, options=(("sandbx", "x"),)))
    assert caught.value.possible[0] == "sandbox"
