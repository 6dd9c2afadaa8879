"""The turn clock and the idle rule, event for event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.gateway.clock import TABLE, Clock, Counting, Happening, Idle, Use, forget, tick

FIVE = Idle(turns=5)
ALL = {"postgres": FIVE, "stripe": FIVE, "cap-js": FIVE}


class Played:
    """A clock, and what was done with it."""

    def __init__(self, rules: dict[str, Idle], counting: Counting = "calls") -> None:
        self.clock, self.now = Clock(), 0.0
        self._rules, self._counting = rules, counting

    def happen(self, happening: Happening, server: str = "") -> dict[str, int]:
        ticked = tick(self.clock, self._counting, happening, self._rules, server, self.now)
        self.clock = ticked.clock
        return dict(ticked.leaving)

    def resolve(self, server: str) -> dict[str, int]:
        return self.happen(Happening.INTENT, server) | self.happen(Happening.STARTED, server)

    def call(self, server: str) -> dict[str, int]:
        return self.happen(Happening.CALL, server) | self.happen(Happening.ANSWER, server)

    def last(self) -> dict[str, int]:
        return {server: use.turn for server, use in self.clock.uses.items()}


# The day of the developer who builds a checkout: what is done at each turn, who leaves for it, and when each server
# that is left was last used. Stripe leaves at turn 12, where five turns have passed since its seventh.
DAY: list[tuple[str, str, dict[str, int], dict[str, int]]] = [
    ("resolve", "postgres", {}, {"postgres": 1}),
    ("call", "postgres", {}, {"postgres": 2}),
    ("call", "postgres", {}, {"postgres": 3}),
    ("resolve", "stripe", {}, {"postgres": 3, "stripe": 4}),
    ("call", "stripe", {}, {"postgres": 3, "stripe": 5}),
    ("call", "stripe", {}, {"postgres": 3, "stripe": 6}),
    ("call", "stripe", {}, {"postgres": 3, "stripe": 7}),
    ("resolve", "cap-js", {}, {"postgres": 3, "stripe": 7, "cap-js": 8}),
    ("call", "cap-js", {"postgres": 6}, {"stripe": 7, "cap-js": 9}),
    ("call", "cap-js", {}, {"stripe": 7, "cap-js": 10}),
    ("call", "cap-js", {}, {"stripe": 7, "cap-js": 11}),
    ("call", "cap-js", {"stripe": 5}, {"cap-js": 12}),
    ("call", "cap-js", {}, {"cap-js": 13}),
    ("call", "cap-js", {}, {"cap-js": 14}),
    ("resolve", "postgres", {}, {"cap-js": 14, "postgres": 15}),
]


def test_fifteen_turns_of_a_developer_event_for_event() -> None:
    played = Played(ALL)
    for turn, (what, server, leaving, last) in enumerate(DAY, 1):
        left = played.resolve(server) if what == "resolve" else played.call(server)
        assert (played.clock.turn, left, played.last()) == (turn, leaving, last)


def test_two_servers_that_take_turns_both_stay() -> None:
    played = Played(ALL)
    for server in ("postgres", "stripe") * 20:
        assert played.call(server) == {}


def test_an_intent_that_comes_to_nothing_is_a_turn_but_sweeps_nobody() -> None:
    played = Played(ALL)
    played.call("postgres")
    for _ in range(10):
        assert played.happen(Happening.INTENT) == {}
    assert (played.clock.turn, played.last()) == (11, {"postgres": 1})


def test_each_server_may_have_its_own_number_and_a_pinned_one_never_leaves() -> None:
    played = Played(
        {"hasty": Idle(turns=1), "slow": Idle(turns=100), "kept": Idle(turns=1, pinned=True), "other": FIVE}
    )
    for server in ("hasty", "slow", "kept"):
        played.resolve(server)
    assert played.call("other") == {"hasty": 3}
    assert set(played.last()) == {"slow", "kept", "other"}


def test_a_server_with_a_call_in_flight_never_leaves_and_its_end_is_its_last_use() -> None:
    played = Played(ALL)
    played.happen(Happening.CALL, "postgres")
    for _ in range(9):
        assert played.call("stripe") == {}
    assert played.happen(Happening.ANSWER, "postgres") == {}
    assert played.last()["postgres"] == 10
    assert [played.call("stripe") for _ in range(5)] == [{}, {}, {}, {}, {"postgres": 5}]


def test_a_server_that_is_being_started_is_not_sent_away_meanwhile() -> None:
    played = Played(ALL)
    played.happen(Happening.INTENT, "postgres")
    assert [played.call("stripe") for _ in range(9)] == [{}] * 9
    played.happen(Happening.STARTED, "postgres")
    assert played.last()["postgres"] == 10


def test_nobody_leaves_before_so_much_time_has_passed() -> None:
    played = Played({"postgres": Idle(turns=1, seconds=60), "stripe": FIVE})
    played.call("postgres")
    played.now = 59
    assert played.call("stripe") == {}
    played.now = 60
    assert played.call("stripe") == {"postgres": 2}


def test_where_turns_are_told_calls_are_none() -> None:
    played = Played(ALL, "told")
    played.call("postgres")
    for _ in range(50):
        assert played.call("stripe") == {}
    assert played.clock.turn == 0
    assert [played.happen(Happening.TURN) for _ in range(4)] == [{}] * 4
    played.call("stripe")
    assert played.happen(Happening.TURN) == {"postgres": 5}


def test_the_answer_of_a_server_that_is_gone_does_not_bring_it_back() -> None:
    played = Played(ALL)
    played.happen(Happening.CALL, "postgres")
    played.clock = forget(played.clock, ["postgres"])
    played.happen(Happening.ANSWER, "postgres")
    assert played.last() == {}


SERVERS = st.sampled_from(sorted(ALL))
EVENTS = st.lists(st.tuples(st.sampled_from(Happening), SERVERS | st.just("")), max_size=60)


@given(st.sampled_from(["calls", "told"]), EVENTS)
def test_whatever_happens_the_rule_holds(counting: Counting, events: list[tuple[Happening, str]]) -> None:
    clock = Clock()
    for happening, server in events:
        before = clock
        clock, leaving = tick(before, counting, happening, ALL, server, 0.0)
        assert clock.turn - before.turn == TABLE[counting][happening].advances
        assert not set(leaving) & set(clock.uses)
        for name, idle in leaving.items():
            assert idle >= 5
            assert name != server or not TABLE[counting][happening].marks
            assert before.uses[name].flying == 0
        for use in clock.uses.values():
            assert 0 <= use.turn <= clock.turn
            assert use.flying >= 0
        if TABLE[counting][happening].sweeps:
            assert all(use.flying or clock.turn - use.turn < 5 for use in clock.uses.values())


@pytest.mark.parametrize("counting", ["calls", "told"])
def test_every_happening_has_its_rule(counting: Counting) -> None:
    assert set(TABLE[counting]) == set(Happening)
    assert Use(1, 0.0).flying == 0
