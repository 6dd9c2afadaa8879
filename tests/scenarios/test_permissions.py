"""The real scripted agent in a whole runtime: what it may do, whom it asks, and when it is given up."""

import json
from collections.abc import Callable, Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from adapters.web_kit import Site, playbook, site
from fakes import run
from remuda.domain.commands import AnswerQuestion, SpawnAgent
from remuda.domain.errors import Invalid
from remuda.domain.events import (
    AnswerGiven,
    Event,
    QuestionAnswered,
    QuestionAsked,
    RestBegan,
    RestEnded,
    SessionEnded,
    ToolCalled,
    TurnEnded,
    TurnStarted,
)
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import Status
from remuda.domain.permission import Policy
from remuda.domain.state import Outcome
from remuda.runtime.config import Settings, load_settings
from remuda.runtime.nearest import keys_of

Story = Callable[[Site], Coroutine[Any, Any, None]]


def told(folder: Path, settings: str, story: Story) -> None:
    (folder / "remuda.toml").write_text(settings)

    async def on_site() -> None:
        async with site(folder) as here:
            await story(here)

    run(on_site())


async def log_of(here: Site, *kinds: type[Event]) -> list[Any]:
    return [record.event for record in await here.runtime.store.read(0, 10_000) if isinstance(record.event, kinds)]


async def spawn(here: Site, *steps: object, name: str = "ada", parent: str = "", role: str = "worker") -> None:
    await here.runtime.spawn(SpawnAgent(role, "scripted", name=name, parent=parent))
    if steps:
        await here.runtime.send(name, playbook(*steps))


def ask(tool: str, path: str, mark: str) -> dict[str, object]:
    """Leaves a file that says whether it was allowed."""
    return {
        "ask": {"tool": tool, "paths": [path]},
        "do": [{"write": {"path": f"{mark}.allowed", "text": ""}}],
        "otherwise": [{"write": {"path": f"{mark}.denied", "text": ""}}],
    }


def marks(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix in (".allowed", ".denied")}


# --- rules ---


