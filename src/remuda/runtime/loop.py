"""The loop. One per project; it owns the state, and every change goes through it. Read this first.

    a command comes in        submit
    it is decided             decide(state, command, now) -> events, or it is refused
    what follows is decided   watches: event -> commands, in the same breath
    the events are kept       store.append, many commands to one flush of the disk
    and only then             the caller is answered, views show it, effects are owed

The loop runs ahead of the disk, nothing else does. If the log cannot be written the loop stops at once: whatever it
had decided and not kept never happened, and the next runtime goes on from the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from remuda.domain.commands import Command
from remuda.domain.decide import decide
from remuda.domain.due import Debtors
from remuda.domain.errors import RemudaError, StoreFailed
from remuda.domain.events import Event
from remuda.domain.state import State
from remuda.runtime.batch import Accepted, Batch, Reply, Shown
from remuda.store import Store

log = logging.getLogger("remuda.loop")

P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[State, Event], Iterable[Command]]
Owe = Callable[[Debtors, Debtors], None]

COMMANDS_AT_ONCE = 256  # then others get a turn, so that a flood of commands does not starve input and output
SNAPSHOT_EVERY = 10_000  # events; about 50 ms of replay


class Loop:
    def __init__(
        self, store: Store, state: State, *, owe: Owe, clock: Callable[[], float], watches: Sequence[Watch] = ()
    ) -> None:
        self.state = state
        self.shown = Shown(state.seq, state.clock, dict(state.agents), dict(state.tasks), state.ledger)
        self._store = store
        self._owe = owe
        self._clock = clock
        self._watches = watches
        self._inbox: deque[tuple[str, Command, Reply]] = deque()
        self._called = asyncio.Event()
        self._unsettled: deque[Batch] = deque()
        self._snapshot_seq = state.seq
        self._stopped: RemudaError | None = None

    def submit(self, command: Command, *, order: str = "") -> Reply:
        """Ask for something. The same `order` twice is done once. Order of submission is order of decision."""
        reply: Reply = asyncio.get_running_loop().create_future()
        if self._stopped is not None:
            reply.set_exception(self._stopped)
        else:
            self._inbox.append((order, command, reply))
            self._called.set()
        return reply

    async def run(self) -> None:
        """Until stopped, or until the log fails, which is raised."""
        while self._stopped is None:
            await self._called.wait()
            self._called.clear()
            while self._inbox:
                self._decide_some()
                await asyncio.sleep(0)
        if isinstance(self._stopped, StoreFailed):
            raise self._stopped

    def stop(self, reason: RemudaError) -> None:
        """Take nothing more. Whoever still waits for an answer is told why there will be none."""
        self._stopped = self._stopped or reason
        waiting = [reply for _, _, reply in self._inbox]
        waiting += [reply for batch in self._unsettled for reply, _ in batch.replies]
        self._inbox.clear()
        self._unsettled.clear()
        for reply in waiting:
            if not reply.done():
                reply.set_exception(self._stopped)
        self._called.set()

    def _decide_some(self) -> None:
        batch = Batch()
        for _ in range(min(COMMANDS_AT_ONCE, len(self._inbox))):
            order, command, reply = self._inbox.popleft()
            if order and order in self.state.recent:
                batch.replies.append((reply, Accepted(self.state.recent[order], ())))
                continue
            now = self._clock()
            try:
                events = decide(self.state, command, now)
            except Exception as error:
                if not isinstance(error, RemudaError):
                    log.exception("%s could not be decided", command)
                batch.replies.append((reply, error))  # it may rest on what is not durable yet: it waits too
                continue
            accepted = Accepted(self.state.seq + 1, events)
            self._keep(events, order, now, batch)
            batch.replies.append((reply, accepted))
        if batch.replies:
            batch.clock = self.state.clock
            self._unsettled.append(batch)
            self._store.append(batch.records).add_done_callback(partial(self._settled, batch))

    def _keep(self, events: Sequence[Event], order: str, now: float, batch: Batch) -> None:
        # Reactions are decided in the same breath and kept in the same transaction as their cause, so that a crash
        # can neither lose nor double one.
        batch.keep(self.state, events, order, now)
        unseen = deque(events)
        while unseen:
            event = unseen.popleft()
            for watch in self._watches:
                for command in self._unless_it_fails(watch, self.state, event):
                    follows = self._unless_it_fails(decide, self.state, command, now)
                    batch.keep(self.state, follows, order, now)
                    unseen.extend(follows)

    def _unless_it_fails(self, think: Callable[P, Iterable[T]], *args: P.args, **kwargs: P.kwargs) -> tuple[T, ...]:
        """What a watch leads to, and nothing where it fails: the event that it looked at stands in any case."""
        try:
            return tuple(think(*args, **kwargs))
        except RemudaError as refusal:
            log.info("a watch was refused: %s", refusal)
        except Exception:
            log.exception("a watch failed on %s", args)
        return ()

    def _settled(self, batch: Batch, done: asyncio.Future[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None or done.cancelled():
            self.stop(error if isinstance(error, StoreFailed) else StoreFailed(f"the log cannot be written: {error}"))
            return
        if self._unsettled and self._unsettled[0] is batch:
            self._unsettled.popleft()
        self.shown.take(batch)
        batch.answer()
        self._owe(batch, self.state)
        if self.shown.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
            self._snapshot_seq = self.shown.seq
            self._saving = asyncio.ensure_future(self._store.save_snapshot(self.state))
