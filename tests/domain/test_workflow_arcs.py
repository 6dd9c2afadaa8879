"""What takes a worker or its task away, from every phase, and every arc of the tables: each reached by commands."""

from collections.abc import Callable

import pytest

from domain.crew import ADA, BOB, Crew
from remuda.domain.commands import Command, ReapAgent, RetireAgent, StartRuntime, StopAgent
from remuda.domain.errors import Refused
from remuda.domain.events import MessageQueued, PhaseChanged
from remuda.domain.lifecycle import PHASE, TASK, WORK, Phase, Stage, Status, TaskStatus, Work
from remuda.domain.task import Brief, NewTask
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
    EscalateTask,
    ReleaseReview,
    ReleaseTask,
    ReopenTask,
    ReplaceWorker,
    ReportImplementationComplete,
    ReportReviewVerdict,
    ReportWorkFailed,
    ReportWorktreeReady,
    SplitTask,
)
from remuda.domain.task_events import TaskStatusChanged
from remuda.domain.tools import Tool


@pytest.fixture
def crew() -> Crew:
    crew = Crew()
    crew.add()
    return crew


def parts(*titles: str) -> tuple[NewTask, ...]:
    return tuple(NewTask(Brief(title)) for title in titles)


# --- what takes a worker away, from every phase ---

PHASES: dict[Phase, Callable[[Crew], None]] = {
    Phase.IMPLEMENTING: Crew.at_work,
    Phase.AWAITING_REVIEW: Crew.in_review,
    Phase.ADDRESSING_FEEDBACK: Crew.denied,
    Phase.COMMITTING: Crew.committing,
    Phase.REVIEWING: lambda crew: crew.reviewing(agent=BOB, reviewer=ADA),
}
DEATHS: dict[str, Callable[[Crew], object]] = {
    "retired": lambda crew: crew.do(RetireAgent(ADA)),
    "reaped": lambda crew: crew.do(ReapAgent(ADA, "it spins")),
    "failed": lambda crew: crash(crew),
}


def crash(crew: Crew) -> None:
    """As often as it takes."""
    while crew.agent().status is not Status.FAILED:
        crew.ended(code=-9)
        if crew.agent().status is Status.STARTING:
            crew.started()
        if crew.agent().status is Status.READY:
            crew.send()


@pytest.mark.parametrize("death", list(DEATHS))
@pytest.mark.parametrize("phase", list(PHASES))
def test_from_every_phase_a_death_gives_the_task_back_or_lets_it_go_on(crew: Crew, phase: Phase, death: str) -> None:
    PHASES[phase](crew)
    assert crew.agent().phase is phase
    before = crew.task()
    DEATHS[death](crew)
    task = crew.task()
    assert (crew.agent().phase, crew.agent().task) == (Phase.IDLE, "")
    assert ADA not in (task.holder, task.reviewer)
    if phase in (Phase.IMPLEMENTING, Phase.ADDRESSING_FEEDBACK):
        assert (task.status, task.folder) == (TaskStatus.OPEN, "w/t1")
    else:
        assert (task.status, task.work) == (TaskStatus.IN_REVIEW, before.work)


@pytest.mark.parametrize("phase", list(PHASES))
def test_from_every_phase_a_stop_or_a_crash_keeps_the_task(crew: Crew, phase: Phase) -> None:
    PHASES[phase](crew)
    before = crew.task()
    crew.do(StopAgent(ADA))
    crew.do(StartRuntime("the next"))
    assert (crew.agent().phase, crew.agent().task) == (phase, "t1")
    assert crew.task() == before


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase is not Phase.COMMITTING])
@pytest.mark.parametrize("ask", [CancelTask("t1"), BlockTask("t1", "wait"), ReopenTask("t1")])
def test_from_every_phase_the_task_can_be_taken_away(crew: Crew, phase: Phase, ask: Command) -> None:
    PHASES[phase](crew)
    crew.do(ask)
    for name in (ADA, BOB):
        agent = crew.agent(name)
        assert (agent.phase, agent.task, agent.turn, agent.queue, agent.folder) == (Phase.IDLE, "", None, (), "")


def test_taking_a_task_away_cuts_its_turn_and_keeps_what_others_wrote(crew: Crew) -> None:
    crew.at_work()
    letter = crew.send("and mind the time zones")
    crew.do(CancelTask("t1"))
    agent = crew.agent()
    assert agent.session is not None
    assert (agent.status, agent.session.stage) == (Status.READY, Stage.ENDING)
    assert [message.id for message in agent.queue] == [letter]
    crew.settle(ADA)
    assert crew.agent().turn is not None


