"""A call may leave before it is on the disk, where the disk has foreseen it: whatever is lost then, no spending is."""

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from domain.books import DOLLAR, Books
from domain.drive import replay
from remuda.domain.budget import lost_at_most
from remuda.domain.budget_commands import RecallCall
from remuda.domain.commands import StartRuntime
from remuda.domain.errors import Refused
from remuda.domain.ledger import ASSUMED_NANOUSD, Ledger, Reservation, ahead
from remuda.domain.state import Usage


def in_a_turn(books: Books, tokens: int = 100_000) -> str:
    name = books.spawn_with(tokens, nanousd=10**6 * DOLLAR)
    books.send(name=name)
    return name


def lead(books: Books, kept: Ledger, name: str, call: int) -> Reservation | None:
    return ahead(kept, books.state.ledger, name, books.epoch(name), call)


def recall(books: Books, name: str, call: int, into: int = 10, out: int = 20, **more: int) -> None:
    epoch = more.get("epoch", books.epoch(name))
    books.do(RecallCall(name, epoch, call, into, out, (into + out) * ASSUMED_NANOUSD, priced=False))


def test_the_first_call_of_a_turn_waits_and_one_that_is_hardly_larger_does_not() -> None:
    books = Books()
    ada = in_a_turn(books)
    nothing = books.state.ledger
    books.reserve(ada, 1, 600, 200)
    assert lead(books, nothing, ada, 1) is None
    kept = books.state.ledger
    books.reserve(ada, 2, 700, 300)
    made = lead(books, kept, ada, 2)
    assert made is not None
    assert made.spend.tokens == 1_000
    books.reserve(ada, 3, 701, 300)
    assert lead(books, kept, ada, 3) is None, "more than a quarter larger"
    assert lead(books, books.state.ledger, ada, 3) is not None, "until that is kept"
    assert lead(books, kept, ada, 4) is None, "it was never decided"


def test_money_is_foreseen_like_tokens() -> None:
    books = Books()
    ada = in_a_turn(books)
    books.reserve(ada, 1, 600, 200, input_nanousd=600, output_nanousd=2)
    kept = books.state.ledger
    books.reserve(ada, 2, 600, 200, input_nanousd=600, output_nanousd=4)
    assert lead(books, kept, ada, 2) is None
    (lost,) = lost_at_most(books.state.ledger)
    assert (lost.nanousd, lost.priced, lost.call) == (1_750, True, 3)
    books.reserve(ada, 3, 100, 100)
    (lost,) = lost_at_most(books.state.ledger)
    assert not lost.priced, "the dearest price there is stands for an unknown one"


def test_what_was_foreseen_ends_with_the_turn_and_there_is_none_outside_of_turns() -> None:
    books = Books()
    ada = in_a_turn(books)
    books.reserve(ada, 1, 600, 200)
    kept = books.state.ledger
    books.answered(ada)
    assert books.state.ledger.foreseen == {}
    books.reserve(ada, 2, 600, 200)
    assert lead(books, kept, ada, 2) is None
    assert books.state.ledger.foreseen == {}
    books.send(name=ada)
    books.reserve(ada, 3, 600, 200)
    assert lead(books, kept, ada, 3) is None, "it was foreseen for another turn"


def test_a_call_that_waited_until_later_ones_were_decided_waits_for_the_disk_too() -> None:
    books = Books()
    ada = in_a_turn(books)
    books.reserve(ada, 1, 600, 200)
    kept = books.state.ledger
    books.reserve(ada, 3, 600, 200)
    books.reserve(ada, 2, 600, 200)
    assert lead(books, kept, ada, 2) is None


def test_a_call_that_is_recalled_counts_when_the_runtime_starts_and_one_that_is_known_is_not_counted_twice() -> None:
    books = Books()
    ada = in_a_turn(books)
    books.reserve(ada, 1, 600, 200)
    books.settle(ada, 1, Usage(100, 10))
    for call, epoch in ((1, 1), (2, 2)):
        with pytest.raises(Refused, match="stands in the log, or its turn is over"):
            recall(books, ada, call, epoch=epoch)
    recall(books, ada, 2, 300, 40)
    with pytest.raises(Refused):
        recall(books, ada, 2, 300, 40)
    books.do(StartRuntime("next"))
    assert books.account(ada).spent.tokens == 110 + 340
    assert books.state.ledger.open == {}
    with pytest.raises(Refused):
        recall(books, ada, 3)


def test_it_is_recalled_though_there_would_be_no_room_for_it_now() -> None:
    books = Books()
    ada = in_a_turn(books, 1_000)
    books.reserve(ada, 1, 600, 200)
    recall(books, ada, 2, 600, 200)
    books.do(StartRuntime("next"))
    assert books.account(ada).spent.tokens == 1_600


class Disk(Books):
    """The log is ahead of what is kept of it. Calls leave as the meter lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = 0  # events
        self.ends: list[int] = []  # of what is kept together
        self.ledger = self.state.ledger
        self.noted: list[RecallCall] = []
        self.real: dict[int, int] = {}  # tokens of each call that has left
        self.leading: dict[str, int] = {}

    def flush(self, batches: int) -> None:
        self.durable = [self.durable, *[end for end in self.ends if end > self.durable][:batches]][-1]
        self.ledger = replay(self.log[: self.durable]).ledger
        self.leading = {name: seq for name, seq in self.leading.items() if seq > self.durable}

    def call(self, name: str, call: int, into: int, out: int) -> None:
        self.reserve(name, call, into, out)
        self.ends.append(len(self.log))
        made = lead(self, self.ledger, name, call)
        if made is None or name in self.leading:
            self.flush(len(self.ends))
        else:
            self.leading[name] = len(self.log)
            amounts = made.input_tokens, made.output_tokens, made.nanousd, made.priced
            self.noted.append(RecallCall(name, self.epoch(name), call, *amounts))
        self.real[call] = into + out

    def crash(self, *, power: bool) -> Books:
        after = Books()
        for record in self.log[: self.durable]:
            after.apply(record)
        for each in list(lost_at_most(after.state.ledger) if power else self.noted):
            try:
                after.do(each)
            except Refused:
                continue
        after.do(StartRuntime("next"))
        return after


deeds = st.sampled_from(["call", "call", "call", "settle", "turn", "flush", "flush"])


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(deeds, st.integers(1, 20)), max_size=8))
def test_whatever_the_disk_has_not_seen_when_it_ends_no_less_counts_than_was_spent(
    steps: list[tuple[str, int]],
) -> None:
    books = Disk()
    ada = in_a_turn(books, 10**6)
    books.ends.append(len(books.log))
    books.flush(1)
    for number, (what, size) in enumerate(steps, 1):
        match what:
            case "call":
                books.call(ada, number, size, size)
            case "settle" if books.state.ledger.open:
                call = int(next(iter(books.state.ledger.open)).rpartition("/")[2])
                books.real[call] = books.real[call] * size // 20
                books.settle(ada, call, Usage(books.real[call], cost_nanousd=0))
            case "turn":
                books.answered(ada)
                books.ends.append(len(books.log))
                books.send(name=ada)
            case _:
                books.flush(size % 3)
        books.ends.append(len(books.log))
    for power in (False, True):
        assert books.crash(power=power).account(ada).spent.tokens >= sum(books.real.values())
