"""Tokens and money: counted once, never believed blindly."""

from dataclasses import replace

import pytest

from domain.drive import WORKER, Project
from remuda.domain.commands import PauseAgent, ReportUsage
from remuda.domain.events import ReportIgnored, UsageRecorded
from remuda.domain.reports import MOST_NANOUSD, MOST_TOKENS
from remuda.domain.state import Usage

CALL = Usage(
    input_tokens=100,
    output_tokens=20,
    cache_read_tokens=300,
    cache_creation_tokens=40,
    context_tokens=440,
    context_window=200_000,
    cost_nanousd=5_000,
)


@pytest.fixture
def project() -> Project:
    project = Project()
    project.ready()
    project.send()
    return project


def refusal(project: Project) -> str:
    """Why the last report was not counted."""
    event = project.log[-1].event
    assert isinstance(event, ReportIgnored)
    assert event.report == "ReportUsage"
    return event.why


def test_every_field_of_a_call_is_added_up(project: Project) -> None:
    project.used(CALL, 1)
    project.used(replace(CALL, context_tokens=500, cost_nanousd=7_000), 2)
    metrics = project.agent().metrics
    assert metrics.input_tokens == 200
    assert metrics.output_tokens == 40
    assert metrics.cache_read_tokens == 600
    assert metrics.cache_creation_tokens == 80
    assert metrics.cumulative_cost_nanousd == metrics.total_cost_nanousd == metrics.turn_cost_nanousd == 12_000
    assert metrics.updated_at == project.now


def test_the_context_is_the_last_calls_and_stays_when_a_call_does_not_say(project: Project) -> None:
    project.used(CALL, 1)
    project.used(Usage(input_tokens=1, cost_nanousd=0), 2)
    assert (project.agent().metrics.context_tokens, project.agent().metrics.context_window) == (440, 200_000)
    project.used(replace(CALL, context_tokens=50), 3)
    assert project.agent().metrics.context_tokens == 50


def test_a_call_that_is_reported_twice_is_counted_once(project: Project) -> None:
    project.used(CALL, 1)
    before = project.agent().metrics
    project.used(CALL, 1)
    assert project.agent().metrics == before
    assert refusal(project) == "model call 1 was counted already (up to 1)"


def test_calls_may_be_missing_but_never_come_back(project: Project) -> None:
    project.used(CALL, 5)
    project.used(CALL, 3)
    assert project.agent().metrics.input_tokens == 100
    assert "counted already" in refusal(project)


@pytest.mark.parametrize(
    "field",
    [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_creation_tokens",
        "context_tokens",
        "context_window",
    ],
)
@pytest.mark.parametrize("lie", [-1, MOST_TOKENS + 1, 10**30])
def test_token_counts_that_cannot_be_are_kept_as_evidence_and_not_counted(
    project: Project, field: str, lie: int
) -> None:
    before = project.agent().metrics
    project.used(replace(CALL, **{field: lie}), 1)
    assert project.agent().metrics == before
    assert refusal(project) == "its token counts cannot be"


@pytest.mark.parametrize("lie", [-1, MOST_NANOUSD + 1])
def test_a_cost_that_cannot_be_is_kept_as_evidence_and_not_counted(project: Project, lie: int) -> None:
    project.used(replace(CALL, cost_nanousd=lie), 1)
    assert project.agent().metrics.cumulative_cost_nanousd == 0
    assert refusal(project) == "its cost cannot be"


def test_the_largest_numbers_that_can_be_are_counted(project: Project) -> None:
    project.used(Usage(MOST_TOKENS, cost_nanousd=MOST_NANOUSD), 1)
    assert project.agent().metrics.input_tokens == MOST_TOKENS
    assert project.agent().metrics.cumulative_cost_nanousd == MOST_NANOUSD


def test_a_lie_does_not_use_up_the_number_of_its_call(project: Project) -> None:
    project.used(replace(CALL, input_tokens=-1), 1)
    project.used(CALL, 1)
    assert project.agent().metrics.input_tokens == 100


def test_an_unknown_cost_is_counted_as_unknown_and_not_as_nothing(project: Project) -> None:
    project.used(replace(CALL, cost_nanousd=None), 1)
    assert (project.agent().metrics.unpriced_calls, project.agent().metrics.cumulative_cost_nanousd) == (1, 0)
    project.used(replace(CALL, cost_nanousd=0), 2)
    assert (project.agent().metrics.unpriced_calls, project.agent().metrics.cumulative_cost_nanousd) == (1, 0)


def test_money_spent_in_a_turn_that_was_cut_is_counted_while_the_process_is_on_its_way_out(project: Project) -> None:
    epoch, turn = project.epoch(), project.turn()
    project.do(PauseAgent(WORKER))
    events = project.do(ReportUsage(WORKER, epoch, turn, 1, CALL))
    assert events == (UsageRecorded(WORKER, epoch, turn, 1, CALL),)
    assert project.agent().metrics.cumulative_cost_nanousd == 5_000


def test_usage_of_a_session_that_is_over_is_not_counted(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    project.ended()
    project.used(CALL, 1)
    assert refusal(project) == "session 1 is ended"


def test_usage_of_another_session_is_not_counted(project: Project) -> None:
    project.ended()
    project.do(ReportUsage(WORKER, 1, 1, 1, CALL))
    assert refusal(project) == "it is of session 1, the present one is 2"
    assert project.agent().metrics.input_tokens == 0


def test_costs_are_of_the_turn_of_the_session_and_of_the_whole_life(project: Project) -> None:
    project.used(CALL, 1)
    project.answered()
    project.send()
    project.used(CALL, 2)
    metrics = project.agent().metrics
    assert (metrics.turn_cost_nanousd, metrics.total_cost_nanousd, metrics.cumulative_cost_nanousd) == (
        5_000,
        10_000,
        10_000,
    )
    project.ended()
    project.started()
    project.used(CALL, 1)
    metrics = project.agent().metrics
    assert (metrics.turn_cost_nanousd, metrics.total_cost_nanousd, metrics.cumulative_cost_nanousd) == (
        5_000,
        5_000,
        15_000,
    )


def test_a_late_report_of_an_earlier_turn_does_not_make_the_present_turn_dearer(project: Project) -> None:
    earlier = project.turn()
    project.answered()
    project.send()
    project.do(ReportUsage(WORKER, project.epoch(), earlier, 1, CALL))
    metrics = project.agent().metrics
    assert (metrics.turn_cost_nanousd, metrics.total_cost_nanousd) == (0, 5_000)


def test_a_report_that_comes_just_after_its_turn_still_belongs_to_it(project: Project) -> None:
    earlier = project.turn()
    project.answered()
    project.do(ReportUsage(WORKER, project.epoch(), earlier, 1, CALL))
    assert project.agent().metrics.turn_cost_nanousd == 5_000
