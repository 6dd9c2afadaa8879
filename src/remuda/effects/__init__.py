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
from remuda.domain.errors import EffectFailed
from remuda.effects.end_session import end_session
from remuda.effects.give_answer import give_answer
from remuda.effects.rest import rest
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
        case PrepareWorktree() | RunAcceptance() | MergeTask() | RemoveWorktree():
            raise EffectFailed("worktrees cannot be made here yet")
        case _:
            assert_never(effect)
