"""The worker workflow, arc by arc, each reached by commands."""

import pytest

from domain.crew import ADA, BOB, Crew
from remuda.domain import prompts
from remuda.domain.commands import RetireAgent, StopAgent
from remuda.domain.due import due_for
from remuda.domain.effects import MergeTask, PrepareWorktree, RemoveWorktree, RunAcceptance
from remuda.domain.errors import Refused
from remuda.domain.events import PhaseChanged
from remuda.domain.lifecycle import Phase, TaskStatus, Work
from remuda.domain.task import Brief, NewTask, Refusal
from remuda.domain.task_commands import (
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    BlockTask,
    CancelTask,
    ReleaseReview,
    ReleaseTask,
    ReopenTask,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportMerged,
    ReportReviewVerdict,
    ReportWorkFailed,
    ReportWorktreeReady,
    ReportWorktreeRemoved,
)
from remuda.domain.task_events import TaskReportIgnored
from remuda.domain.workflow import MOST_SETBACKS


@pytest.fixture
def crew() -> Crew:
    crew = Crew()
    crew.add()
    return crew


def parts(*titles: str) -> tuple[NewTask, ...]:
    return tuple(NewTask(Brief(title)) for title in titles)


# --- the straight way ---


def test_a_task_goes_from_hand_to_hand_until_it_is_merged(crew: Crew) -> None:
    crew.assign()
    assert due_for(crew.task()) == (PrepareWorktree("t1", 1, "remuda/t1", "", ""),)
    assert (crew.agent().phase, crew.agent().turn) == (Phase.IMPLEMENTING, None)
    crew.prepared()
    assert crew.agent().folder == "w/t1"
    turn = crew.agent().turn
    assert turn is not None
    assert "Parse dates" in turn.message.text
    assert "make test" in turn.message.text
    crew.reports()
    assert (crew.task().status, crew.agent().phase) == (TaskStatus.IN_REVIEW, Phase.AWAITING_REVIEW)
    assert due_for(crew.task()) == (RunAcceptance("t1", 2, "w/t1", "remuda/t1", "", "", ("make test",), "Parse dates"),)
    crew.ends_turn()
    crew.accepted()
    assert due_for(crew.task()) == ()
    crew.review()
    assert crew.agent(BOB).phase is Phase.REVIEWING
    assert crew.agent(BOB).folder == "w/t1"
    crew.says_of_it(approved=True)
    assert crew.agent(BOB).phase is Phase.IDLE
    crew.do(ApproveCommit("t1", message="Parse dates"))
    assert crew.agent().phase is Phase.COMMITTING
    merge = MergeTask("t1", 3, "w/t1", "remuda/t1", "c1", "", ("make test",), "Parse dates")
    assert due_for(crew.task()) == (merge,)
    crew.merged()
    assert (crew.task().status, crew.agent().phase, crew.task().holder) == (TaskStatus.DONE, Phase.IDLE, "")
    assert due_for(crew.task()) == (RemoveWorktree("t1", 4, "w/t1", "remuda/t1", merged=True),)
    crew.do(ReportWorktreeRemoved("t1", 4))
    assert due_for(crew.task()) == ()


def test_a_worker_is_free_for_the_next_task_in_a_conversation_of_its_own(crew: Crew) -> None:
    crew.done()
    crew.add("Print dates")
    crew.settle(ADA)
    assert crew.agent().folder == ""
    crew.at_work("t2")
    session = crew.agent().session
    assert session is not None
    assert session.resumes == ""
    assert crew.agent().turn is not None


def test_a_denial_goes_back_to_the_author_with_the_comments_and_the_same_conversation(crew: Crew) -> None:
    crew.denied()
    assert (crew.task().status, crew.agent().phase) == (TaskStatus.IN_PROGRESS, Phase.ADDRESSING_FEEDBACK)
    turn, session = crew.agent().turn, crew.agent().session
    assert turn is not None
    assert session is not None
    assert "see line 3" in turn.message.text
    assert session.epoch == 2
    crew.reports()
    assert crew.agent().phase is Phase.AWAITING_REVIEW
    assert crew.task().verdict is None


def test_a_failed_check_goes_back_to_the_worker_with_the_output_and_is_never_reviewed(crew: Crew) -> None:
    crew.at_work()
    crew.reports()
    crew.ends_turn()
    crew.accepted(ok=False)
    assert (crew.task().status, crew.agent().phase) == (TaskStatus.IN_PROGRESS, Phase.ADDRESSING_FEEDBACK)
    turn = crew.agent().turn
    assert turn is not None
    assert "red" in turn.message.text
    with pytest.raises(Refused, match="only what has passed its checks"):
        crew.do(AssignReview("t1", BOB))