def test_a_turn_about_something_else_is_not_cut(crew: Crew) -> None:
    crew.send("hello")
    crew.assign()
    crew.do(ReportWorktreeReady("t1", 1, "w/t1"))
    crew.do(CancelTask("t1"))
    assert crew.agent().status is Status.WORKING
    assert crew.agent().queue == ()
    crew.ends_turn()
    assert crew.agent().status is Status.READY


# --- without a holder ---


def test_work_in_review_without_its_author_is_merged_all_the_same(crew: Crew) -> None:
    crew.in_review()
    crew.do(RetireAgent(ADA))
    crew.review()
    crew.says_of_it(approved=True)
    crew.do(ApproveCommit("t1"))
    crew.merged()
    assert crew.task().status is TaskStatus.DONE


def test_work_in_review_without_its_author_is_open_again_when_it_is_denied(crew: Crew) -> None:
    crew.in_review()
    crew.do(ReleaseTask("t1", "needed elsewhere"))
    assert (crew.task().status, crew.agent().phase) == (TaskStatus.IN_REVIEW, Phase.IDLE)
    crew.review()
    crew.says_of_it(approved=False)
    crew.do(AssignFeedback("t1"))
    assert crew.task().status is TaskStatus.OPEN
    assert "see line 3" in crew.task().notes[-1].text
    crew.at_work("t1", BOB)
    turn = crew.agent(BOB).turn
    assert turn is not None
    assert "see line 3" in turn.message.text


def test_a_merge_refused_after_its_author_died_opens_the_task_again(crew: Crew) -> None:
    crew.committing()
    crew.do(RetireAgent(ADA))
    crew.refused()
    assert (crew.task().status, crew.task().work) == (TaskStatus.OPEN, Work.PREPARED)


# --- replacing, escalating, taking apart ---


def test_a_successor_is_there_before_the_worker_goes_and_takes_its_task_over(crew: Crew) -> None:
    crew.at_work()
    crew.do(ReplaceWorker(ADA, "its context is full", model="larger"))
    new = crew.agent("worker-3")
    assert (new.phase, new.task, new.model) == (Phase.IMPLEMENTING, "t1", "larger")
    assert (crew.task().holder, crew.agent().status) == ("worker-3", Status.RETIRED)
    crew.started("worker-3")
    crew.prepared()
    assert crew.agent("worker-3").turn is not None


def test_a_successor_takes_a_review_over(crew: Crew) -> None:
    crew.reviewing()
    crew.do(ReplaceWorker(BOB))
    assert (crew.task().reviewer, crew.agent("worker-3").phase) == ("worker-3", Phase.REVIEWING)


def test_what_is_in_review_needs_no_successor(crew: Crew) -> None:
    crew.committing()
    crew.do(ReplaceWorker(ADA))
    assert (crew.task().holder, crew.agent("worker-3").phase) == ("", Phase.IDLE)
    crew.do(ReplaceWorker("worker-2"))
    assert crew.agent("worker-4").phase is Phase.IDLE


def test_only_a_worker_can_be_replaced(crew: Crew) -> None:
    crew.ready("crew")
    with pytest.raises(Refused, match="only workers can be replaced"):
        crew.do(ReplaceWorker("crew-1"))


def test_a_worker_that_cannot_go_on_leaves_its_task_blocked_with_the_reason(crew: Crew) -> None:
    crew.at_work()
    crew.do(EscalateTask(ADA, crew.epoch(ADA), "the specification contradicts itself"))
    assert crew.task().status is TaskStatus.BLOCKED
    assert crew.task().notes[-1].text == "the specification contradicts itself"
    assert crew.agent().status is Status.WORKING
    crew.ends_turn()
    assert crew.agent().phase is Phase.IDLE


def test_a_task_that_is_too_large_becomes_an_epic_whose_parts_go_on_from_its_branch(crew: Crew) -> None:
    crew.at_work()
    crew.do(DecomposeTask(ADA, crew.epoch(ADA), parts("Parse days", "Parse months")))
    assert (crew.task().status, crew.task().work) == (TaskStatus.DECOMPOSED, Work.CLEARING)
    assert [(task.brief.epic, task.base) for task in crew.state.tasks.values()][1:] == [("t1", "remuda/t1")] * 2
    crew.do(CloseTask("t2"))
    assert crew.task().status is TaskStatus.DECOMPOSED
    crew.do(CancelTask("t3"))
    assert crew.task().status is TaskStatus.DONE


