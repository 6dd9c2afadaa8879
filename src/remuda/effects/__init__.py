"""DOES: effect → world → report. Each performer is idempotent by the effect's key."""

from typing import assert_never

from remuda.domain.commands import Report
from remuda.domain.effects import (
    AwaitVerdict,
    Effect,
    EndSession,
    GiveAnswer,
    KeepWork,
    MergeTask,
    PrepareWorktree,
    RemoveBody,
    RemoveWorktree,
    Rest,
    RunAcceptance,
    RunTurn,
    StartSession,
)
from remuda.effects.await_verdict import await_verdict
from remuda.effects.end_session import end_session
from remuda.effects.give_answer import give_answer
from remuda.effects.keep_work import keep_work
from remuda.effects.merge_task import merge_task
from remuda.effects.prepare_worktree import prepare_worktree
from remuda.effects.remove_body import remove_body
from remuda.effects.remove_worktree import remove_worktree
from remuda.effects.rest import rest
from remuda.effects.run_acceptance import run_acceptance
from remuda.effects.run_turn import run_turn
from remuda.effects.start_session import start_session
from remuda.effects.world import World


async def perform(world: World, effect: Effect) -> Report | None:
    match effect:
        case StartSession():
            return await start_session(world, effect)
        case RunTurn():
            return await run_turn(world, effect)
        case EndSession():
            return await end_session(world, effect)
        case Rest() | AwaitVerdict() | KeepWork() | RemoveBody() | GiveAnswer():
            return await _beside(world, effect)
        case PrepareWorktree():
            return await prepare_worktree(world, effect)
        case RunAcceptance():
            return await run_acceptance(world, effect)
        case MergeTask():
            return await merge_task(world, effect)
        case RemoveWorktree():
            return await remove_worktree(world, effect)
        case _:
            assert_never(effect)


async def _beside(world: World, effect: Rest | AwaitVerdict | KeepWork | RemoveBody | GiveAnswer) -> Report | None:
    """What needs no process of the agent's own."""
    match effect:
        case Rest():
            return await rest(world, effect)
        case AwaitVerdict():
            return await await_verdict(world, effect)
        case KeepWork():
            return await keep_work(world, effect)
        case RemoveBody():
            return await remove_body(world, effect)
        case GiveAnswer():
            return await give_answer(world, effect)
        case _:
            assert_never(effect)
