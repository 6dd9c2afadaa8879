"""The agents at a glance, and one in full."""

from dataclasses import replace
from typing import Any

import msgspec

from remuda.domain.lifecycle import Phase, Stage, Status
from remuda.domain.state import Agent, Message, Metrics, Question, Sender, Session, Turn
from remuda.views.agent import detail, detail_text
from remuda.views.roster import chosen, roster, roster_text
from remuda.views.text import columns, moment

NOW = 1000.0


def agent(name: str = "ada", **fields: Any) -> Agent:
    return Agent(
        **{"name": name, "role": "worker", "backend": "claude", "created_at": 900.0, "active_at": 950.0, **fields}
    )


def shown(*agents: Agent, dead: bool = False, width: int | None = None, colour: bool = False) -> str:
    return roster_text(chosen({each.name: each for each in agents}, dead=dead), NOW, width=width, colour=colour)


def test_a_scripted_agent_is_never_shown_as_a_model() -> None:
    text = shown(agent(backend="scripted"))
    assert "scripted (not a model)" in text
    assert "scripted (not a model)" in detail_text(detail(agent(backend="scripted"), NOW, {}))


def test_the_dead_are_shown_only_when_asked_for_and_with_their_mark() -> None:
    agents = (agent("ada"), agent("bob", status=Status.REAPED, ended_at=990.0))
    assert "bob" not in shown(*agents)
    assert "† reaped" in shown(*agents, dead=True)


def test_no_agents_are_a_hint_and_not_an_empty_table() -> None:
    assert "remuda spawn" in shown()


def test_a_cost_that_nobody_knows_is_a_question_mark_and_one_known_in_part_a_plus() -> None:
    assert " ? " in shown(agent(metrics=Metrics(input_tokens=5, unpriced_calls=1)))
    partly = Metrics(input_tokens=5, unpriced_calls=1, cumulative_cost_nanousd=2_000_000_000)
    assert "$2.00+" in shown(agent(metrics=partly))
    assert "$2.00 " in shown(agent(metrics=partly._replace(unpriced_calls=0)))


def test_colour_comes_only_when_asked_for() -> None:
    assert "\x1b" not in shown(agent())
    assert "\x1b[2mpending\x1b[0m" in shown(agent(), colour=True)


def test_a_table_fits_the_terminal_and_is_whole_when_there_is_none() -> None:
    why = "日本語 " * 30
    narrow = shown(agent(why=why), width=110)
    assert all(columns(line) <= 110 for line in narrow.splitlines())
    assert why.strip() in shown(agent(why=why))


def test_the_columns_of_a_table_stand_below_each_other_in_any_script() -> None:
    lines = shown(agent("ada", task="日本"), agent("bob", task="x")).splitlines()
    starts = [columns(line[: line.index("100s")]) for line in lines[1:]]
    assert len(set(starts)) == 1


def test_a_reason_that_would_colour_the_screen_does_not() -> None:
    assert "\x1b" not in shown(agent(why="\x1b[31mred"))


def test_rows_are_plain_data_for_programs() -> None:
    (row,) = msgspec.json.decode(msgspec.json.encode(roster([agent(phase=Phase.IDLE)], NOW)))
    assert row["name"] == "ada"
    assert row["status"] == "pending"
    assert row["phase"] == "idle"
    assert row["age_seconds"] == 100.0
    assert row["cost_usd"] == 0.0


def test_one_agent_in_full_has_its_session_turn_queue_and_every_count() -> None:
    mail = Message("m1", Sender.USER, "user", "do it\nplease", 910.0, attempts=1)
    full = agent(
        status=Status.WORKING,
        session=Session(2, Stage.STARTED, "conv-1"),
        turn=Turn(7, mail, 940.0),
        queue=(Message("m2", Sender.AGENT, "bob", "next", 920.0),),
        metrics=Metrics(1, 2, 3, 4, 5, 6, 7_000_000_000, 8_000_000_000, 9_000_000_000, 0, 950.0),
        options=(("playbook", "p.json"),),
    )
    text = detail_text(detail(full, NOW, {}))
    for part in ("2, started, conversation conv-1", "from user (attempt 2): do it…", "from bob: next", "5 of 6"):
        assert part in text
    for cost in ("$7.00", "$8.00", "$9.00", "playbook=p.json"):
        assert cost in text
    data = msgspec.json.decode(msgspec.json.encode(detail(full, NOW, {})))
    assert data["metrics"]["cache_creation_tokens"] == 4
    assert data["turn"]["message"]["text"] == "do it\nplease"
    assert "paused" in data["possible"]


def test_one_agent_in_full_says_what_it_waits_for() -> None:
    asked = Question("q1", "bash", '{"command":"ls"}', ("/a",), "", 900.0, 1)
    denied = replace(asked, id="q2", arguments="", allow=False, answered_by="boss")
    text = detail_text(detail(agent(questions=(asked, denied), rest_until=1060.0), NOW, {}))
    assert 'q1 may it use bash? {"command":"ls"} (waits for an answer; see `remuda answer`)' in text
    assert "q2 may it use bash? /a (denied by boss)" in text
    assert f"until {moment(1060.0)}" in text
    data = msgspec.json.decode(msgspec.json.encode(detail(agent(questions=(asked,), limits=2), NOW, {})))
    assert (data["questions"][0]["id"], data["questions"][0]["allow"], data["limits"]) == ("q1", None, 2)
    assert "rests" not in detail_text(detail(agent(), NOW, {}))