@pytest.mark.parametrize("reason", list(Refusal))
def test_a_refused_merge_goes_back_to_the_worker_by_way_of_idle(crew: Crew, reason: Refusal) -> None:
    crew.committing()
    events = crew.refused(reason=reason)
    walked = [(event.was, event.now) for event in events if isinstance(event, PhaseChanged)]
    assert walked == [(Phase.COMMITTING, Phase.IDLE), (Phase.IDLE, Phase.IMPLEMENTING)]
    assert (crew.task().status, crew.task().work) == (TaskStatus.IN_PROGRESS, Work.PREPARED)
    turn = crew.agent().turn
    assert turn is not None
    assert prompts.WHY_NOT[reason] in turn.message.text


def test_after_too_many_setbacks_a_person_has_to_look(crew: Crew) -> None:
    crew.at_work()
    for _ in range(MOST_SETBACKS):
        crew.reports()
        crew.ends_turn()
        crew.accepted(ok=False)
    assert crew.task().status is TaskStatus.BLOCKED
    assert crew.agent().phase is Phase.IDLE
    assert "red" in crew.task().notes[-1].text
    crew.do(ReopenTask("t1"))
    assert (crew.task().status, crew.task().setbacks) == (TaskStatus.OPEN, 0)


def test_a_worker_that_gets_nowhere_too_often_leaves_it_blocked(crew: Crew) -> None:
    for _ in range(MOST_SETBACKS):
        crew.assign()
        crew.do(ReleaseTask("t1", "it got nowhere", setback=True))
    assert crew.task().status is TaskStatus.BLOCKED


# --- refusals ---


def test_a_task_has_one_holder_and_a_worker_one_task(crew: Crew) -> None:
    crew.add()
    crew.assign()
    with pytest.raises(Refused, match="t1 is in_progress; only what is open can be assigned"):
        crew.assign("t1", BOB)
    with pytest.raises(Refused, match="worker-1 is implementing and cannot become implementing"):
        crew.assign("t2", ADA)


def test_nobody_reviews_their_own_work_not_even_after_handing_it_over(crew: Crew) -> None:
    crew.in_review()
    with pytest.raises(Refused, match="nobody reviews their own work"):
        crew.do(AssignReview("t1", ADA))
    crew.do(ReleaseTask("t1"))
    with pytest.raises(Refused, match="nobody reviews their own work"):
        crew.do(AssignReview("t1", ADA))


def test_an_epic_and_what_waits_cannot_be_assigned(crew: Crew) -> None:
    epic = crew.epic(needs=("t1",))
    part = crew.add(epic=epic)
    with pytest.raises(Refused, match="is an epic; assign its parts"):
        crew.assign(epic)
    with pytest.raises(Refused, match="t3 waits for t1"):
        crew.assign(part)


def test_only_a_living_worker_can_be_given_a_task(crew: Crew) -> None:
    crew.ready("crew")
    with pytest.raises(Refused, match="crew-1 is a crew; only workers take tasks"):
        crew.assign("t1", "crew-1")
    crew.do(RetireAgent(ADA))
    with pytest.raises(Refused, match="worker-1 is retired; give the task to somebody alive"):
        crew.assign()


def test_a_second_reviewer_a_merge_without_review_and_one_after_a_denial_are_refused(crew: Crew) -> None:
    carl = crew.ready()
    crew.reviewing()
    with pytest.raises(Refused, match="worker-2 reviews t1 already"):
        crew.do(AssignReview("t1", carl))
    with pytest.raises(Refused, match="nobody has reviewed t1"):
        crew.do(ApproveCommit("t1"))
    crew.says_of_it(approved=False)
    with pytest.raises(Refused, match="worker-2 has denied t1"):
        crew.do(ApproveCommit("t1", unreviewed=True))


def test_without_a_review_it_is_merged_only_when_somebody_says_so(crew: Crew) -> None:
    crew.reviewing()
    crew.do(ApproveCommit("t1", unreviewed=True))
    assert crew.task().work is Work.MERGING
    assert crew.agent(BOB).phase is Phase.IDLE
    assert "Task: t1" in crew.task().message


