"""DOES: effect → world → report. Each performer is idempotent by the effect's key."""

from typing import assert_never

from remuda.domain.commands import Report
from remuda.domain.effects import (
    Effect,
    EndSession,
    GiveAnswer,
    MergeTask,
    PrepareWorktree,
    RemoveWorktree,
    Rest,
    RunAcceptance,
    RunTurn,
    StartSession,
)
from remuda.effects.end_session import end_session
from remuda.effects.give_answer import give_answer
from remuda.effects.merge_task import merge_task
from remuda.effects.prepare_worktree import prepare_worktree
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
        case Rest():
            return await rest(world, effect)
        case GiveAnswer():
            return await give_answer(world, effect)
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
