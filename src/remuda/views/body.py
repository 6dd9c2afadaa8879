"""A body: what a dead agent has left, for whoever wants to know why it died and how to go on."""

import shlex
from collections.abc import Collection, Iterable, Sequence

import msgspec

from remuda.domain.due import Debtors
from remuda.domain.events import AgentEvent, AgentSpawned, PhaseChanged, Recorded, StatusChanged, TriggerFired
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent
from remuda.domain.task import Task
from remuda.domain.task_events import StepCompleted
from remuda.domain.trigger_events import AgentNudged, VerdictReached
from remuda.views.agent import successor_of
from remuda.views.process_events import event_text, process_events
from remuda.views.roster import cost_usd, tokens
from remuda.views.text import first_line, moment, neutral, usd

LONGEST_STORY = 200  # events of it that are shown; the log has all
LONGEST_WORDS = 200  # of instructions in a command that can be typed
# What comes so often that it would hide the rest.
PLENTY = frozenset({"output", "token_usage", "queue_changed", "budget_reserved", "ready", "working"})


class Spend(msgspec.Struct, frozen=True):
    tokens: int
    cost_usd: float | None
    turns: int
    sessions: int
    seconds: float


class Body(msgspec.Struct, frozen=True):
    name: str
    role: str
    backend: str
    model: str
    parent: str
    after: str  # the agent whose place it took
    successor: str
    cause: str  # retired, failed or reaped
    why: str
    trigger: str
    rule: str
    evidence: str
    numbers: dict[str, int | float]
    verdict: str
    nudges: int
    last_status: str  # before it died
    last_phase: str
    task: str
    step: str
    created_at: float
    ended_at: float
    buried_at: float
    spend: Spend
    unread: list[str]  # mail that it did not get to
    last_output: list[str]
    transcripts: list[str]  # files, from the project's root
    diff: str  # of what it left against what it began from
    note: str  # why there is no diff, or not all of it
    work: str  # how to see all of it
    resume: str  # how to go on with its conversation
    restart: str  # how to have somebody else try
    timeline: list[str]


class Remains(msgspec.Struct, frozen=True):
    """What is found on the disk."""

    last_output: list[str] = []
    transcripts: list[str] = []
    diff: str = ""
    note: str = ""
    work: str = ""


def of_agent(agent: Agent, records: Iterable[Recorded]) -> list[Recorded]:
    """What tells of it, and which steps were done, by whomever, before it died."""

    def of_it(record: Recorded) -> bool:
        if isinstance(record.event, StepCompleted):
            return not agent.ended_at or record.at <= agent.ended_at
        return getattr(record.event, "agent", "") == agent.name

    return [each for each in records if of_it(each)]


def last_task(story: Sequence[Recorded]) -> str:
    """The task that it had last. Death takes it from the agent, so that somebody else may have it."""
    tasks = [each.event.task for each in story if isinstance(each.event, PhaseChanged) and each.event.task]
    return tasks[-1] if tasks else ""


def body(agent: Agent, story: Sequence[Recorded], known: Debtors, remains: Remains) -> Body:
    events = [each.event for each in story]
    deaths = [event for event in events if isinstance(event, StatusChanged) and event.now in DEAD]
    phases = [event for event in events if isinstance(event, PhaseChanged)]
    fired = next((event for event in reversed(events) if isinstance(event, TriggerFired)), None)
    said = next((event for event in reversed(events) if isinstance(event, VerdictReached)), None)
    cut = fired if agent.trigger is not None else None  # one that was overruled did not kill it
    session = agent.session
    name = last_task(story)
    done = {event.step for event in events if isinstance(event, StepCompleted) and event.task == name}
    return Body(
        name=agent.name,
        role=agent.role,
        backend=agent.backend,
        model=agent.model,
        parent=agent.parent,
        after=agent.after,
        successor=successor_of(agent.name, known.agents),
        cause=agent.status,
        why=agent.why,
        trigger=cut.trigger if cut else "",
        rule=cut.rule if cut else "",
        evidence=cut.evidence if cut else "",
        numbers=dict(cut.numbers) if cut else {},
        verdict=f"{said.course} by {said.by}" + (f": {said.why}" if said.why else "") if said else "",
        nudges=sum(isinstance(event, AgentNudged) for event in events),
        last_status=deaths[-1].was if deaths else "",
        last_phase=phases[-1].was if phases else "",
        task=name,
        step=_step(known.tasks.get(name), done),
        created_at=agent.created_at,
        ended_at=agent.ended_at,
        buried_at=agent.buried_at,
        spend=_spend(agent),
        unread=[f"{message.author}: {first_line(message.text)}" for message in agent.queue],
        last_output=remains.last_output,
        transcripts=remains.transcripts,
        diff=remains.diff,
        note=remains.note,
        work=remains.work,
        resume=f"conversation {session.ref} of {agent.backend}" if session and session.ref else "",
        restart=_restart(agent),
        timeline=_timeline(story, agent.role),
    )