def test_remudas_own_files_are_nobodys_to_change_whatever_the_rules_say(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        paths = {"log": ".remuda/remuda.db", "folder": ".remuda", "rules": "remuda.toml", "other": "remuda.txt"}
        await spawn(here, *(ask("Write", path, mark) for mark, path in paths.items()))
        await here.until(lambda: here.runtime.agent("ada").turns == 1)
        assert marks(tmp_path) == {"log.denied", "folder.denied", "rules.denied", "other.allowed"}

    told(tmp_path, '[roles.worker]\nallow = ["Write"]\n', story)


def test_by_default_files_of_the_project_may_be_written_and_others_not_and_nobody_is_asked(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "way-out").symlink_to(tmp_path)

    async def story(here: Site) -> None:
        await spawn(
            here,
            ask("write", str(root / "a.py"), "inside"),
            ask("write", "src/a.py", "relative"),
            ask("write", str(tmp_path / "a.py"), "outside"),
            ask("write", str(tmp_path / "project-evil/a.py"), "prefix"),
            ask("write", "../a.py", "above"),
            ask("write", "way-out/a.py", "linked"),
        )
        await here.idle("ada", 1)
        assert await log_of(here, QuestionAsked) == []

    told(root, "", story)
    inside = {"inside.allowed", "relative.allowed"}
    assert marks(root) == {*inside, "outside.denied", "prefix.denied", "above.denied", "linked.denied"}


def test_each_role_has_rules_of_its_own(tmp_path: Path) -> None:
    settings = f"""
[roles.worker]
deny = ["bash"]
allow = ["write:{tmp_path.parent}/shared-*"]

[roles.crew]
default = "deny"
"""

    async def story(here: Site) -> None:
        await spawn(
            here, ask("bash", "x", "worker-bash"), ask("write", f"{tmp_path.parent}/shared-notes", "worker-shared")
        )
        await spawn(here, ask("write", "x", "crew-write"), name="bob", role="crew")
        await here.idle("ada", 1)
        await here.idle("bob", 1)

    told(tmp_path, settings, story)
    assert marks(tmp_path) == {"worker-bash.denied", "worker-shared.allowed", "crew-write.denied"}


# --- questions ---

ASKS = '[roles.worker]\nask = ["bash"]\n'


def test_a_question_waits_is_answered_and_the_same_turn_goes_on(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, ask("bash", "x", "bash"))
        await here.until(lambda: bool(here.runtime.agent("ada").questions))
        (question,) = here.runtime.agent("ada").questions
        assert question.allow is None
        assert here.runtime.agent("ada").status is Status.WORKING
        await here.runtime.submit(AnswerQuestion("ada", question.id, True, "user", "go on"))
        await here.idle("ada", 1)
        (turn,) = await log_of(here, TurnEnded)
        assert turn.outcome is Outcome.COMPLETED
        assert [type(event) for event in await log_of(here, QuestionAsked, QuestionAnswered, AnswerGiven)] == [
            QuestionAsked,
            QuestionAnswered,
            AnswerGiven,
        ]
        assert here.runtime.agent("ada").questions == ()

    told(tmp_path, ASKS, story)
    assert marks(tmp_path) == {"bash.allowed"}


def test_the_same_question_again_in_one_turn_is_answered_as_before_without_asking_anybody(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, *[ask("bash", "x", f"bash-{number}") for number in range(20)])
        await here.until(lambda: bool(here.runtime.agent("ada").questions))
        (question,) = here.runtime.agent("ada").questions
        await here.runtime.submit(AnswerQuestion("ada", question.id, False, "user"))
        await here.idle("ada", 1)
        assert len(await log_of(here, QuestionAnswered)) == 1
        assert len(await log_of(here, AnswerGiven)) == 20

    told(tmp_path, ASKS, story)
    assert marks(tmp_path) == {f"bash-{number}.denied" for number in range(20)}


def test_the_coordinator_is_told_of_a_question_and_answers_it_with_its_own_command(tmp_path: Path) -> None:
    which = "remuda answer --json | grep -o '\"question\":\"[0-9a-f]*' | cut -d'\"' -f4"
    book = {
        "turns": [
            {"when": "asks whether it may use bash", "do": [{"run": ["sh", "-c", f"remuda answer $({which}) --allow"]}]}
        ]
    }
    (tmp_path / "book.json").write_text(json.dumps(book))
    options = (("playbook", str(tmp_path / "book.json")),)

    async def story(here: Site) -> None:
        await here.runtime.spawn(SpawnAgent("coordinator", "scripted", name="boss", options=options))
        await spawn(here, ask("bash", "x", "bash"), parent="boss")
        await here.idle("ada", 1)
        await here.idle("boss", 1)
        (answered,) = await log_of(here, QuestionAnswered)
        assert (answered.by, answered.allow) == ("boss", True)
        (call,) = [event for event in await log_of(here, ToolCalled) if event.agent == "boss"]
        assert call.ok, call

    told(tmp_path, ASKS, story)
    assert marks(tmp_path) == {"bash.allowed"}


def test_another_agent_may_not_answer(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, ask("bash", "x", "bash"))
        await spawn(here, {"say": "hello\n"}, name="bob")
        await here.idle("bob", 1)
        await here.until(lambda: bool(here.runtime.agent("ada").questions))
        (question,) = here.runtime.agent("ada").questions
        path = f"/v1/agents/ada/questions/{question.id}"
        token = here.runtime.world.live["bob"].token
        refused = await here.post(path, {"allow": True}, Authorization=f"Bearer {token}")
        assert (refused.status, "may not answer" in refused.json["message"]) == (409, True)
        assert (await here.post(path, {"allow": False, "why": "no"})).json == {"questions": []}
        await here.idle("ada", 1)

    told(tmp_path, ASKS, story)
    assert marks(tmp_path) == {"bash.denied"}


# --- silence ---


def test_an_agent_that_hangs_is_given_up_each_time_and_fails_in_the_end_with_the_evidence(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, {"say": "I look into it\n"}, {"hang": True})
        await here.until(lambda: here.runtime.agent("ada").status is Status.FAILED)
        ended = await log_of(here, SessionEnded)
        assert [event.failure for event in ended] == [Failure.SILENT] * 3
        for event in ended:
            assert event.detail.startswith("it has said and done nothing for 0.5 s")
            assert "I look into it" in event.detail
        assert here.runtime.world.live == {}

    told(tmp_path, "[turns]\nsilence_seconds = 0.5\n[watch.stall]\nsilences = 9\n", story)


def test_a_long_tool_call_and_an_open_question_are_not_silence(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, {"run": ["sleep", "2.5"]}, ask("bash", "x", "bash"))
        await here.until(lambda: bool(here.runtime.agent("ada").questions))
        (question,) = here.runtime.agent("ada").questions
        await spawn(here, {"run": ["sleep", "2.5"]}, name="bob")
        await here.idle("bob", 1)  # a person thinks it over for as long
        await here.runtime.submit(AnswerQuestion("ada", question.id, True, "user"))
        await here.idle("ada", 1)
        assert await log_of(here, SessionEnded) == []

    told(tmp_path, ASKS + "[turns]\nsilence_seconds = 1.0\n", story)
    assert marks(tmp_path) == {"bash.allowed"}


# --- patience ---


def test_a_turn_that_is_not_served_is_taken_up_after_the_rest_in_a_fresh_session_and_in_order(tmp_path: Path) -> None:
    failing = {"fail": {"message": "slow down", "kind": "rate_limited", "retry_after": 1}}
    book = {"turns": [{"once": True, "do": [failing]}, {"do": [{"recall": True}]}]}
    (tmp_path / "book.json").write_text(json.dumps(book))
    options = (("playbook", str(tmp_path / "book.json")),)

    async def story(here: Site) -> None:
        await here.runtime.spawn(SpawnAgent("worker", "scripted", name="ada", options=options))
        await here.runtime.send("ada", "first")
        await here.runtime.send("ada", "second")
        await here.idle("ada", 3)
        records = await here.runtime.store.read(0, 10_000)
        began = next(record for record in records if isinstance(record.event, RestBegan))
        over = next(record for record in records if isinstance(record.event, RestEnded))
        assert over.at >= began.at + 1.0
        turns = [record for record in records if isinstance(record.event, TurnStarted)]
        assert [record.event.epoch for record in turns if isinstance(record.event, TurnStarted)] == [1, 2, 2]
        assert turns[1].at >= over.at
        ended = [(event.message_id, event.outcome) for event in await log_of(here, TurnEnded)]
        first, second = ended[0][0], ended[2][0]
        assert ended == [(first, Outcome.LIMITED), (first, Outcome.COMPLETED), (second, Outcome.COMPLETED)]
        assert here.runtime.lines("ada", 1) == ["I have seen 3 prompts in this conversation."]

    told(tmp_path, "", story)


def test_any_other_failure_answers_the_message_and_says_what_it_was(tmp_path: Path) -> None:
    async def story(here: Site) -> None:
        await spawn(here, {"fail": {"message": "prompt is too long: 9 tokens > 8 maximum", "kind": "context_exceeded"}})
        await here.idle("ada", 1)
        (turn,) = await log_of(here, TurnEnded)
        assert (turn.outcome, turn.failure) == (Outcome.FAILED, Failure.CONTEXT_EXCEEDED)
        assert "prompt is too long" in turn.error
        assert here.runtime.agent("ada").queue == ()

    told(tmp_path, "", story)


# --- settings ---


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_silence_that_cannot_be_is_refused(tmp_path: Path, seconds: str) -> None:
    (tmp_path / "remuda.toml").write_text(f"[turns]\nsilence_seconds = {seconds}\n")
    with pytest.raises(Invalid, match=r"turns\.silence_seconds must be more than 0"):
        load_settings(tmp_path / "remuda.toml")


def test_a_rule_under_a_wrong_key_is_refused_with_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "remuda.toml").write_text('[roles.worker]\nalow = ["bash"]\n')
    with pytest.raises(Invalid, match=r"no setting 'roles\.NAME\.alow'; did you mean 'roles\.NAME\.allow'\?"):
        load_settings(tmp_path / "remuda.toml")


def test_a_ruling_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "remuda.toml").write_text('[roles.worker]\ndefault = "maybe"\n')
    with pytest.raises(Invalid, match="maybe"):
        load_settings(tmp_path / "remuda.toml")


def test_every_part_of_a_policy_can_be_set() -> None:
    parts = {key.rpartition(".")[2] for key in keys_of(Settings) if key.startswith("roles.NAME.")}
    assert {field.name for field in fields(Policy)} - {"off_limits"} <= parts  # those are nobody's to open
