"""Merge what was checked and approved: bring it on top, try the result out, and only then move the branch.

Whoever is first in the queue merges for all who wait with it. They are stacked, tried together, and halved when that
fails (git/queue.py). One whose turn is called off in the middle leaves the others as they were; the next takes over.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from remuda.domain.commands import Report
from remuda.domain.effects import MergeTask
from remuda.domain.errors import EffectFailed, Refused
from remuda.domain.task import Refusal
from remuda.domain.task_commands import ReportMerged, ReportMergeRefused
from remuda.effects.acceptance import LONGEST_TEXT, Accepted, accept, begin_file, set_up
from remuda.effects.work import Waiting
from remuda.effects.world import World
from remuda.git.merge import (
    Destination,
    destination,
    earlier,
    intend,
    land,
    pull_request_text,
    stand,
)
from remuda.git.queue import LONGEST, Batch
from remuda.git.rebase import Conflicted, bring
from remuda.git.repository import Repository, branch, commit_of, open_repository
from remuda.git.update import take_in
from remuda.git.worktree import find, is_ready, write_ready

PULL_REQUEST = "pull-request.md"


@dataclass(frozen=True, slots=True)
class Stacked:
    """One of those that are tried together, on top of those ahead of it."""

    member: Waiting
    result: str


async def merge_task(world: World, effect: MergeTask) -> Report:
    mine = Waiting(effect)
    queue = world.merges
    queue.waiting.append(mine)
    try:
        while mine.report is None:
            async with queue.one:
                if mine.report is None:
                    await _merge_some(world)
        return mine.report
    finally:
        queue.waiting.remove(mine)


async def _merge_some(world: World) -> None:
    """Get on with the queue: at least the first of it is told what came of it, or the target has moved."""
    waiting = [each for each in world.merges.waiting if each.report is None]
    target = waiting[0].effect.target or world.work.target
    members = [each for each in waiting if (each.effect.target or world.work.target) == target][:LONGEST]
    repository = await asyncio.to_thread(open_repository, world.root)
    to = await asyncio.to_thread(destination, repository, world.work.mode, target)
    if to.held:
        raise Refused(to.held)
    stack = await asyncio.to_thread(_stack, world, repository, to, members)
    if not stack:
        return
    batch, failure = Batch(len(stack)), None
    while count := batch.next_try:
        accepted = await _try_out(world, repository, stack[:count])
        batch = batch.tried(count, ok=accepted.ok)
        failure = failure if accepted.ok else accepted
    passed = [each for each in stack[: batch.passed] if each.member in world.merges.waiting]
    if len(passed) < batch.passed:
        return  # somebody among them was called off: the rest is tried without it
    if passed and not await asyncio.to_thread(_land, world, repository, to, passed):
        return  # the target moved: all of it is tried again on what it is now
    if batch.culprit is not None and failure is not None:
        await asyncio.to_thread(_refuse, world, repository, stack[batch.culprit].member, failure)


# --- before ---


def _stack(world: World, repository: Repository, to: Destination, members: Sequence[Waiting]) -> list[Stacked]:
    """Each on top of the one before. One that conflicts with somebody ahead waits until that one is merged."""
    stack: list[Stacked] = []
    for member in members:
        effect = member.effect
        if result := earlier(repository, effect.task, effect.commit, to):
            member.report = _merged(effect, to, result)
            continue
        if why := _why_not(repository, effect):
            member.report = ReportMergeRefused(effect.task, effect.attempt, Refusal.MOVED, tail=why)
            continue
        onto = stack[-1].result if stack else to.tip
        brought = bring(repository, effect.commit, onto, world.work.history, effect.message)
        if not isinstance(brought, Conflicted):
            stack.append(Stacked(member, brought.commit))
        elif not stack:
            member.report = _conflict(world, repository, effect, brought, to)
    return stack


def _why_not(repository: Repository, effect: MergeTask) -> str:
    tip = commit_of(repository, f"refs/heads/{effect.branch}")
    if not effect.commit or not commit_of(repository, effect.commit):
        return f"the commit that was approved ({effect.commit or 'none'}) is not in git"
    return "" if tip == effect.commit else f"{effect.branch} is at {tip or 'nothing'}, and {effect.commit} was approved"


def _conflict(
    world: World, repository: Repository, effect: MergeTask, found: Conflicted, to: Destination
) -> ReportMergeRefused:
    """All of it in a file, and as much as goes into a report."""
    files = "".join(f"  {name}\n" for name in found.files)
    where = f"{found.commit[:12]} ({found.subject}) conflicts with {to.branch} in\n"
    how = f"\n\n{_take_in(world, repository, effect)}"
    evidence = begin_file(world, f"{effect.task}/merge-{effect.attempt}")
    evidence.write_text(f"{where}{files}{found.said}\n\n{found.hunks}{how}\n", errors="surrogateescape")
    ahead = where + files[:300] + found.said[:300] + "\n\n"
    text = ahead + found.hunks[: LONGEST_TEXT - len(ahead) - len(how)] + how
    place = str(evidence.relative_to(world.root))
    return ReportMergeRefused(effect.task, effect.attempt, Refusal.CONFLICT, place, text)


def _take_in(world: World, repository: Repository, effect: MergeTask) -> str:
    """Begin the merge in the worktree of its worker, who may not be allowed to; and say what is to be done."""
    to = destination(repository, world.work.mode, effect.target or world.work.target)
    tree = find(repository, effect.task)
    why = take_in(tree, to.tip) if tree else "the worktree is gone"
    onto = to.branch if to.exists else to.tip
    if why:
        return f"It could not be begun for you in your worktree ({why}). Do it yourself: `git merge {onto}`"
    return f"The merge of {onto} is begun in your worktree. Edit its files until they are as they should be, and report"


# --- on the result ---


async def _try_out(world: World, repository: Repository, stack: Sequence[Stacked]) -> Accepted:
    last = stack[-1]
    commands = tuple(dict.fromkeys(command for each in stack for command in each.member.effect.commands))
    effect = last.member.effect
    path = await asyncio.to_thread(stand, repository, last.result)
    folder = path / repository.prefix
    if not await asyncio.to_thread(is_ready, path):
        await set_up(world, f"{effect.task}/set-up-merge-{effect.attempt}", folder)
        await asyncio.to_thread(write_ready, path, last.result, ready=True)
    return await accept(world, f"{effect.task}/merge-{effect.attempt}", folder, commands)


def _refuse(world: World, repository: Repository, member: Waiting, failure: Accepted) -> None:
    effect, evidence = member.effect, str(failure.evidence.relative_to(world.root))
    text = f"{failure.text}\n\n{_take_in(world, repository, effect)}"
    member.report = ReportMergeRefused(effect.task, effect.attempt, Refusal.ACCEPTANCE, evidence, text)


# --- and then ---


def _land(world: World, repository: Repository, to: Destination, passed: Sequence[Stacked]) -> bool:
    for each in passed:
        intend(repository, each.member.effect.task, each.member.effect.commit, each.result)
    last = passed[-1].result
    titles = ", ".join(each.member.effect.task for each in passed)
    if not land(repository, to, last, f"merge {titles}"):
        return False
    if world.work.mode == "pull-request-text":
        _write_text(world, repository, last, passed)
    for each in passed:
        each.member.report = _merged(each.member.effect, to, each.result)
    return True


def _merged(effect: MergeTask, to: Destination, result: str) -> ReportMerged:
    return ReportMerged(effect.task, effect.attempt, result, to.branch, to.next_step)


def _write_text(world: World, repository: Repository, commit: str, passed: Sequence[Stacked]) -> None:
    """Of all that waits to be taken, so it is written anew each time."""
    target = passed[0].member.effect.target or world.work.target or branch(repository)
    commands = tuple(dict.fromkeys(command for each in passed for command in each.member.effect.commands))
    try:
        (world.root / ".remuda" / PULL_REQUEST).write_text(pull_request_text(repository, target, commit, commands))
    except OSError as error:
        raise EffectFailed(f"the text for a pull request cannot be written: {error.strerror}") from error
