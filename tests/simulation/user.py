"""People who ask for things at random, and ask again when they got no answer."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from remuda.domain.commands import (
    AnswerQuestion,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    ResumeAgent,
    RetireAgent,
    SendMessage,
    SpawnAgent,
    StopAgent,
)
from remuda.domain.errors import RemudaError, StoreFailed
from remuda.domain.state import Sender
from remuda.domain.task import Brief, NewTask, Staff
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    BlockTask,
    CancelTask,
    CloseTask,
    NoteTask,
    ReleaseReview,
    ReleaseTask,
    ReopenTask,
    ReplaceWorker,
    SetStaff,
)
from remuda.runtime.batch import Accepted, Reply
from remuda.runtime.loop import Loop
from remuda.views.questions import open_questions
from simulation.disk import TICK, Disk
from simulation.yard import MOST_TASKS

MOST_AGENTS = 8
OVER = RemudaError("this life is over")


@dataclass(slots=True)
class Order:
    id: str
    command: Command
    accepted: Accepted | None = None
    refused: bool = False


class User:
    def __init__(self, dice: Random, disk: Disk) -> None:
        self.orders: list[Order] = []
        self._dice = dice
        self._disk = disk
        self._agents: list[str] = ["nobody"]
        self._directed = dice.random() < 0.4  # an agent coordinates; otherwise nobody does but the watch

    def unanswered(self) -> list[Order]:
        return [order for order in self.orders if order.accepted is None and not order.refused]

    async def work(self, loop: Loop) -> None:
        while True:
            await asyncio.sleep(TICK * self._dice.choice((0, 1, 2, 4, 8, 16)))
            for order in self._next():
                self.ask(loop, order)

    def ask(self, loop: Loop, order: Order) -> None:
        loop.submit(order.command, order=order.id).add_done_callback(partial(self._answered, order))

    def _next(self) -> Iterator[Order]:
        open_orders = self.unanswered()
        if open_orders and self._dice.random() < 0.3:
            yield self._dice.choice(open_orders)
        elif self.orders and self._dice.random() < 0.1:
            yield self._dice.choice(self.orders)
        else:
            for _ in range(self._dice.choice((1, 1, 1, 4))):
                order = Order(f"order-{len(self.orders)}", self._command(f"order-{len(self.orders)}"))
                self.orders.append(order)
                yield order

    def _command(self, order: str) -> Command:
        spawned = len(self._agents) - 1
        if spawned == 0 or (spawned < MOST_AGENTS and self._dice.random() < 0.15):
            return self._spawn()
        agent = self._dice.choice(self._agents[-spawned:] if self._dice.random() < 0.98 else self._agents)
        if self._dice.random() < 0.2:
            return self._about_work(agent)
        roll = self._dice.random()
        if roll < 0.55:
            return SendMessage(agent, order, self._dice.choice(list(Sender)), "somebody", "do it")
        if roll < 0.70:
            return ResumeAgent(agent)
        if roll < 0.80:
            return self._say(agent)
        rest: tuple[Command, ...] = (
            PauseAgent(agent, "lunch"),
            PauseAgent(agent),
            StopAgent(agent),
            HibernateAgent(agent),
            HibernateAgent(agent),
            RetireAgent(agent) if self._dice.random() < 0.4 else ResumeAgent(agent),
            ReapAgent(agent, "it spins") if self._dice.random() < 0.4 else ResumeAgent(agent),
        )
        return self._dice.choice(rest)

    def _about_work(self, agent: str) -> Command:
        known = list(self._disk.state.tasks)
        if len(known) < 2 or (len(known) < MOST_TASKS and self._dice.random() < 0.4):
            needs = (self._dice.choice(known),) if known and self._dice.random() < 0.5 else ()
            return AddTasks((NewTask(Brief("a piece of work", needs=needs, priority=self._dice.randrange(5))),))
        task = self._dice.choice(known)
        asks: tuple[Command, ...] = (
            AssignTask(task, agent),
            AssignTask(task, agent),
            AssignReview(task, agent),
            ApproveCommit(task, unreviewed=self._dice.random() < 0.5),
            AssignFeedback(task, "better"),
            ReleaseTask(task),
            ReleaseReview(task),
            BlockTask(task, "wait"),
            ReopenTask(task),
            ReopenTask(task),
            CancelTask(task) if self._dice.random() < 0.4 else NoteTask(task, "mind this"),
            CloseTask(task) if self._dice.random() < 0.4 else NoteTask(task, "mind that"),
            ReplaceWorker(agent) if self._dice.random() < 0.4 else ResumeAgent(agent),
            SetStaff(Staff(self._dice.randrange(4), "simulated")),
        )
        return self._dice.choice(asks)

    def _say(self, agent: str) -> Command:
        """To a question that waits, as it is shown; now and then to one that does not."""
        asked = self.open_questions() if self._dice.random() < 0.9 else []
        name, question = self._dice.choice(asked) if asked else (agent, "nothing")
        return AnswerQuestion(name, question, self._dice.random() < 0.5, self._dice.choice(("user", agent)), "so be it")

    def open_questions(self) -> list[tuple[str, str]]:
        return [(row.agent, row.question) for row in open_questions(self._disk.state.agents)]

    def _spawn(self) -> Command:
        name = f"agent-{len(self._agents)}"
        role = self._dice.choice(("worker", "worker", "crew", "coordinator" if self._directed else "worker"))
        parent = self._dice.choice(self._agents) if self._dice.random() < 0.8 else ""
        parent = "" if parent == "nobody" else parent
        self._agents.append(name)
        return SpawnAgent(role, "simulated", name=name, parent=parent, hold=self._dice.random() < 0.1)

    def _answered(self, order: Order, reply: Reply) -> None:
        error = reply.exception()
        if error is None:
            self._check(order, reply.result())
            order.accepted = order.accepted or reply.result()
        elif error is OVER or isinstance(error, StoreFailed):
            return  # nobody knows whether it was done: it will be asked for again
        else:
            assert isinstance(error, RemudaError), f"{order.command}: {error!r} is no answer"
            assert order.accepted is None, f"{order.command} was done, and asked for again it is refused: {error}"
            order.refused = True

    def _check(self, order: Order, accepted: Accepted) -> None:
        last = accepted.seq + max(0, len(accepted.events) - 1)
        assert last <= len(self._disk.log), f"{order.command} was acknowledged before it was durable"
        assert self._disk.log[accepted.seq - 1].cause == order.id, f"{order.command} was acknowledged for another"
        if order.accepted is not None:
            assert accepted == Accepted(order.accepted.seq, ()), f"{order.command} was done twice"
