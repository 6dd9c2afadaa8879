"""Bodies, put together from the log, the transcripts and what was kept of the work in git. None of them changes after
the death, so that a body is the same whenever it is looked at."""

import asyncio
from collections.abc import Awaitable, Callable

from remuda.domain.draft import find
from remuda.domain.due import Debtors
from remuda.domain.errors import EffectFailed, Refused
from remuda.domain.events import Recorded
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent
from remuda.effects.bodies import BODIES
from remuda.git import ask, text
from remuda.runtime.place import Place
from remuda.store.transcript import last_lines
from remuda.views.body import Body, Remains, body, of_agent

LINES = 20  # of its last output
AT_ONCE = 10_000  # events
LONGEST_DIFF = 200_000  # characters

Read = Callable[[int, int], Awaitable[list[Recorded]]]


async def body_of(place: Place, read: Read, known: Debtors, name: str) -> Body:
    agent = find(known.agents, name)
    if agent.status not in DEAD:
        raise Refused(f"{name} is {agent.status}; only the dead leave a body: see `remuda show {name}`")
    story = await story_of(read, agent)
    remains = await asyncio.to_thread(_remains, place, agent)
    return body(agent, story, known, remains)


async def story_of(read: Read, agent: Agent) -> list[Recorded]:
    """What happened to it, and to the tasks that it had, as long as it lived."""
    story: list[Recorded] = []
    after = 0
    while records := await read(after, AT_ONCE):
        after = records[-1].seq
        story += of_agent(agent, records)
    return story


def _remains(place: Place, agent: Agent) -> Remains:
    folder = place.transcripts / agent.name
    files = sorted(str(each.relative_to(place.root)) for each in folder.glob("*.jsonl"))
    last = last_lines(place.transcripts, agent.name, LINES)
    diff, note = _diff(place, agent)
    kept = f"git show {BODIES}/{agent.name}" if agent.left and agent.left.commit and not agent.buried_at else ""
    return Remains(last, files, diff, note, kept)


def _diff(place: Place, agent: Agent) -> tuple[str, str]:
    """Of what it left against what it began from, as both were; or why there is none."""
    if agent.buried_at:
        return "", "it is buried, and what was kept of its work is gone"
    if agent.left is None:
        return "", "it is just being kept; ask again in a moment"
    if not agent.left.commit:
        return "", agent.left.note
    plain = ("--no-ext-diff", "--no-textconv", "--no-color")
    try:
        said = ask(place.root, "diff", *plain, f"{agent.left.commit}^", agent.left.commit, "--")
    except EffectFailed as error:
        return "", str(error)
    if said.code:
        return "", f"git does not have it any more: {said.said.strip()}"
    shown = text(said.out[:LONGEST_DIFF]).encode(errors="replace").decode()
    more = f"it is longer than {LONGEST_DIFF} bytes, and cut" if len(said.out) > LONGEST_DIFF else ""
    return shown, more if shown else "it changed nothing"
