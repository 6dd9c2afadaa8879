"""The scripted agent, driven by our own client: each kind of step, playbooks and memory."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.agent_kit import WITHIN, Recorder, alive, scripted, scripted_options, steps
from remuda.agents import TurnResult
from remuda.agents.catalog import CATALOG, command
from remuda.agents.scripted.playbook import STEPS, BadPlaybook, check
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from waiting import until


def play(folder: Path, *prompts: str, heard: Recorder | None = None, **fields: object) -> list[TurnResult]:
    async def story() -> list[TurnResult]:
        async with scripted(folder, heard or Recorder(), **fields) as session:
            return [await session.prompt(prompt) for prompt in prompts]

    return asyncio.run(story())


def test_without_a_playbook_it_greets_as_scripted_and_echoes_the_first_line(tmp_path: Path) -> None:
    heard = Recorder()
    (result,) = play(tmp_path, "fix the parser\nplease", heard=heard)
    assert result.outcome is Outcome.COMPLETED
    assert "scripted" in heard.text()
    assert heard.text().endswith("You said: fix the parser")


def test_what_it_says_and_thinks_comes_in_several_pieces_that_join_exactly(tmp_path: Path) -> None:
    heard = Recorder()
    text = "one two  three\nfour five six seven eight nine ten eleven — zwölf "
    play(tmp_path, steps({"say": text}, {"think": text}), heard=heard)
    assert (heard.text(), heard.thoughts()) == (text, text)
    assert sum("agent_message_chunk" in line for line in heard.lines("agent")) > 1


def test_a_command_really_runs_in_the_folder_with_the_declared_environment(tmp_path: Path) -> None:
    heard = Recorder()
    play(tmp_path, steps({"run": ["sh", "-c", "echo $WHO > here.txt; cat here.txt"]}), heard=heard, env={"WHO": "ada"})
    assert (tmp_path / "here.txt").read_text() == "ada\n"
    assert [(tool.name, tool.status, tool.result) for tool in heard.tools()] == [
        ("run", "started", ""),
        ("run", "completed", "ada\n"),
    ]


def test_a_command_that_fails_or_is_missing_is_a_failed_tool_and_not_a_failed_turn(tmp_path: Path) -> None:
    heard = Recorder()
    run = steps({"run": ["sh", "-c", "echo oops >&2; exit 3"]}, {"run": ["no-such-program"]})
    assert play(tmp_path, run, heard=heard)[0].outcome is Outcome.COMPLETED
    failed = [tool.result for tool in heard.tools() if tool.status == "failed"]
    assert failed[0] == "oops\n(exit code 3)"
    assert "no-such-program" in failed[1]


def test_a_command_is_over_when_it_exits_not_when_its_children_let_go(tmp_path: Path) -> None:
    heard = Recorder()
    play(tmp_path, steps({"run": ["sh", "-c", "echo first; sleep 600 & exit 0"]}), heard=heard)
    assert heard.tools()[-1].result == "first\n"


def test_a_file_is_written_inside_the_folder_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    heard = Recorder()
    wanted = ["deep/notes.txt", "../outside/a", str(outside / "b"), "link/c"]
    writes: list[dict[str, object]] = [{"write": {"path": path, "text": "hi"}} for path in wanted]
    play(inside, steps(*writes), heard=heard)
    assert (inside / "deep" / "notes.txt").read_text() == "hi"
    assert list(outside.iterdir()) == []
    assert [tool.status for tool in heard.tools()][1::2] == ["completed", "failed", "failed", "failed"]


def test_a_pretended_tool_call_has_the_scripted_result(tmp_path: Path) -> None:
    heard = Recorder()
    play(tmp_path, steps({"tool": {"name": "search", "arguments": {"q": "x"}, "result": {"hits": 2}}}), heard=heard)
    done = heard.tools()[-1]
    assert (done.name, done.arguments, json.loads(done.result)) == ("search", '{"q":"x"}', {"hits": 2})


def test_usage_adds_up_call_by_call(tmp_path: Path) -> None:
    heard = Recorder()
    tokens = {"input": 1200, "output": 34, "cache_read": 100, "cache_creation": 7, "context": 1500, "window": 9000}
    use = {"use": {**tokens, "cost_usd": 0.0011}}
    play(tmp_path, steps({"loop": {"times": 5, "do": [use]}}), heard=heard)
    calls = heard.calls()
    assert [call.number for call in calls] == [1, 2, 3, 4, 5]
    used = [call.usage for call in calls]
    assert sum(each.input_tokens for each in used) == 6000
    assert sum(each.output_tokens for each in used) == 170
    assert sum(each.cache_read_tokens for each in used) == 500
    assert sum(each.cache_creation_tokens for each in used) == 35
    assert sum(each.cost_nanousd or 0 for each in used) == 5_500_000
    assert (used[-1].context_tokens, used[-1].context_window) == (1500, 9000)


def test_usage_without_a_price_is_unpriced(tmp_path: Path) -> None:
    heard = Recorder()
    play(tmp_path, steps({"use": {"input": 1}}), heard=heard)
    assert [call.usage.cost_nanousd for call in heard.calls()] == [None]


@pytest.mark.parametrize("step", [{"hang": True}, {"run": ["sleep", "600"]}, {"hang": 600}])
def test_a_cancel_ends_the_turn_and_the_session_goes_on(tmp_path: Path, step: dict[str, object]) -> None:
    heard = Recorder()

    async def story() -> None:
        async with scripted(tmp_path, heard) as session, asyncio.timeout(WITHIN):
            turn = asyncio.create_task(session.prompt(steps({"say": "here"}, step, {"say": "never"})))
            await until(lambda: "here" in heard.text())
            await session.cancel()
            result = await turn
            assert (result.outcome, result.stop_reason) == (Outcome.FAILED, "cancelled")
            assert (await session.prompt(steps({"say": " again"}))).outcome is Outcome.COMPLETED

    asyncio.run(story())
    assert heard.text() == "here again"


def test_a_cancel_right_behind_the_prompt_is_not_lost(tmp_path: Path) -> None:
    async def story() -> TurnResult:
        async with scripted(tmp_path, Recorder()) as session, asyncio.timeout(WITHIN):
            turn = asyncio.create_task(session.prompt(steps({"hang": True})))
            await asyncio.sleep(0)
            await session.cancel()
            return await turn

    assert asyncio.run(story()).stop_reason == "cancelled"


def test_a_deaf_hang_is_ended_by_force(tmp_path: Path) -> None:
    heard = Recorder()

    async def story() -> int | None:
        async with scripted(tmp_path, heard) as session, asyncio.timeout(WITHIN):
            turn = asyncio.create_task(session.prompt(steps({"hang": True, "deaf": True})))
            await until(lambda: heard.thoughts() == "Now deaf.")
            await session.cancel()
            ended = await session.end(gentle=True)
            with pytest.raises(AgentFault):
                await turn
            return ended.returncode

    assert asyncio.run(story()) == -signal.SIGKILL


@pytest.mark.parametrize(("how", "told"), [(3, "exited with code 3"), ("SIGKILL", "was killed by SIGKILL")])
def test_a_crash_is_a_fault_that_tells_how(tmp_path: Path, how: object, told: str) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault, match=told):
        play(tmp_path, steps({"say": "last words"}, {"crash": how}), heard=heard)
    assert heard.text() == "last words"


def test_a_scripted_failure_is_the_turns_error(tmp_path: Path) -> None:
    expected = TurnResult(Outcome.FAILED, "error", "out of luck", Failure.MODEL_ERROR)
    assert play(tmp_path, steps({"fail": "out of luck"})) == [expected]


def test_garbage_breaks_the_session_with_the_line_as_evidence(tmp_path: Path) -> None:
    heard = Recorder()
    with pytest.raises(AgentFault, match="panic at the disco"):
        play(tmp_path, steps({"garbage": "panic at the disco"}, {"say": "unheard"}), heard=heard)
    assert "panic at the disco" in heard.lines("agent")
    assert heard.text() == ""


def test_a_spawned_stray_dies_with_the_session(tmp_path: Path) -> None:
    heard = Recorder()
    play(tmp_path, steps({"spawn": ["sleep", "600"]}), heard=heard)
    stray = int(heard.tools()[-1].result.removeprefix("pid "))
    asyncio.run(until(lambda: not alive(stray)))


def test_the_first_entry_that_fits_is_followed_and_otherwise_the_rest(tmp_path: Path) -> None:
    book = {
        "turns": [{"when": "tests", "do": [{"say": "T"}]}, {"when": "fix", "do": [{"say": "F"}]}],
        "otherwise": [{"say": "O"}],
    }
    heard = Recorder()
    prompts = ["fix it", "fix the tests", "hello", "fix it"]
    play(tmp_path, *prompts, heard=heard, options=scripted_options(tmp_path, book))
    assert heard.text() == "FTOF"


def test_steps_in_the_prompt_win_over_the_playbook(tmp_path: Path) -> None:
    heard = Recorder()
    options = scripted_options(tmp_path, {"turns": [{"do": [{"say": "book"}]}]})
    play(tmp_path, steps({"say": "prompt"}), heard=heard, options=options)
    assert heard.text() == "prompt"


def test_an_entry_for_once_is_spent_also_after_a_crash_and_a_resume(tmp_path: Path) -> None:
    book = {"turns": [{"once": True, "do": [{"crash": "SIGKILL"}]}], "otherwise": [{"recall": True}]}
    options, heard = scripted_options(tmp_path, book), Recorder()

    async def story() -> None:
        async with scripted(tmp_path, heard, options=options) as session:
            with pytest.raises(AgentFault, match="SIGKILL"):
                await session.prompt("hello")
        async with scripted(tmp_path, heard, options=options, resume=session.ref) as again:
            assert again.ref == session.ref
            await again.prompt("hello again")

    asyncio.run(story())
    assert heard.text() == "I have seen 2 prompts in this conversation."


@pytest.mark.parametrize(
    ("book", "complaint"),
    [
        ("{", "not JSON"),
        ([], "must be an object"),
        ({"turn": []}, "unknown key 'turn'"),
        ({"turns": [{"when": "x"}]}, 'turns[0]: must be an object with "do"'),
        ({"turns": [{"do": [{"say": "a"}, {"sya": "b"}]}]}, "turns[0].do[1]: must be an object with one of say"),
        ({"otherwise": [{"run": "ls -l"}]}, "otherwise[0].run: must be a command as a list of texts"),
        ({"otherwise": [{"loop": {"times": 2, "do": [{"crash": "now"}]}}]}, "otherwise[0].loop.do[0].crash"),
        ({"otherwise": [{"use": {"inputs": 3}}]}, "otherwise[0].use"),
    ],
)
def test_a_bad_playbook_is_refused_at_the_start_with_the_place_of_the_mistake(
    tmp_path: Path, book: object, complaint: str
) -> None:
    with pytest.raises(AgentFault) as caught:
        play(tmp_path, options=scripted_options(tmp_path, book))
    assert complaint in caught.value.message
    assert "playbook.json" in caught.value.message


def test_a_playbook_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match=r"nowhere\.json: No such file"):
        play(tmp_path, options=(("playbook", str(tmp_path / "nowhere.json")),))


def test_bad_steps_in_a_prompt_fail_that_turn(tmp_path: Path) -> None:
    bad, good = play(tmp_path, "playbook: [{]", "hello")
    assert (bad.outcome, good.outcome) == (Outcome.FAILED, Outcome.COMPLETED)
    assert "not JSON" in bad.error


@pytest.mark.parametrize("kind", STEPS)
def test_every_kind_of_step_refuses_a_value_of_the_wrong_shape(kind: str) -> None:
    with pytest.raises(BadPlaybook, match=kind):
        check({"otherwise": [{kind: None}]})


def test_it_exits_when_nobody_speaks_to_it_any_more() -> None:
    done = subprocess.run(command(CATALOG["scripted"], ()), stdin=subprocess.DEVNULL, timeout=WITHIN, check=False)
    assert done.returncode == 0


def test_it_loads_nothing_of_the_runtime_and_no_slow_part_of_the_standard_library() -> None:
    argv = [sys.executable, "-X", "importtime", *command(CATALOG["scripted"], ())[1:]]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "remuda.agents.scripted.agent" in loaded
    assert not loaded & {"asyncio", "dataclasses", "typing", "subprocess", "msgspec", "remuda.domain"}