def test_only_the_holder_may_take_its_task_apart_but_a_person_may_any(crew: Crew) -> None:
    crew.reviewing()
    with pytest.raises(Refused, match="worker-2 does not hold t1"):
        crew.do(DecomposeTask(BOB, crew.epoch(BOB), parts("a")))
    with pytest.raises(Refused, match="t1 is in_review and cannot become decomposed"):
        crew.do(SplitTask("t1", parts("a")))
    crew.add()
    crew.do(SplitTask("t2", parts("a")))
    assert crew.task("t2").status is TaskStatus.DECOMPOSED
    assert crew.task("t3").base == ""


# --- the tables ---


def test_every_arc_of_the_tables_is_walked_by_commands_and_no_other_is() -> None:
    """From every kind of state that commands lead to, every command about one task and its two workers."""
    walked: set[tuple[str, str]] = set()
    seen: dict[object, Crew] = {}
    start = Crew()
    start.add()
    frontier = [start]
    while frontier:
        crew = frontier.pop()
        if kind_of(crew) in seen:
            continue
        seen[kind_of(crew)] = crew
        for ask in commands(crew):
            after = crew.branch()
            try:
                after.do(ask)
            except Refused:
                continue
            for name in (ADA, BOB):
                after.settle(name)
            walked |= arcs(crew, after)
            frontier.append(after)
    for table in (PHASE, TASK, WORK):
        expected = {(was, now) for was, following in table.items() for now in following}
        of_table = {arc for arc in walked if arc[0] in table and type(arc[0]) is type(next(iter(table)))}
        assert of_table == expected


def kind_of(crew: Crew) -> object:
    task = crew.task()
    verdict = task.verdict and task.verdict.approved
    agents = [(crew.agent(name).phase, crew.agent(name).status) for name in (ADA, BOB)]
    return task.status, task.work, bool(task.holder), bool(task.reviewer), verdict, tuple(agents), bool(task.folder)


def commands(crew: Crew) -> list[Command]:
    epochs = {name: crew.epoch(name) for name in (ADA, BOB)}
    asks: list[Command] = [
        AssignTask("t1", ADA),
        AssignReview("t1", BOB),
        AssignFeedback("t1", "better"),
        ApproveCommit("t1", unreviewed=True),
        ReleaseTask("t1"),
        ReleaseReview("t1"),
        CancelTask("t1"),
        CloseTask("t1"),
        BlockTask("t1", "wait"),
        ReopenTask("t1"),
        SplitTask("t1", parts("a")),
        *(ReportImplementationComplete(name, epoch, "done") for name, epoch in epochs.items()),
        *(ReportReviewVerdict(BOB, epochs[BOB], approved, "so") for approved in (True, False)),
        ReportWorkFailed("t1", crew.task().attempt, "no"),
        *(report for well in (True, False) if (report := crew.answer_to("t1", well=well))),
    ]
    if "t2" in crew.state.tasks:
        asks += [CloseTask("t2"), CancelTask("t2")]
    return asks


def arcs(before: Crew, after: Crew) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    twin = before.branch()
    for record in after.log[len(before.log) :]:
        event = record.event
        was = twin.task().work
        twin.apply(record)
        if isinstance(event, PhaseChanged | TaskStatusChanged):
            found.add((event.was, event.now))
        if twin.task().work is not was:
            found.add((was, twin.task().work))
    return found


def test_a_worker_is_told_the_steps_that_are_left_and_what_the_one_who_assigns_it_adds(crew: Crew) -> None:
    brief = Brief("Print dates", "In every calendar.", steps=("days", "months"))
    crew.do(AddTasks((NewTask(brief),)))
    crew.do(CompleteStep("t2", 1))
    crew.do(AssignTask("t2", ADA, words="Mind the leap years."))
    crew.prepared("t2")
    turn = crew.agent().turn
    assert turn is not None
    for words in ("In every calendar.", "1. [x] days", "2. [ ] months", "Mind the leap years."):
        assert words in turn.message.text
    assert "It is accepted when" not in turn.message.text


def test_prompts_name_only_tools_that_exist(crew: Crew) -> None:
    crew.denied()
    texts = [event.message.text for event in crew.all(MessageQueued) if isinstance(event, MessageQueued)]
    named = {tool for tool in Tool for text in texts if tool in text}
    assert named >= {Tool.REPORT_IMPLEMENTATION_COMPLETE, Tool.REPORT_REVIEW_VERDICT, Tool.ESCALATE}
