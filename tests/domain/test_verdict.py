"""Fish or cut bait: triggers, who is asked, what the answer does, and when nobody answers."""

import pytest

from domain.drive import WORKER, replay
from domain.watched import Watched, at_work, family, nobody_answers, verdict
from remuda.domain.budget_commands import CheckBudget, SetBudget
from remuda.domain.commands import PauseAgent, ReapAgent, ResumeAgent, RetireAgent, StartRuntime
from remuda.domain.due import due
from remuda.domain.effects import AwaitVerdict, EndSession, RemoveBody, key
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import ReportIgnored, UserNotified
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import Status
from remuda.domain.spin import Trail
from remuda.domain.state import Sender, Usage
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import (
    ReportVerdictOverdue,
    SeekVerdict,
)
from remuda.domain.trigger_events import VerdictReached
from remuda.watch.verdict import Patience

# --- the trigger ---


def test_an_agent_whose_trigger_fires_is_stopped_where_it_stands_and_its_parent_is_asked() -> None:
    project = family()
    project.fires(WORKER, Trigger.CHANGESET, "it rewrites everything")
    agent = project.agent()
    assert agent.status is Status.PAUSED
    assert agent.turn is None
    assert [message.text for message in agent.queue] == ["do it"]
    assert agent.trigger is not None
    assert agent.trigger.evidence == "it rewrites everything"
    assert agent.sought is not None
    assert agent.sought.judge == "boss"
    turn = project.agent("boss").turn
    assert turn is not None
    assert turn.message.sender is Sender.SYSTEM
    assert "it rewrites everything" in turn.message.text
    assert f"remuda verdict {WORKER} reap" in turn.message.text
    assert [type(effect) for effect in due(agent)] == [EndSession, AwaitVerdict]
    assert replay(project.log).agents == project.state.agents


def test_the_nearest_ancestor_that_is_alive_is_asked_then_the_coordinator_then_the_user() -> None:
    project = family()
    project.do(RetireAgent("boss"))
    project.fires(WORKER)
    assert project.agent().sought is not None
    assert project.agent().sought.judge == "coordinator"  # type: ignore[union-attr]
    other = Watched()
    other.ready("coordinator")
    other.ready("crew", "lone")
    other.fires("lone")
    assert other.agent("lone").sought.judge == "coordinator"  # type: ignore[union-attr]
    other.fires("coordinator")
    assert other.agent("coordinator").sought.judge == "user"  # type: ignore[union-attr]
    assert any(isinstance(record.event, UserNotified) for record in other.log)


def test_one_that_reads_no_mail_is_not_asked() -> None:
    project = family()
    project.do(PauseAgent("boss"))
    project.fires(WORKER)
    assert project.agent().sought.judge == "coordinator"  # type: ignore[union-attr]
    project.do_spawn("worker", "worker-2", "boss")
    project.fires("coordinator")
    project.fires("worker-2")
    assert project.agent("worker-2").sought.judge == "user"  # type: ignore[union-attr]


def test_a_trigger_fires_once_until_there_is_a_verdict() -> None:
    project = at_work()
    project.fires(WORKER)
    with pytest.raises(Refused, match="waits for a verdict already"):
        project.fires(WORKER, Trigger.SPIN)


def test_a_trigger_during_a_kill_is_refused() -> None:
    project = at_work()
    project.do(ReapAgent(WORKER, "enough"))
    with pytest.raises(Refused, match="is reaped already"):
        project.fires(WORKER)
    project.ended()
    with pytest.raises(Refused, match="is reaped already"):
        project.fires(WORKER)


def test_an_agent_that_is_starting_stops_as_soon_as_it_has_started() -> None:
    project = Watched()
    project.spawn()
    project.send("do it")
    project.fires(WORKER)
    assert project.agent().status is Status.STARTING
    project.started()
    assert project.agent().status is Status.PAUSED


@pytest.mark.parametrize("hold", [True, False])
def test_one_that_never_started_can_be_cut_too(hold: bool) -> None:
    project = Watched()
    project.spawn(hold=hold)
    project.fires(WORKER)
    verdict(project, Course.REAP)
    assert project.agent().status is Status.REAPED