def _restart(agent: Agent) -> str:
    """Another one like it. Instructions that do not fit on a line are in its first prompt, in the transcript."""
    words = agent.instructions
    said = [
        ("--backend", agent.backend),
        ("--model", agent.model),
        *(("--option", f"{key}={value}") for key, value in agent.options),
        ("--instructions", words if words.isprintable() and len(words) <= LONGEST_WORDS else ""),
    ]
    return shlex.join(["remuda", "spawn", agent.role, *(part for pair in said if pair[1] for part in pair)])


def _step(task: Task | None, done: Collection[int]) -> str:
    """Where it was when the agent died; others may have gone on since."""
    if task is None or not task.brief.steps:
        return ""
    left = [number for number in range(1, len(task.brief.steps) + 1) if number not in done]
    if not left:
        return f"all {len(task.brief.steps)} steps done"
    return f"step {left[0]} of {len(task.brief.steps)}: {task.brief.steps[left[0] - 1]}"


def _spend(agent: Agent) -> Spend:
    metrics = agent.metrics
    return Spend(
        tokens=tokens(metrics),
        cost_usd=cost_usd(metrics.cumulative_cost_nanousd, metrics),
        turns=agent.turns,
        sessions=agent.session.epoch if agent.session else 0,
        seconds=round(agent.ended_at - agent.created_at, 3),
    )


def _timeline(story: Sequence[Recorded], role: str) -> list[str]:
    told = [
        event_text(event)
        for record in story
        if isinstance(record.event, AgentSpawned | AgentEvent)
        for event in process_events(record, lambda _: role)
        if event.type not in PLENTY
    ]
    return told[-LONGEST_STORY:]


# --- as text ---


def body_text(shown: Body) -> str:
    spend = shown.spend
    pairs = [
        ("name", shown.name),
        ("cause", f"{shown.cause}: {shown.why}" if shown.why else shown.cause),
        ("trigger", f"{shown.trigger} ({shown.rule})" if shown.rule else shown.trigger),
        ("evidence", shown.evidence),
        ("verdict", shown.verdict),
        ("nudges", str(shown.nudges) if shown.nudges else ""),
        ("was", " ".join(part for part in (shown.last_status, shown.last_phase) if part)),
        ("task", " — ".join(part for part in (shown.task, shown.step) if part)),
        ("lived", f"{moment(shown.created_at)} to {moment(shown.ended_at)}"),
        ("spent", f"{spend.tokens} tokens, {usd(spend.cost_usd)}, {spend.turns} turns, {spend.sessions} sessions"),
        ("after", shown.after),
        ("successor", shown.successor),
        ("resume", shown.resume),
        ("restart", shown.restart),
        ("unread", "; ".join(shown.unread)),
        ("transcripts", ", ".join(shown.transcripts)),
        ("work", shown.work),
        ("diff", shown.note),
        ("buried", moment(shown.buried_at) if shown.buried_at else ""),
    ]
    room = max(len(label) for label, _ in pairs)
    lines = [f"{label:<{room}}  {neutral(first_line(value, 500))}" for label, value in pairs if value]
    for title, said in (
        ("last output", shown.last_output),
        ("diff", shown.diff.splitlines()),
        ("story", shown.timeline),
    ):
        if said:
            lines += ["", f"{title}:", *(f"  {neutral(line)}" for line in said)]
    return "\n".join(lines) + "\n"
