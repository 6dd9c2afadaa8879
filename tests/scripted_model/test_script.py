"""Scripts without any API: what is written in a prompt, which step is next, and what it comes to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.scripted_model.conversation import Called, Conversation, Item, Returned, Said, Tool
from remuda.scripted_model.reply import Call, Cut, Failure, Garbage, Hang, Refusal, Text, Thought, Usage
from remuda.scripted_model.script import Move, find, moves_of, perform, position, sources
from remuda.scripted_model.steps import BadScript, parse
from scripted_model.kit import script

BASH = Tool("Bash", {"properties": {"command": {"type": "string"}}})


def moves(*steps: object) -> tuple[Move, ...]:
    return moves_of(json.dumps(steps))


def played(*steps: object, items: tuple[Item, ...] = (), faults: dict[int, int] | None = None) -> tuple[object, ...]:
    reply = perform(moves(*steps)[0], Conversation("m", items, (BASH,)), faults or {}, Usage()).reply
    return (*reply.parts, reply.fault) if reply.fault else reply.parts


def test_a_prompt_without_a_mark_has_no_script() -> None:
    assert find((Said("user", "Please write a [[model]]."),)) is None


def test_only_what_a_user_wrote_is_a_script() -> None:
    marked = script({"say": "x"})
    assert find((Said("assistant", marked), Said("system", marked), Returned(marked))) is None


def test_the_last_script_counts_and_knows_its_place() -> None:
    found = find((Said("user", script({"say": "a"})), Said("assistant", "a"), Said("user", script({"say": "b"}))))
    assert found is not None
    assert (json.loads(found.source), found.prompt, found.ordinal) == ([{"say": "b"}], 2, 1)


def test_a_script_inside_of_a_script_belongs_to_it() -> None:
    inner = script({"say": "inner"})
    assert len([*sources(script({"tool": {"name": "Agent", "arguments": {"prompt": inner}}}))]) == 1


def test_brackets_and_line_breaks_in_texts_do_not_end_a_script() -> None:
    text = '[[model: ]]]] \n \\ " [[x]]'
    assert [json.loads(each) for each in sources(script({"say": text}))] == [[{"say": text}]]


def test_a_script_may_stand_over_several_lines() -> None:
    assert [json.loads(each) for each in sources('Do [[model:\n [\n  {"say": "a"}\n ]\n]] now')] == [[{"say": "a"}]]


def test_a_prompt_that_a_client_put_in_quotes_is_understood() -> None:
    quoted = '"' + script({"say": 'He said "no"\n'}).replace('"', '\\"') + '"'
    assert [json.loads(each) for each in sources(quoted)] == [[{"say": 'He said "no"\n'}]]


def test_a_move_ends_with_a_call_an_end_or_a_refusal() -> None:
    steps = ({"say": "a"}, {"shell": "b"}, {"say": "c"}, {"end": True}, {"refuse": "d"}, {"say": "e"})
    assert [len(move.steps) for move in moves(*steps)] == [2, 2, 1, 1]


def test_the_pace_holds_from_its_step_on() -> None:
    assert [move.pace for move in moves({"shell": "a"}, {"slow": 0.5}, {"shell": "b"}, {"say": "c"})] == [0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((), 0),
        ((Said("assistant", "I look."), Called("Bash")), 0),
        ((Called("Bash"), Returned("ok")), 1),
        ((Called("Bash"), Returned("ok"), Said("user", "<reminder>")), 1),
        ((Called("Bash"), Returned("ok"), Called("Bash"), Called("Bash"), Returned("ok")), 1),
        ((Called("Bash"), Returned("ok"), Called("Bash"), Returned("ok"), Called("Bash"), Returned("ok")), 2),
        ((Called("Bash"), Returned("ok"), *(Returned("ok"),) * 2, Said("assistant", "done")), 2),
        ((Called("Bash"), *(Returned("ok"),) * 3, Said("assistant", "done"), Said("user", "and?")), 3),
    ],
)
def test_the_history_tells_which_move_is_next(after: tuple[Item, ...], expected: int) -> None:
    steps = ({"shell": "a"}, {"together": [{"shell": "b"}, {"shell": "c"}]}, {"say": "done"})
    assert position(moves(*steps), after) == expected


one_move = st.sampled_from(
    [
        [{"say": "a"}, {"shell": "b"}],
        [{"shell": "a"}],
        [{"together": [{"shell": "a"}] * 3}],
        [{"think": "x"}, {"read": "y"}],
    ]
)


@given(st.lists(one_move, max_size=8), st.lists(st.sampled_from(["", "<system-reminder>"]), min_size=8, max_size=8))
def test_any_script_is_played_move_by_move_whatever_the_client_adds(
    parts: list[list[object]], added: list[str]
) -> None:
    steps = [step for part in parts for step in part] + [{"say": "over"}]
    script_moves = moves(*steps)
    history: list[Item] = []
    for expected, move in enumerate(script_moves):
        assert position(script_moves, history) == expected
        history.append(Said("assistant", "words"))
        history += [Called("Bash")] * move.calls + [Returned("ok")] * move.calls
        if move.calls and added[expected % 8]:
            history.append(Said("user", added[expected % 8]))


def test_each_step_comes_to_its_part_of_the_reply() -> None:
    assert played({"think": "a"}, {"say": "b"}, {"say": "c"}, {"shell": "d"}) == (
        Thought("a"),
        Text("bc"),
        Call("Bash", {"command": "d"}),
    )
    assert played({"say": "a"}, {"refuse": "b"}) == (Text("a"), Refusal("b"))
    assert played({"say": "a", "repeat": 3}) == (Text("aaa"),)


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ({"error": 503, "message": "m", "retry_after": 2}, Failure(503, "m", 2)),
        ({"context_exceeded": True}, Failure(400, "", too_long=True)),
        ({"cut": True}, Cut()),
        ({"hang": True}, Hang()),
        ({"garbage": "x"}, Garbage("x")),
    ],
)
def test_a_fault_comes_after_what_was_said_and_before_the_rest(step: dict[str, object], fault: object) -> None:
    assert played({"say": "a"}, step, {"say": "b"}) == (Text("a"), fault)
    limited = ({"say": "a"}, {**step, "times": 2}, {"say": "b"})
    assert played(*limited, faults={1: 1}) == (Text("a"), fault)
    assert played(*limited, faults={1: 2}) == (Text("ab"),)


def test_a_move_of_nothing_still_says_something() -> None:
    assert played({"end": True}) == (Text("Done."),)


def test_recall_tells_what_the_conversation_holds() -> None:
    items = (
        Said("user", script({"say": "x"})),
        Returned("first"),
        Said("user", script({"recall": True})),
        Returned("2"),
    )
    assert played({"recall": True}, items=items) == (Text("I remember 2 scripted prompts and 2 tool results."),)
    assert played({"recall": "result"}, items=items) == (Text("2"),)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ("say", "steps: must be a list"),
        ([{"say": 1}], "steps[0].say: must be a text"),
        ([{"say": "a", "shell": "b"}], "must be an object with one of"),
        ([{"say": "a", "tims": 2}], "unknown key 'tims'; say takes say, repeat"),
        ([{"write": {"path": "a"}}], "the texts path, text"),
        ([{"edit": {"path": "a", "old": "b", "new": 1}}], "steps[0].edit.new: must be a text"),
        ([{"tool": {"arguments": {}}}], "steps[0].tool.name: must be a text"),
        ([{"tool": {"name": "a", "arguments": []}}], "arguments: must be an object"),
        ([{"together": [{"say": "a"}]}], "must be steps that call tools"),
        ([{"together": []}], "must be steps that call tools"),
        ([{"slow": -1}], "must be a number of seconds"),
        ([{"slow": True}], "must be a number of seconds"),
        ([{"error": 200}], "must be a whole number from 400 to 599"),
        ([{"error": 500, "times": 0}], "must be a whole number from 1"),
        ([{"cut": "yes"}], "steps[0].cut: must be true"),
        ([{"recall": False}], 'must be true or "result"'),
        ([{"use": {"input": 1, "cached": 2}}], "cannot be more than it"),
        ([{"use": {"tokens": 1}}], "any of input, cached, output, cache_write"),
        ([{"say": "a", "repeat": 10**9}], "must be a whole number from 0 to 100000"),
    ],
)
def test_a_wrong_step_is_named_with_what_it_should_be(steps: object, complaint: str) -> None:
    with pytest.raises(BadScript) as refused:
        parse(steps)
    assert complaint in str(refused.value)


def test_a_script_that_is_no_json_is_refused() -> None:
    [source] = sources('[[model: [{"say": oops}]]]')
    with pytest.raises(BadScript, match="not JSON"):
        moves_of(source)