def test_feedback_needs_a_checked_task_and_words(crew: Crew) -> None:
    with pytest.raises(Refused, match="only what waits for its review"):
        crew.do(AssignFeedback("t1", "do better"))
    crew.in_review()
    with pytest.raises(Refused, match="say what is to be done about t1"):
        crew.do(AssignFeedback("t1"))
    crew.add()
    with pytest.raises(Refused, match="only what has passed its checks can be merged"):
        crew.do(ApproveCommit("t2"))


def test_a_report_or_verdict_of_somebody_without_the_task_is_refused(crew: Crew) -> None:
    with pytest.raises(Refused, match="worker-1 has no task"):
        crew.reports()
    crew.assign()
    with pytest.raises(Refused, match="the worktree of t1 is not ready yet"):
        crew.reports()
    with pytest.raises(Refused, match="worker-1 does not review t1"):
        crew.do(ReportReviewVerdict(ADA, crew.epoch(ADA), approved=True, comments=""))


def test_what_a_session_says_that_is_over_does_not_count(crew: Crew) -> None:
    crew.at_work()
    with pytest.raises(Refused, match="session 1 of worker-1 is over"):
        crew.do(ReportImplementationComplete(ADA, 1, "done"))
    crew.do(StopAgent(ADA))
    with pytest.raises(Refused, match="session 2 of worker-1 is over"):
        crew.do(ReportImplementationComplete(ADA, 2, "done"))
    crew.ready("crew", "cid")
    crew.spawn("crew", "dan", hold=True)
    crew.spawn("crew", "eve")
    with pytest.raises(Refused, match="session 1 of eve has not begun yet; try again"):
        crew.do(ReportImplementationComplete("eve", 1, "done"))
    with pytest.raises(Refused, match="session 0 of dan is over"):
        crew.do(ReportImplementationComplete("dan", 0, "done"))


def test_what_is_being_merged_cannot_be_taken_away(crew: Crew) -> None:
    crew.committing()
    for ask in (CancelTask("t1"), BlockTask("t1", "wait"), ReopenTask("t1")):
        with pytest.raises(Refused, match="t1 is merging; wait until the outcome is known"):
            crew.do(ask)


def test_nobody_can_be_released_from_what_nobody_has(crew: Crew) -> None:
    with pytest.raises(Refused, match="nobody holds t1"):
        crew.do(ReleaseTask("t1"))
    with pytest.raises(Refused, match="nobody reviews t1"):
        crew.do(ReleaseReview("t1"))


# --- late reports ---


def test_a_late_or_doubled_report_is_kept_and_never_applied(crew: Crew) -> None:
    crew.at_work()
    before = crew.task()
    late = (
        ReportWorktreeReady("t1", 1, "elsewhere"),
        ReportAcceptance("t1", 1, ok=True),
        ReportMerged("t1", 7, "m", "main"),
        ReportWorktreeRemoved("t1", 1),
        ReportWorkFailed("t1", 0, "no"),
    )
    for report in late:
        events = crew.do(report)
        assert [type(event) for event in events] == [TaskReportIgnored]
    assert crew.task()._replace(changed_at=0) == before._replace(changed_at=0)


def test_the_outcome_of_an_earlier_check_is_not_taken_for_that_of_the_present_one(crew: Crew) -> None:
    crew.at_work()
    crew.reports()
    crew.ends_turn()
    first = crew.task().attempt
    crew.accepted(ok=False)
    crew.reports()
    crew.ends_turn()
    events = crew.do(ReportAcceptance("t1", first, ok=True, commit="c1"))
    assert [type(event) for event in events] == [TaskReportIgnored]
    assert crew.task().work is Work.CHECKING


def test_what_the_world_will_not_do_blocks_the_task_and_frees_its_worker(crew: Crew) -> None:
    for expected in (Work.PREPARING, Work.CHECKING, Work.MERGING):
        crew.assign()
        if expected is not Work.PREPARING:
            crew.prepared()
            crew.reports()
            crew.ends_turn()
        if expected is Work.MERGING:
            crew.accepted()
            crew.do(ApproveCommit("t1", unreviewed=True))
        assert crew.task().work is expected
        crew.do(ReportWorkFailed("t1", crew.task().attempt, "no disk"))
        assert (crew.task().status, crew.agent().phase) == (TaskStatus.BLOCKED, Phase.IDLE)
        assert "no disk" in crew.task().why
        crew.settle(ADA)
        crew.do(ReopenTask("t1"))
