"""The ACP client against programs that break the rules of the protocol."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from adapters.agent_kit import WITHIN, Recorder, Undecided, alive, allow_all, launch_in
from adapters.puppet import DONE, OPENED, puppet
from remuda.agents import Answered, Asked, McpServer, Text, ToolCall, TurnResult, Wire
from remuda.agents.acp import AcpSession, open_session
from remuda.agents.quirks import PLAIN, Quirks
from remuda.domain.errors import AgentFault, Conflict
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from waiting import until


def update(**fields: object) -> dict[str, object]:
    return {"method": "session/update", "params": {"sessionId": "s1", "update": fields}}


def says(text: str) -> dict[str, object]:
    return update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def one_turn(folder: Path, argv: list[str], heard: Recorder | None = None, **fields: object) -> TurnResult:
    async def story() -> TurnResult:
        session = await open_session(argv, launch_in(folder, **fields), heard or Recorder(), allow_all, patience=WITHIN)
        try:
            return await session.prompt("go")
        finally:
            await session.end(gentle=False)

    return asyncio.run(story())


def test_the_raw_line_is_heard_before_its_meaning(tmp_path: Path) -> None:
    heard = Recorder()
    one_turn(tmp_path, puppet(session__prompt=[says("hello"), DONE]), heard)
    at = heard.updates.index(Text("hello"))
    before = heard.updates[at - 1]
    assert isinstance(before, Wire)
    assert '"hello"' in before.line


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", Outcome.COMPLETED),
        ("max_tokens", Outcome.COMPLETED),
        ("max_turn_requests", Outcome.COMPLETED),
        ("refusal", Outcome.FAILED),
        ("cancelled", Outcome.FAILED),
        ("unheard_of", Outcome.FAILED),
    ],
)
def test_each_stop_reason_has_its_outcome(tmp_path: Path, reason: str, outcome: Outcome) -> None:
    result = one_turn(tmp_path, puppet(session__prompt=[{"id": "asked", "result": {"stopReason": reason}}]))
    assert (result.outcome, result.stop_reason) == (outcome, reason)
    assert bool(result.error) == (outcome is Outcome.FAILED)


def test_an_error_to_the_prompt_fails_the_turn_with_its_message(tmp_path: Path) -> None:
    error = {"id": "asked", "error": {"code": -32603, "message": "out of credit"}}
    expected = TurnResult(Outcome.FAILED, "error", "out of credit", Failure.MODEL_ERROR)
    assert one_turn(tmp_path, puppet(session__prompt=[error])) == expected


def test_a_line_that_is_not_json_is_a_fault_and_still_on_the_wire_log(tmp_path: Path) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault, match="Segmentation fault"):
        one_turn(tmp_path, puppet(session__prompt=["Segmentation fault"]), heard)
    assert "Segmentation fault" in heard.lines("agent")


def test_permission_is_given_once(tmp_path: Path) -> None:
    heard = Recorder()
    options = [
        {"optionId": "no", "kind": "reject_once", "name": "No"},
        {"optionId": "always", "kind": "allow_always", "name": "Always"},
        {"optionId": "once", "kind": "allow_once", "name": "Once"},
    ]
    ask = {"id": "q1", "method": "session/request_permission", "params": {"options": options}}
    one_turn(tmp_path, puppet(session__prompt=[ask, DONE]), heard)
    assert json.loads(heard.lines("remuda")[-1]) == {
        "jsonrpc": "2.0",
        "id": "q1",
        "result": {"outcome": {"outcome": "selected", "optionId": "once"}},
    }


def test_a_request_that_we_do_not_serve_is_answered_as_unknown(tmp_path: Path) -> None:
    heard = Recorder()
    one_turn(tmp_path, puppet(session__prompt=[{"id": 9, "method": "fs/read_text_file", "params": {}}, DONE]), heard)
    assert json.loads(heard.lines("remuda")[-1])["error"]["code"] == -32601


def test_notifications_and_updates_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    strange = [{"method": "_vendor/thing", "params": {}}, update(sessionUpdate="plan", entries=[]), update(odd=1)]
    assert one_turn(tmp_path, puppet(session__prompt=[*strange, DONE])).outcome is Outcome.COMPLETED


def test_an_agent_of_another_protocol_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="version 7"):
        one_turn(tmp_path, puppet(initialize=[{"id": "asked", "result": {"protocolVersion": 7}}]))


def test_an_agent_that_wants_a_login_says_so(tmp_path: Path) -> None:
    error = {"id": "asked", "error": {"code": -32000, "message": "Authentication required"}}
    with pytest.raises(AgentFault, match="Authentication required"):
        one_turn(tmp_path, puppet(session__new=[error]))


def test_an_agent_that_does_not_answer_is_given_up_and_killed(tmp_path: Path) -> None:
    code = "import os,sys,time; print('asleep', os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"
    heard = Recorder()

    async def story() -> None:
        opening = asyncio.create_task(
            open_session([sys.executable, "-I", "-S", "-c", code], launch_in(tmp_path), heard, allow_all, patience=1.0)
        )
        await until(lambda: bool(heard.lines("stderr")) or opening.done())
        await opening

    with pytest.raises(AgentFault, match=r"did not start within 1 s(.|\n)*asleep"):
        asyncio.run(story())
    assert not alive(int(heard.lines("stderr")[0].split()[1]))


def test_giving_up_on_the_start_leaves_no_process(tmp_path: Path) -> None:
    heard = Recorder()
    code = "import os,sys,time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"

    async def story() -> None:
        argv = [sys.executable, "-I", "-S", "-c", code]
        opening = asyncio.create_task(open_session(argv, launch_in(tmp_path), heard, allow_all))
        await until(lambda: bool(heard.lines("stderr")))
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not alive(int(heard.lines("stderr")[0]))

    asyncio.run(story())


def welcome(**capabilities: object) -> dict[str, object]:
    return {"id": "asked", "result": {"protocolVersion": 1, "agentCapabilities": capabilities}}


CAN_RESUME = welcome(loadSession=True, sessionCapabilities={"resume": {}})
CAN_LOAD = welcome(loadSession=True)
UNKNOWN = {"id": "asked", "error": {"code": -32002, "message": "unknown session"}}
EMPTY = {"id": "asked", "result": None}


@pytest.mark.parametrize(
    ("replies", "asked", "ref"),
    [
        ({"initialize": [CAN_RESUME], "session__resume": [EMPTY]}, ["session/resume"], "old"),
        ({"initialize": [CAN_LOAD], "session__load": [EMPTY]}, ["session/load"], "old"),
        ({}, ["session/new"], "s1"),
        ({"initialize": [CAN_LOAD], "session__load": [UNKNOWN]}, ["session/load", "session/new"], "s1"),
    ],
    ids=["resume", "load", "neither", "forgotten"],
)
def test_a_conversation_is_resumed_by_the_best_way_the_agent_has(
    tmp_path: Path, replies: dict[str, list[object]], asked: list[str], ref: str
) -> None:
    heard = Recorder()

    async def story() -> str:
        session = await open_session(puppet(**replies), launch_in(tmp_path, resume="old"), heard, allow_all)
        await session.end(gentle=False)
        return session.ref

    assert asyncio.run(story()) == ref
    assert [json.loads(line)["method"] for line in heard.lines("remuda")][1:] == asked


def opening(folder: Path, argv: list[str], quirks: Quirks = PLAIN, **fields: object) -> list[dict[str, object]]:
    """What is asked of the agent, after it has said who it is, to open a session."""
    heard = Recorder()

    async def story() -> None:
        launch = launch_in(folder, **fields)
        session = await open_session(argv, launch, heard, allow_all, WITHIN, quirks)
        await session.end(gentle=False)

    asyncio.run(story())
    return [json.loads(line) for line in heard.lines("remuda")][1:]


def test_a_fork_is_a_new_conversation_that_goes_on_from_the_old(tmp_path: Path) -> None:
    can = welcome(loadSession=True, sessionCapabilities={"fork": {}})
    asked = opening(tmp_path, puppet(initialize=[can], session__fork=[OPENED]), resume="old", fork=True)
    assert [each["method"] for each in asked] == ["session/fork"]


def test_a_fork_that_the_agent_does_not_offer_is_a_fault_and_not_something_else(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="cannot fork") as caught:
        opening(tmp_path, puppet(initialize=[CAN_RESUME]), resume="old", fork=True)
    assert caught.value.failure is Failure.REFUSED


def test_an_agent_that_forks_without_saying_so_is_asked_to(tmp_path: Path) -> None:
    argv = puppet(session__fork=[OPENED])
    asked = opening(tmp_path, argv, Quirks(forks_unasked=True), resume="old", fork=True)
    assert [each["method"] for each in asked] == ["session/fork"]


SERVERS = (
    McpServer("local", ("serve", "--fast"), env=(("KEY", "secret"),)),
    McpServer("remote", url="http://tools", headers=(("Authorization", "secret"),)),
)


def test_tool_servers_are_given_to_the_agent_and_their_secrets_stay_out_of_the_transcript(tmp_path: Path) -> None:
    (new,) = opening(tmp_path, puppet(initialize=[welcome(mcpCapabilities={"http": True})]), mcp_servers=SERVERS)
    assert new["params"] == {
        "cwd": str(tmp_path),
        "mcpServers": [
            {"name": "local", "command": "serve", "args": ["--fast"], "env": [{"name": "KEY", "value": "…"}]},
            {
                "type": "http",
                "name": "remote",
                "url": "http://tools",
                "headers": [{"name": "Authorization", "value": "…"}],
            },
        ],
    }


def test_a_tool_server_over_http_is_a_fault_for_an_agent_that_cannot_call_it(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="remote"):
        opening(tmp_path, puppet(), mcp_servers=SERVERS)


MODES = {"id": "asked", "result": {"sessionId": "s1", "modes": {"currentModeId": "auto"}}}
SET = {"id": "asked", "result": {}}
WAYS = Quirks(ask_mode="approve", bypass_mode="auto")


@pytest.mark.parametrize(
    ("options", "mode"), [((), ["approve"]), ((("permissions", "bypass"),), [])], ids=["ask", "already bypassing"]
)
def test_it_is_put_into_the_mode_in_which_it_asks_unless_it_is_in_the_right_one(
    tmp_path: Path, options: tuple[tuple[str, str], ...], mode: list[str]
) -> None:
    argv = puppet(session__new=[MODES], session__set_mode=[SET])
    _, *then = opening(tmp_path, argv, WAYS, options=options)
    assert [each["params"] for each in then] == [{"sessionId": "s1", "modeId": each} for each in mode]


def test_an_agent_that_will_not_ask_is_not_let_loose(tmp_path: Path) -> None:
    no = {"id": "asked", "error": {"code": -32602, "message": "Invalid mode"}}
    with pytest.raises(AgentFault, match="mode 'approve': Invalid mode"):
        opening(tmp_path, puppet(session__new=[MODES], session__set_mode=[no]), WAYS)


@pytest.mark.parametrize(
    ("told", "request_"),
    [
        ({"models": {"currentModelId": "a"}}, ("session/set_model", {"sessionId": "s1", "modelId": "b"})),
        (
            {"configOptions": [{"id": "model", "currentValue": "a"}]},
            ("session/set_config_option", {"sessionId": "s1", "configId": "model", "value": "b"}),
        ),
    ],
    ids=["models", "options"],
)
def test_a_model_is_chosen_in_the_way_that_the_agent_has(
    tmp_path: Path, told: dict[str, object], request_: tuple[str, dict[str, str]]
) -> None:
    new = {"id": "asked", "result": {"sessionId": "s1", **told}}
    argv = puppet(session__new=[new], session__set_model=[SET], session__set_config_option=[SET])
    _, chosen = opening(tmp_path, argv, model="b")
    assert (chosen["method"], chosen["params"]) == request_


def test_a_model_that_cannot_be_chosen_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="does not let others choose its model"):
        opening(tmp_path, puppet(), model="b")


def test_history_that_comes_after_the_session_is_open_is_not_new_output_either(tmp_path: Path) -> None:
    heard = Recorder()
    argv = puppet(initialize=[CAN_LOAD], session__load=[EMPTY, says("long ago")], session__prompt=[says("now"), DONE])

    async def story() -> None:
        launch = launch_in(tmp_path, resume="old")
        session = await open_session(argv, launch, heard, allow_all, WITHIN, Quirks(replays_late=True))
        await session.prompt("go")
        await session.end(gentle=False)

    asyncio.run(story())
    assert heard.text() == "now"


def test_a_tool_is_heard_of_when_the_agent_asks_for_it_and_the_question_has_its_name(tmp_path: Path) -> None:
    heard, questions = Recorder(), list[Asked]()

    async def ask(asked: Asked) -> Answered:
        questions.append(asked)
        return Answered(allow=True)

    tool = {"toolCallId": "write_file__1", "title": "Writing", "kind": "edit", "locations": [{"path": "/a"}]}
    params = {"options": [], "toolCall": tool}
    asking = {"id": "q", "method": "session/request_permission", "params": params}

    async def story() -> None:
        argv = puppet(session__prompt=[asking], answer=[{"id": 3, "result": {"stopReason": "end_turn"}}])
        quirks = Quirks(tool_in_id=re.compile("(.+)__"))
        session = await open_session(argv, launch_in(tmp_path), heard, ask, WITHIN, quirks)
        await session.prompt("go")
        await session.end(gentle=False)

    asyncio.run(story())
    assert questions == [Asked("write_file__1", "write_file", "", ("/a",), "Writing")]
    assert heard.tools() == [ToolCall("write_file__1", "write_file", "started", "Writing")]


def test_a_question_that_is_open_when_the_turn_is_cancelled_is_answered_so_and_nobody_thinks_about_it_longer(
    tmp_path: Path,
) -> None:
    heard, person = Recorder(), Undecided()
    asking = {"id": "q", "method": "session/request_permission", "params": {"options": [], "toolCall": {}}}

    async def story() -> TurnResult:
        argv = puppet(session__prompt=[asking], answer=[{"id": 3, "result": {"stopReason": "cancelled"}}])
        session = await open_session(argv, launch_in(tmp_path), heard, person, WITHIN)
        turn = asyncio.create_task(session.prompt("go"))
        await until(lambda: person.asked == 1)
        await session.cancel()
        async with asyncio.timeout(WITHIN):
            result = await turn
        await session.end(gentle=False)
        return result

    assert asyncio.run(story()).failure is Failure.CANCELLED
    assert person.withdrawn == 1
    last = json.loads(heard.lines("remuda")[-1])
    assert (last["id"], last["result"]) == ("q", {"outcome": {"outcome": "cancelled"}})


def test_replayed_history_is_not_new_output(tmp_path: Path) -> None:
    heard = Recorder()
    replies: dict[str, list[object]] = {
        "session__load": [says("long ago"), EMPTY],
        "session__prompt": [says("now"), DONE],
    }
    one_turn(tmp_path, puppet(initialize=[CAN_LOAD], **replies), heard, resume="old")
    assert heard.text() == "now"


def test_money_spent_before_the_resume_is_not_counted_again(tmp_path: Path) -> None:
    heard = Recorder()
    old = update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 2.5, "currency": "USD"})
    new = update(sessionUpdate="usage_update", used=20, size=100, cost={"amount": 2.75, "currency": "USD"})
    argv = puppet(initialize=[CAN_LOAD], session__load=[old, EMPTY], session__prompt=[new, DONE])
    one_turn(tmp_path, argv, heard, resume="old")
    assert [call.usage.cost_nanousd for call in heard.calls()] == [250_000_000]


def test_instructions_go_ahead_of_the_first_prompt_only(tmp_path: Path) -> None:
    heard = Recorder()

    async def story() -> None:
        session = await open_session(puppet(), launch_in(tmp_path, instructions="Be brief."), heard, allow_all)
        await session.prompt("one")
        await session.prompt("two")
        await session.end(gentle=False)

    asyncio.run(story())
    prompts = [json.loads(line)["params"]["prompt"] for line in heard.lines("remuda")[2:]]
    assert [[block["text"] for block in blocks] for blocks in prompts] == [["Be brief.", "one"], ["two"]]


def test_one_session_runs_one_turn_at_a_time(tmp_path: Path) -> None:
    async def story() -> None:
        session: AcpSession = await open_session(puppet(session__prompt=[]), launch_in(tmp_path), Recorder(), allow_all)
        first = asyncio.create_task(session.prompt("one"))
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await session.prompt("two")
        await session.end(gentle=False)
        with pytest.raises(AgentFault, match="ended by Remuda"):
            await first

    asyncio.run(story())
