"""Tasks, workers, reviewers, a coordinator and a world in any order, on the real store, with a crash at any step: no
task is lost, none is done twice, each has one holder, and nothing begins before what it needs is done."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from domain.band import Band
from domain.work import OF_WORK, Told
from remuda.domain.commands import (
    Command,
    PauseAgent,
    ReapAgent,
    ReportSessionEnded,
    ResumeAgent,
    RetireAgent,
    SpawnAgent,
    StartRuntime,
    StopAgent,
)
from remuda.domain.due import due_for
from remuda.domain.effects import MergeTask, key
from remuda.domain.errors import RemudaError
from remuda.domain.events import (
    CompletionSignalled,
    Event,
    MailWithdrawn,
    MessageQueued,
    Reminded,
    TurnEnded,
    UserNotified,
)
from remuda.domain.lifecycle import Work
from remuda.domain.state import Outcome, State
from remuda.domain.task import Brief, Kind, NewTask, Refusal, Staff
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    BlockTask,
    CancelTask,
    CloseTask,
    CompleteStep,
    DecomposeTask,
    EditTask,
    EscalateTask,
    NoteTask,
    NoteToolUse,
    NotifyUser,
    ReleaseReview,
    ReleaseTask,
    ReopenTask,
    ReplaceWorker,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportMerged,
    ReportMergeRefused,
    ReportReviewVerdict,
    ReportWorkFailed,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
    SetStaff,
    SignalComplete,
    SignalReady,
    SplitTask,
)
from remuda.domain.task_events import (
    StepCompleted,
    TaskAdded,
    TaskEdited,
    TaskEvent,
    TaskNoted,
    WorkFailed,
)
from remuda.domain.tools import Tool
from remuda.store.sqlite import SqliteStore
from remuda.watch.coordinator import Rules

tasks = st.sampled_from(["t1", "t1", "t2", "t3", "t4", "t5"])
workers = st.sampled_from(["worker-1", "worker-1", "worker-2", "worker-3", "worker-4"])
MOST_TASKS, MOST_AGENTS = 8, 8


class Yard(RuleBasedStateMachine):
    seen: ClassVar[Counter[type[Event]]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.store = self.opened()
        self.looked = 0  # how much of the log is counted in `seen`
        self.begun: set[object] = set()  # in this life of the runtime
        self.durable = 0

    def opened(self) -> SqliteStore:
        async def open_store() -> SqliteStore:
            return SqliteStore(Path(self.folder.name) / "log.db")

        return self.runner.run(open_store())

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    @initialize(coordinated=st.booleans(), reviewed=st.booleans())
    def begin(self, coordinated: bool, reviewed: bool) -> None:
        self.band = Band(3, Rules(reviewed=reviewed, backend="scripted"))
        if not coordinated:
            self.band.watches = ()
        accept = ("make test",)
        briefs = (
            Brief("first", accept=accept, steps=("one", "two")),
            Brief("second", accept=accept, needs=("t1",)),
            Brief("third", needs=("t1",), priority=0),
        )
        for name in self.band.state.agents:  # nobody is in its first turn, which is exempt from much
            self.band.send("hello", name)
            self.band.answered(name)
        self.do(AddTasks(tuple(NewTask(brief) for brief in briefs)))
        if not coordinated:
            self.band.at_work("t1", "worker-1")
        self.go_on(2, approve=True, well=True)

    def do(self, command: Command) -> None:
        try:
            self.band.do(command)
        except RemudaError:
            return

    def epoch(self, agent: str) -> int:
        return self.band.epoch(agent) if agent in self.band.state.agents else 0

    # --- people and coordinators ---

    @rule(needs=tasks, epic=tasks, kind=st.sampled_from(Kind))
    def add(self, needs: str, epic: str, kind: Kind) -> None:
        if len(self.band.state.tasks) < MOST_TASKS:
            known = self.band.state.tasks.get(epic)
            part_of = epic if known and known.kind is Kind.EPIC else ""
            self.do(AddTasks((NewTask(Brief("more", needs=(needs,), epic=part_of), kind),)))

    @rule(task=tasks, agent=workers, which=st.integers(0, 13), flag=st.booleans())
    def direct(self, task: str, agent: str, which: int, flag: bool) -> None:
        asks: tuple[Command, ...] = (
            AssignTask(task, agent),
            AssignTask(task, agent),
            AssignReview(task, agent),
            AssignReview(task, agent),
            ApproveCommit(task, unreviewed=flag),
            AssignFeedback(task, "better" if flag else ""),
            ReleaseTask(task, setback=flag),
            ReleaseReview(task, setback=flag),
            BlockTask(task, "wait"),
            ReopenTask(task),
            NoteTask(task, "mind this"),
            CompleteStep(task, 1 + flag),
            SetStaff(Staff(4 * flag, "scripted")),
            ReopenTask(task),
        )
        self.do(asks[which])

    @rule(task=tasks, needs=tasks, which=st.integers(0, 3))
    def finish_by_hand(self, task: str, needs: str, which: int) -> None:
        known = self.band.state.tasks.get(task)
        if known is None:
            return
        parts = (NewTask(Brief("part", accept=known.brief.accept)),)
        edited = Brief(known.brief.title, needs=(needs,), epic=known.brief.epic, accept=known.brief.accept)
        asks = (CancelTask(task), CloseTask(task), SplitTask(task, parts), EditTask(task, edited))
        if which < 2 or len(self.band.state.tasks) < MOST_TASKS:
            self.do(asks[which])

    @rule(agent=workers, which=st.integers(0, 7))
    def tell(self, agent: str, which: int) -> None:
        asks: tuple[Command, ...] = (
            PauseAgent(agent),
            ResumeAgent(agent),
            ResumeAgent(agent),
            StopAgent(agent),
            RetireAgent(agent),
            ReapAgent(agent, "it spins"),
            ReplaceWorker(agent),
            SpawnAgent("worker", "scripted"),
        )
        if which < 6 or len(self.band.state.agents) < MOST_AGENTS:
            self.do(asks[which])

    # --- agents ---

    @rule(agent=workers, late=st.sampled_from([0, 0, 0, 1]), which=st.integers(0, 8), flag=st.booleans())
    def say(self, agent: str, late: int, which: int, flag: bool) -> None:
        place = (agent, self.epoch(agent) - late)
        asks: tuple[Command, ...] = (
            ReportImplementationComplete(*place, "done"),
            ReportReviewVerdict(*place, flag, "so"),
            ReportReviewVerdict(*place, flag, "so"),
            EscalateTask(*place, "cannot"),
            DecomposeTask(*place, (NewTask(Brief("piece")),)),
            SignalReady(*place),
            NoteToolUse(*place, Tool.POST_MESSAGE),
            NotifyUser(*place, "look"),
            SignalComplete(*place, "all"),
        )
        if which != 4 or len(self.band.state.tasks) < MOST_TASKS:
            self.do(asks[which])

    @rule(agent=workers, well=st.booleans())
    def end_turn(self, agent: str, well: bool) -> None:
        if agent in self.band.state.agents and self.band.turn(agent):
            self.band.answered(agent, Outcome.COMPLETED if well else Outcome.FAILED)

    @rule(agent=workers)
    def settle(self, agent: str) -> None:
        if agent in self.band.state.agents:
            self.band.settle(agent)

    @rule(agent=workers)
    def crash_a_session(self, agent: str) -> None:
        self.do(ReportSessionEnded(agent, self.epoch(agent), "it died", -9))

    # --- the world ---

    @rule(task=tasks, well=st.sampled_from([True, True, False]))
    def do_what_is_owed(self, task: str, well: bool) -> None:
        """Only what the disk knows to be owed and the loop has not moved on from; each thing once in a life."""
        self.flush()
        known = self.band.state.tasks.get(task)
        for effect in due_for(known) if known else ():
            if key(effect) in self.begun:
                return
            self.begun.add(key(effect))
            report = self.band.answer_to(task, well=well)
            assert report is not None
            self.do(report)

    @rule(steps=st.integers(1, 12), approve=st.booleans(), well=st.sampled_from([True, True, False]))
    def go_on(self, steps: int, approve: bool, well: bool) -> None:
        """Everyone does as they should, for a while; the last thing may go wrong."""
        for step in range(steps):
            for task in list(self.band.state.tasks):
                self.do_what_is_owed(task, well=well or step < steps - 1)
            if not self.band.work(lambda _: approve):
                return

    @rule(turns=st.integers(1, 4))
    def be_silent(self, turns: int) -> None:
        """Those who are in a turn end it without a word, and so they do when they are reminded."""
        for _ in range(turns):
            for name in list(self.band.state.agents):
                if self.band.turn(name):
                    self.band.ends_turn(name)

    @rule(task=tasks, which=st.integers(0, 3))
    def take_away(self, task: str, which: int) -> None:
        """In the middle of it."""
        known = self.band.state.tasks.get(task)
        if known is not None and known.holder and self.band.turn(known.holder):
            asks = (ReleaseTask(task), BlockTask(task, "wait"), ReopenTask(task), CancelTask(task))
            self.do(asks[which])

    @rule(reason=st.sampled_from(Refusal))
    def refuse_to_merge(self, reason: Refusal) -> None:
        """Whatever gets as far as that, after everyone has gone on for a while."""
        for _ in range(10):
            merging = [task.id for task in self.band.state.tasks.values() if task.work is Work.MERGING]
            for task in merging:
                self.do(ReportMergeRefused(task, self.band.task(task).attempt, reason, "", "<<<<"))
            if merging:
                return
            self.go_on(1, approve=True, well=True)

    @rule(task=tasks, priority=st.integers(0, 4))
    def edit(self, task: str, priority: int) -> None:
        known = self.band.state.tasks.get(task)
        if known is not None:
            self.do(EditTask(task, replace(known.brief, priority=priority)))

    @rule()
    def declare_the_end(self) -> None:
        for task in list(self.band.state.tasks):
            self.do(CloseTask(task))
        for name in list(self.band.state.agents):
            self.band.settle(name)
            self.do(SignalComplete(name, self.epoch(name), "all"))

    @rule(task=tasks, off=st.sampled_from([0, 1, 2]), which=st.integers(0, 5))
    def report_anything(self, task: str, off: int, which: int) -> None:
        """Late, early, twice: of another attempt than the present, or to something that was never asked."""
        known = self.band.state.tasks.get(task)
        place = (task, (known.attempt if known else 0) - off)
        if known is not None and not off and due_for(known):
            return  # that would be true
        reports: tuple[Command, ...] = (
            ReportWorktreeReady(*place, "elsewhere"),
            ReportAcceptance(*place, True, "c0"),
            ReportMerged(*place, "m0", "main"),
            ReportMergeRefused(*place, Refusal.MOVED),
            ReportWorktreeRemoved(*place),
            ReportWorkFailed(*place, "no"),
        )
        self.do(reports[which])

    @rule(task=tasks)
    def fail(self, task: str) -> None:
        known = self.band.state.tasks.get(task)
        if known is not None and due_for(known) and not isinstance(due_for(known)[0], MergeTask):
            self.do(ReportWorkFailed(task, known.attempt, "no disk"))

    # --- the runtime ---

    @rule()
    def flush(self) -> None:
        async def append() -> None:
            await self.store.append(self.band.log[self.durable :])

        if len(self.band.log) > self.durable:
            self.runner.run(append())
            self.durable = len(self.band.log)

    @rule()
    def crash(self) -> None:
        """Memory is gone, and with it all that was not durable. The next runtime knows the log and nothing else."""
        self.runner.run(self.store.close())
        self.store = self.opened()
        restored: State = self.runner.run(self.store.restore())
        self.band.log = self.band.log[: self.durable]
        self.band.state = restored
        self.begun.clear()
        self.do(StartRuntime("the next"))

    # --- what is always true; that the state is sound is checked on the way, by `Band.do` ---

    @invariant()
    def the_log_tells_it_so(self) -> None:
        told = Told()
        for record in self.band.log:
            told.hear(record.event)
        assert set(told.briefs) == set(self.band.state.tasks), "a task is lost"
        fresh = self.band.log[self.looked :] if len(self.band.log) >= self.looked else self.band.log
        self.seen.update(type(record.event) for record in fresh)
        self.looked = len(self.band.log)

    @invariant()
    def no_mail_is_lost_but_what_was_taken_back(self) -> None:
        for name, agent in self.band.state.agents.items():
            sent: list[str] = []
            for event in (record.event for record in self.band.log):
                match event:
                    case MessageQueued() if event.agent == name:
                        sent.append(event.message.id)
                    case Reminded() if event.agent == name:
                        sent.insert(0, event.message.id)
                    case MailWithdrawn() if event.agent == name:
                        sent = [each for each in sent if each not in event.message_ids]
                    case TurnEnded() if event.agent == name and event.outcome.answered:
                        sent.remove(event.message_id)
            waiting = ([agent.turn.message.id] if agent.turn else []) + [message.id for message in agent.queue]
            assert sorted(sent) == sorted(waiting), f"{name} was sent {sent} and has {waiting}"


SETTINGS = settings(max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.no_cover
def test_whatever_comes_in_whatever_order_no_task_is_lost_and_none_is_done_twice() -> None:
    Yard.seen.clear()
    run_state_machine_as_test(Yard, settings=SETTINGS)
    # A machine that never gets as far as something shows nothing of it.
    rare = {StepCompleted, TaskNoted, TaskEdited, WorkFailed, UserNotified, CompletionSignalled}
    expected = {TaskAdded, *get_args(TaskEvent), *OF_WORK} - rare
    assert expected <= set(Yard.seen), f"never seen: {expected - set(Yard.seen)}"
