"""Mail: queued when the agent has no time, delivered when it has, in order, and never lost."""

import pytest

from domain.drive import WORKER, Project
from remuda.domain.commands import HibernateAgent, PauseAgent, ReapAgent, ResumeAgent, RetireAgent, StopAgent
from remuda.domain.decide import LONGEST_QUEUE
from remuda.domain.errors import Refused
from remuda.domain.events import MessageQueued, SessionRequested, StatusChanged, TurnEnded, TurnStarted
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Outcome, Sender


@pytest.fixture
def project() -> Project:
    project = Project()
    project.ready()
    return project


def waiting(project: Project) -> list[str]:
    return [message.id for message in project.agent().queue]


def in_turn(project: Project) -> str:
    turn = project.agent().turn
    assert turn is not None
    return turn.message.id


def test_mail_to_a_ready_agent_begins_a_turn_at_once(project: Project) -> None:
    project.send("hello")
    queued, begun, moved = [record.event for record in project.log[-3:]]
    assert isinstance(queued, MessageQueued)
    assert queued.queue_count == 1
    assert begun == TurnStarted(WORKER, 1, 1, "m1", 0)
    assert moved == StatusChanged(WORKER, Status.READY, Status.WORKING, "turn 1")


def test_mail_to_a_working_agent_waits_in_order_and_is_delivered_one_turn_each(project: Project) -> None:
    for text in ("one", "two", "three"):
        project.send(text)
    assert (in_turn(project), waiting(project)) == ("m1", ["m2", "m3"])
    project.answered()
    assert (in_turn(project), waiting(project)) == ("m2", ["m3"])
    project.answered(outcome=Outcome.FAILED)
    assert (in_turn(project), waiting(project)) == ("m3", [])
    project.answered()
    assert project.agent().status is Status.READY
    assert project.agent().turns == 3


def test_a_message_keeps_its_sender_its_author_and_its_time(project: Project) -> None:
    project.send("hello", sender=Sender.COORDINATOR)
    turn = project.agent().turn
    assert turn is not None
    assert (turn.message.sender, turn.message.author, turn.message.text) == (
        Sender.COORDINATOR,
        "coordinator",
        "hello",
    )
    assert turn.message.at == turn.started_at == project.now


def test_turns_of_all_agents_are_numbered_on_one_clock(project: Project) -> None:
    other = project.ready()
    project.send()
    project.send(name=other)
    project.answered()
    project.send()
    assert [event.turn for event in project.all(TurnStarted) if isinstance(event, TurnStarted)] == [1, 2, 3]
    assert project.turn(other) == 2


def test_mail_to_a_starting_agent_waits_for_its_session() -> None:
    project = Project()
    project.spawn()
    project.send()
    assert project.agent().status is Status.STARTING
    project.started()
    assert in_turn(project) == "m1"


def test_mail_to_a_held_agent_waits_until_it_is_resumed_and_started() -> None:
    project = Project()
    project.spawn(hold=True)
    project.send()
    assert project.agent().status is Status.PENDING
    project.do(ResumeAgent(WORKER))
    project.started()
    assert in_turn(project) == "m1"


@pytest.mark.parametrize("rest", [PauseAgent, StopAgent])
def test_an_interrupted_message_waits_at_the_head_of_the_queue(
    project: Project, rest: type[PauseAgent | StopAgent]
) -> None:
    project.send("one")
    project.send("two")
    project.do(rest(WORKER, "lunch"))
    assert project.log[-1].event == TurnEnded(WORKER, 1, 1, "m1", Outcome.INTERRUPTED, "", "lunch")
    assert waiting(project) == ["m1", "m2"]
    assert [message.attempts for message in project.agent().queue] == [1, 0]


def test_a_turn_cut_without_a_reason_says_what_became_of_the_agent(project: Project) -> None:
    project.send()
    project.do(StopAgent(WORKER))
    assert project.log[-1].event == TurnEnded(WORKER, 1, 1, "m1", Outcome.INTERRUPTED, "", "the agent was stopped")


def test_a_message_lost_with_its_session_is_delivered_first_in_the_next(project: Project) -> None:
    project.send("one")
    project.send("two")
    project.ended(detail="killed", code=-9)
    assert waiting(project) == ["m1", "m2"]
    project.started()
    assert in_turn(project) == "m1"
    assert project.agent().queue[0].id == "m2"


def test_attempts_count_every_turn_that_was_cut_short(project: Project) -> None:
    project.send()
    for attempts in (1, 2):
        project.ended()
        assert project.agent().queue[0].attempts == attempts
        project.started()
    turn = project.agent().turn
    assert turn is not None
    assert turn.message.attempts == 2


def test_a_resumed_agent_has_no_process_until_it_is_spoken_to(project: Project) -> None:
    project.do(StopAgent(WORKER))
    project.ended()
    project.do(ResumeAgent(WORKER))
    assert project.agent().status is Status.READY
    assert project.epoch() == 1
    project.send()
    assert project.agent().status is Status.STARTING
    assert project.epoch() == 2


def test_resuming_waits_for_the_old_process_to_be_gone_before_it_asks_for_a_new_one(project: Project) -> None:
    project.send()
    project.do(PauseAgent(WORKER))
    project.do(ResumeAgent(WORKER))
    session = project.agent().session
    assert session is not None
    assert (project.agent().status, session.epoch, session.stage) == (Status.READY, 1, Stage.ENDING)
    assert waiting(project) == ["m1"]
    events = project.ended()
    assert SessionRequested(WORKER, 2, "ref-1") in events
    project.started()
    assert in_turn(project) == "m1"


def test_resuming_after_the_process_is_gone_takes_up_waiting_mail_at_once(project: Project) -> None:
    project.send()
    project.do(PauseAgent(WORKER))
    project.ended()
    project.do(ResumeAgent(WORKER))
    assert project.agent().status is Status.STARTING
    assert project.epoch() == 2


def test_a_hibernating_agent_sleeps_until_mail_wakes_it(project: Project) -> None:
    project.do(HibernateAgent(WORKER, "nothing to do"))
    project.ended()
    assert project.agent().status is Status.HIBERNATING
    project.send()
    assert project.agent().status is Status.STARTING
    session = project.agent().session
    assert session is not None
    assert session.resumes == "ref-1"


def test_mail_to_one_that_is_only_falling_asleep_wakes_it_when_its_process_is_gone(project: Project) -> None:
    project.do(HibernateAgent(WORKER))
    project.send()
    assert project.agent().status is Status.HIBERNATING
    project.ended()
    assert project.agent().status is Status.STARTING


def test_a_paused_agent_takes_mail_and_does_not_read_it(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    project.ended()
    project.send()
    assert project.agent().status is Status.PAUSED
    assert waiting(project) == ["m1"]


def test_mail_to_the_dead_is_refused_with_what_to_do(project: Project) -> None:
    project.do(ReapAgent(WORKER, "it spins"))
    with pytest.raises(Refused, match="worker-1 is reaped and reads no mail; spawn a successor"):
        project.send()


def test_the_unread_mail_of_the_dead_stays_with_them(project: Project) -> None:
    project.send()
    project.send()
    project.do(RetireAgent(WORKER))
    assert waiting(project) == ["m1", "m2"]


def test_a_queue_has_an_end_and_says_so(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    for _ in range(LONGEST_QUEUE):
        project.send()
    with pytest.raises(Refused, match=f"has {LONGEST_QUEUE} messages waiting"):
        project.send()
    assert len(project.agent().queue) == LONGEST_QUEUE
