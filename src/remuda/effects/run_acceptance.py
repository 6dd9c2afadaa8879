"""Is a task done? See that its work is in git, and run its acceptance commands on it."""

import asyncio

from remuda.domain.commands import Report
from remuda.domain.effects import RunAcceptance
from remuda.domain.errors import EffectFailed
from remuda.domain.task_commands import ReportAcceptance
from remuda.effects.acceptance import accept
from remuda.effects.work import SETTINGS
from remuda.effects.world import World
from remuda.git import line
from remuda.git.commit import NoWork, Work, gather
from remuda.git.repository import open_repository
from remuda.git.worktree import find


async def run_acceptance(world: World, effect: RunAcceptance) -> Report:
    repository = await asyncio.to_thread(open_repository, world.root)
    tree = await asyncio.to_thread(find, repository, effect.task)
    if tree is None:
        again = f"`remuda task reopen {effect.task}` has it made again"
        raise EffectFailed(f"the worktree of {effect.task} is gone; {again}")
    title = effect.title or f"Work on {effect.task}"
    work = await asyncio.to_thread(gather, repository, tree, title, {"Task": effect.task})
    if isinstance(work, NoWork):
        return ReportAcceptance(effect.task, effect.attempt, False, tail=work.why)
    if repository.prefix + SETTINGS in work.files:
        why = f"{SETTINGS} is the user's and cannot be changed by a task; take your change of it back and report again"
        return ReportAcceptance(effect.task, effect.attempt, False, work.commit, tail=why)
    accepted = await accept(world, f"{effect.task}/check-{effect.attempt}", tree.cwd, effect.commands)
    now = await asyncio.to_thread(line, tree.path, "rev-parse", tree.branch)
    if now != work.commit:
        why = f"{tree.branch} moved to {now[:12]} while {work.commit[:12]} was checked; let it stand and report again"
        return ReportAcceptance(effect.task, effect.attempt, False, work.commit, tail=why)
    evidence = str(accepted.evidence.relative_to(world.root)) if accepted.ran else ""
    text = _notes(work) + accepted.text
    holds = await asyncio.to_thread(line, tree.path, "rev-parse", f"{work.commit}^{{tree}}")
    return ReportAcceptance(
        effect.task, effect.attempt, accepted.ok, work.commit, evidence, text, holds, tuple(work.files)
    )


def _notes(work: Work) -> str:
    notes = ""
    if work.by_runtime:
        notes += "What was left uncommitted has been committed by Remuda.\n"
    if work.left_out:
        notes += f"Not committed, for they are repositories of their own: {', '.join(work.left_out)}\n"
    return notes