def test_no_verdict_is_asked_for_where_nothing_has_fired_or_for_a_time_that_cannot_be() -> None:
    project = at_work()
    with pytest.raises(Refused, match="no verdict"):
        project.do(SeekVerdict(WORKER, 5.0, Course.REAP))
    with pytest.raises(Invalid, match="can be waited for"):
        project.do(SeekVerdict(WORKER, 0.0, Course.REAP))


# --- the answers ---


def test_reaped_an_agent_is_dead_its_process_is_ended_at_once_and_its_parent_knows() -> None:
    project = family()
    project.fires(WORKER, evidence="beyond repair")
    verdict(project, Course.REAP, why="I agree")
    agent = project.agent()
    assert agent.status is Status.REAPED
    assert "changeset: beyond repair; reap by user: I agree" in agent.why
    assert [effect for effect in due(agent) if isinstance(effect, EndSession)] == [EndSession(WORKER, 1, gentle=False)]
    assert agent.trigger is not None
    assert agent.sought is None
    assert any("is reaped" in message.text for message in project.agent("boss").queue)


def test_told_to_continue_an_agent_goes_on_and_the_same_trigger_is_quiet_for_so_long() -> None:
    project = at_work()
    project.fires(WORKER, Trigger.SPIN)
    project.ended()
    verdict(project, Course.CONTINUE, seconds=60.0)
    assert project.agent().trigger is None
    assert project.agent().trail == Trail()
    project.started()
    assert project.agent().status is Status.WORKING
    with pytest.raises(Refused, match="may go on"):
        project.fires(WORKER, Trigger.SPIN)
    project.now += 60
    project.fires(WORKER, Trigger.SPIN)
    assert project.agent().status is Status.PAUSED
    with pytest.raises(Invalid, match="let go on"):
        verdict(project, Course.CONTINUE, seconds=-1.0)


def test_one_that_may_go_on_before_its_session_has_started_just_starts() -> None:
    project = Watched()
    project.spawn()
    project.fires(WORKER)
    verdict(project, Course.CONTINUE)
    assert project.agent().status is Status.STARTING
    project.started()
    assert project.agent().status is Status.READY


def test_an_override_of_one_trigger_is_none_of_another() -> None:
    project = at_work()
    project.fires(WORKER, Trigger.SPIN)
    verdict(project, Course.CONTINUE, seconds=60.0)
    project.fires(WORKER, Trigger.CHANGESET)
    assert project.agent().status is Status.PAUSED


def test_when_a_gang_may_go_on_who_was_paused_for_another_reason_goes_on_resting() -> None:
    project = family()
    project.do_spawn("worker", "worker-2", "boss")
    project.do(PauseAgent("worker-2", "by hand"))
    project.fires("boss", Trigger.GANG)
    assert project.agent(WORKER).status is Status.PAUSED
    verdict(project, Course.CONTINUE, "boss")
    assert [project.agent(each).status for each in ("boss", "worker-2")] == [Status.READY, Status.PAUSED]
    assert project.agent(WORKER).status is not Status.PAUSED


def test_of_two_verdicts_at_once_the_first_counts() -> None:
    project = at_work()
    project.fires(WORKER)
    verdict(project, Course.CONTINUE)
    with pytest.raises(Refused, match="somebody may have given one already"):
        verdict(project, Course.REAP)


def test_a_budget_needs_no_verdict_and_the_refusal_says_what_it_needs() -> None:
    project = at_work()
    project.do(SetBudget(f"agent:{WORKER}", Limits(tokens=1)))
    project.used(Usage(2, 0), 1)
    project.do(CheckBudget(WORKER))
    with pytest.raises(Refused, match=f"remuda budget grant {WORKER}"):
        verdict(project, Course.CONTINUE)


def test_a_verdict_on_the_dead_comes_too_late() -> None:
    project = at_work()
    project.fires(WORKER)
    project.do(RetireAgent(WORKER))
    with pytest.raises(Refused, match="too late"):
        verdict(project, Course.CONTINUE)


def test_to_wait_is_no_verdict() -> None:
    project = at_work()
    project.fires(WORKER)
    with pytest.raises(Invalid, match="no verdict"):
        verdict(project, Course.WAIT)


def test_to_resume_an_agent_is_to_let_it_go_on() -> None:
    project = at_work()
    project.fires(WORKER)
    project.do(ResumeAgent(WORKER))
    assert project.agent().sought is None
    with pytest.raises(Refused, match="given one already"):
        verdict(project, Course.REAP)


