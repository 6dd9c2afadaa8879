"""What every store promises. Both are put through all of it."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.stories import fold, story
from fakes import breathe, run, within
from remuda.domain.errors import Conflict
from remuda.domain.events import Event, MessageQueued, Recorded, RuntimeStopped
from remuda.domain.state import Message, Sender, State
from remuda.store import Store, follow
from remuda.store.codec import decode_event, decode_state, encode_event, encode_state
from remuda.store.memory import MemoryStore
from remuda.store.sqlite import SqliteStore
from shapes import values
from waiting import until

KINDS = get_args(Event)

Story = Callable[[Store], Coroutine[Any, Any, None]]


@pytest.fixture(params=["sqlite", "memory"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Story], None]:
    """Run a story on an open store."""

    async def opened(told: Story) -> None:
        store: Store = SqliteStore(tmp_path / "log.db") if request.param == "sqlite" else MemoryStore()
        try:
            await told(store)
        finally:
            await store.close()

    return lambda told: run(opened(told))


Tell = Callable[[Story], None]


def stops(first: int, count: int) -> list[Recorded]:
    return [Recorded(seq, float(seq), f"order-{seq}", RuntimeStopped("r")) for seq in range(first, first + count)]


def test_events_come_back_in_order_with_their_time_and_their_cause(tell: Tell) -> None:
    log = story()

    async def told(store: Store) -> None:
        for at in range(0, len(log), 7):
            await store.append(log[at : at + 7])
        assert await store.read(0, 10_000) == log

    tell(told)


def test_reading_begins_after_the_cursor_and_takes_no_more_than_asked(tell: Tell) -> None:
    async def told(store: Store) -> None:
        await store.append(stops(1, 10))
        assert [record.seq for record in await store.read(3, 4)] == [4, 5, 6, 7]
        assert [record.seq for record in await store.read(8, 100)] == [9, 10]
        assert await store.read(10, 100) == []

    tell(told)


@pytest.mark.parametrize("first", [1, 3, 5])
def test_an_append_that_is_not_the_next_is_a_conflict_and_leaves_nothing(tell: Tell, first: int) -> None:
    async def told(store: Store) -> None:
        await store.append(stops(1, 3))
        with pytest.raises(Conflict, match="not the next one"):
            await store.append(stops(first, 2))
        assert [record.seq for record in await store.read(0, 100)] == [1, 2, 3]
        await store.append(stops(4, 2))
        assert [record.seq for record in await store.read(0, 100)] == [1, 2, 3, 4, 5]

    tell(told)


def test_appends_that_nobody_waited_between_are_all_kept_in_order(tell: Tell) -> None:
    async def told(store: Store) -> None:
        futures = [store.append(stops(1 + 3 * number, 3)) for number in range(300)]
        await asyncio.gather(*futures)
        assert [record.seq for record in await store.read(0, 1000)] == list(range(1, 901))

    tell(told)


def test_appends_become_durable_in_the_order_they_were_asked_for(tell: Tell) -> None:
    async def told(store: Store) -> None:
        order: list[int] = []
        futures = [store.append(stops(1 + number, 1)) for number in range(100)]
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
        await asyncio.gather(*futures)
        assert order == list(range(100))

    tell(told)


def test_an_append_of_nothing_is_done_after_those_before_it(tell: Tell) -> None:
    async def told(store: Store) -> None:
        first = store.append(stops(1, 1))
        await store.append([])
        assert first.done()

    tell(told)


def test_what_is_acknowledged_can_be_read_and_what_cannot_be_read_is_not_acknowledged(tell: Tell) -> None:
    async def told(store: Store) -> None:
        for seq in range(1, 30):
            done = store.append(stops(seq, 1))
            if not done.done():
                assert len(await store.read(0, 100)) in (seq - 1, seq)
            await done
            assert len(await store.read(0, 100)) == seq

    tell(told)


def test_who_waits_past_a_number_wakes_when_the_next_is_durable_and_not_before(tell: Tell) -> None:
    async def told(store: Store) -> None:
        await store.append(stops(1, 2))
        await within(store.past(1))
        waiting = asyncio.ensure_future(store.past(2))
        await breathe()
        assert not waiting.done()
        await store.append(stops(3, 1))
        await within(waiting)

    tell(told)


def test_one_who_gave_up_waiting_does_not_hold_up_the_others(tell: Tell) -> None:
    async def told(store: Store) -> None:
        waiting = [asyncio.ensure_future(store.past(each)) for each in (0, 0, 1)]
        await breathe()
        waiting[0].cancel()
        await store.append(stops(1, 1))
        await within(waiting[1])
        assert not waiting[2].done()
        await store.append(stops(2, 1))
        await within(waiting[2])

    tell(told)


def test_a_follower_sees_every_event_once_however_slow_it_is(tell: Tell) -> None:
    async def told(store: Store) -> None:
        seen: list[int] = []

        async def read_slowly() -> None:
            async for record in follow(store, 0, page=7):
                seen.append(record.seq)
                await breathe(record.seq % 5)

        reader = asyncio.ensure_future(read_slowly())
        for first in range(1, 500, 25):
            await store.append(stops(first, 25))
        await until(lambda: len(seen) >= 500)
        assert seen == list(range(1, 501))
        reader.cancel()
        await asyncio.wait({reader})

    tell(told)


def test_a_follower_goes_on_from_its_cursor(tell: Tell) -> None:
    async def told(store: Store) -> None:
        await store.append(stops(1, 10))
        following = follow(store, 8)
        assert [(await within(anext(following))).seq for _ in range(2)] == [9, 10]
        await following.aclose()  # type: ignore[attr-defined]

    tell(told)


def test_the_restored_state_is_the_fold_of_all_events(tell: Tell) -> None:
    log = story()

    async def told(store: Store) -> None:
        assert await store.restore() == State()
        await store.append(log)
        assert await store.restore() == fold(log)

    tell(told)


@pytest.mark.parametrize("at", [1, 40, 120])
def test_a_snapshot_and_the_events_after_it_are_as_good_as_all_events(tell: Tell, at: int) -> None:
    log = story()

    async def told(store: Store) -> None:
        await store.append(log[:at])
        await store.save_snapshot(fold(log[:at]))
        assert await store.restore() == fold(log[:at])
        await store.append(log[at:])
        assert await store.restore() == fold(log)

    tell(told)


def test_the_newest_of_many_snapshots_is_used_and_none_does_harm(tell: Tell) -> None:
    log = story()

    async def told(store: Store) -> None:
        for at in range(0, len(log), 20):
            await store.append(log[at : at + 20])
            await store.save_snapshot(fold(log[: at + 20]))
            assert await store.restore() == fold(log[: at + 20])

    tell(told)


def test_a_snapshot_is_of_the_moment_it_was_asked_for(tell: Tell) -> None:
    log = story()

    async def told(store: Store) -> None:
        await store.append(log[:50])
        state = fold(log[:50])
        saving = asyncio.ensure_future(store.save_snapshot(state))
        await breathe(1)
        state.agents.clear()
        await saving
        assert await store.restore() == fold(log[:50])

    tell(told)


def test_a_snapshot_of_events_that_were_never_kept_is_refused(tell: Tell) -> None:
    """A loop runs ahead of its store. When an append fails, what it has in memory must not come back to life."""
    log = story()

    async def told(store: Store) -> None:
        await store.append(log[:30])
        with pytest.raises(Conflict, match="a snapshot of event 40"):
            await within(store.save_snapshot(fold(log[:40])))
        assert await store.restore() == fold(log[:30])
        await store.append(log[30:])
        assert await store.restore() == fold(log)

    tell(told)


@pytest.mark.parametrize("text", ["Füße 🐎 العربية \x00 \u2028", "🐎" * (1 << 20)])
def test_any_text_is_kept_as_it_was(tell: Tell, text: str) -> None:
    letter = MessageQueued("ada", Message("m1", Sender.USER, "user", text, 1.5), 1)

    async def told(store: Store) -> None:
        await store.append([Recorded(1, 0.1 + 0.2, "größe", letter)])
        (record,) = await store.read(0, 10)
        assert record == Recorded(1, 0.1 + 0.2, "größe", letter)

    tell(told)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
@given(data=st.data())
def test_every_kind_of_event_survives_its_encoding(kind: type[Event], data: st.DataObject) -> None:
    event = data.draw(values(kind))
    again = decode_event(1, kind.__name__, encode_event(event))
    assert again == event
    assert type(again) is kind


@given(state=values(State))
def test_every_state_survives_its_encoding(state: State) -> None:
    assert decode_state(encode_state(state)) == state