def test_a_gang_is_stopped_let_go_on_and_cut_as_a_whole() -> None:
    project = family()
    project.do_spawn("crew", "helper", WORKER)
    project.do(RetireAgent("helper"))
    project.fires("boss", Trigger.GANG)
    assert [project.agent(name).status for name in ("boss", WORKER)] == [Status.PAUSED] * 2
    verdict(project, Course.CONTINUE, "boss", seconds=5.0)
    assert [project.agent(name).status for name in ("boss", WORKER)] == [Status.READY] * 2
    project.now += 10
    project.fires(WORKER, Trigger.SPIN)
    project.fires("boss", Trigger.GANG)
    verdict(project, Course.CONTINUE, "boss", seconds=5.0)
    assert project.agent("boss").status is Status.READY
    assert project.agent().status is Status.PAUSED  # its own verdict is still awaited
    project.now += 10
    project.fires("boss", Trigger.GANG)
    verdict(project, Course.REAP, "boss")
    assert [project.agent(name).status for name in ("boss", WORKER)] == [Status.REAPED] * 2


# --- nobody answers ---


def test_where_nobody_answers_in_time_it_is_as_the_policy_says() -> None:
    project = family()
    project.fires(WORKER)
    (wait,) = (effect for effect in due(project.agent()) if isinstance(effect, AwaitVerdict))
    assert wait.until == project.now + 600
    project.now = wait.until
    project.do(ReportVerdictOverdue(WORKER, 1, wait.until))
    assert project.agent().status is Status.REAPED
    (reached,) = project.all(VerdictReached)
    assert isinstance(reached, VerdictReached)
    assert (reached.by, reached.why) == ("remuda", "boss did not answer in time")


def test_a_time_that_was_up_after_the_verdict_changes_nothing() -> None:
    project = at_work()
    project.fires(WORKER)
    until = project.agent().sought.until  # type: ignore[union-attr]
    verdict(project, Course.CONTINUE)
    for report in (ReportVerdictOverdue(WORKER, 1, until), ReportVerdictOverdue(WORKER, 1, until + 1)):
        (event,) = project.do(report)
        assert isinstance(event, ReportIgnored)
    assert project.agent().status is not Status.REAPED


def test_time_that_was_up_while_there_was_no_runtime_runs_once_more() -> None:
    project = family()
    project.fires(WORKER)
    until = project.agent().sought.until  # type: ignore[union-attr]
    project.do(StartRuntime("two"))
    assert project.agent().sought.until == until  # type: ignore[union-attr]
    project.now = until + 8 * 3600
    project.do(StartRuntime("three"))
    assert project.agent().sought.until == project.now + 600  # type: ignore[union-attr]
    (event,) = project.do(ReportVerdictOverdue(WORKER, 1, until))
    assert isinstance(event, ReportIgnored)
    nobody_answers(project)
    assert project.agent().status is Status.REAPED


@pytest.mark.parametrize("otherwise", [Course.RESTART, Course.CONTINUE])
def test_no_policy_lets_one_go_on_while_a_verdict_on_its_gang_is_awaited(otherwise: Course) -> None:
    project = family(Patience(600.0, otherwise))
    project.fires(WORKER, Trigger.SPIN)
    project.fires("boss", Trigger.GANG)
    nobody_answers(project)
    assert project.agent().status is Status.PAUSED
    assert project.agent().sought.until == project.now + 600  # type: ignore[union-attr]
    verdict(project, Course.CONTINUE, "boss")
    nobody_answers(project)
    assert project.agent().status is not Status.PAUSED


def test_a_policy_may_be_to_wait_for_as_long_as_it_takes() -> None:
    project = Watched(Patience(600.0, Course.WAIT))
    project.ready()
    project.fires(WORKER)
    assert [effect for effect in due(project.agent()) if isinstance(effect, AwaitVerdict)] == []
    assert project.agent().sought is not None


def test_two_waits_have_two_keys() -> None:
    assert key(AwaitVerdict(WORKER, 1, 5.0)) != key(AwaitVerdict(WORKER, 1, 6.0))
    assert key(RemoveBody(WORKER, 1)) != key(RemoveBody("worker-2", 1))
