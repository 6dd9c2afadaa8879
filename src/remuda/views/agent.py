"""One agent in full."""

from collections.abc import Mapping

import msgspec

from remuda.domain.lifecycle import DEAD, STATUS, Status
from remuda.domain.state import Agent, Message, Metrics, Question
from remuda.views.roster import NANO, Row, backend_label, cost_usd, row
from remuda.views.text import age, columns, first_line, moment, neutral, usd


class SessionDetail(msgspec.Struct, frozen=True):
    epoch: int
    stage: str
    ref: str
    resumes: str
    calls: int
    errand: int
    metered: bool


class MessageDetail(msgspec.Struct, frozen=True):
    id: str
    sender: str
    author: str
    text: str
    at: float
    attempts: int


class TurnDetail(msgspec.Struct, frozen=True):
    number: int
    started_at: float
    message: MessageDetail


class MetricsDetail(msgspec.Struct, frozen=True):
    """Token use as people and programs see it: money in dollars, None where nobody knows it."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    context_tokens: int
    context_window: int
    turn_cost_usd: float | None
    total_cost_usd: float | None  # this session
    cumulative_cost_usd: float | None  # all sessions
    unpriced_calls: int
    updated_at: float


class QuestionDetail(msgspec.Struct, frozen=True):
    id: str
    tool: str
    arguments: str
    paths: list[str]
    title: str
    asked_at: float
    allow: bool | None  # None: it waits for an answer
    why: str
    answered_by: str


class TriggerDetail(msgspec.Struct, frozen=True):
    trigger: str
    rule: str
    evidence: str
    numbers: dict[str, int | float]
    turn: int  # in which it fired; 0: between turns
    at: float


class SoughtDetail(msgspec.Struct, frozen=True):
    """A verdict that is awaited."""

    judge: str  # who was asked
    until: float  # then it is as `otherwise` says; 0: for as long as it takes
    otherwise: str


class OverrideDetail(msgspec.Struct, frozen=True):
    """Somebody has said that it may go on."""

    trigger: str
    by: str
    until: float


class Detail(msgspec.Struct, frozen=True):
    agent: Row
    model: str
    instructions: str
    options: dict[str, str]
    possible: list[Status]  # where it may go from here
    crashes: int
    limits: int  # turns in a row that the model's service would not serve
    rest_until: float  # no turn is begun before; 0 for one that need not rest
    questions: list[QuestionDetail]
    session: SessionDetail | None
    turn: TurnDetail | None
    queue: list[MessageDetail]
    metrics: MetricsDetail
    trigger: TriggerDetail | None  # what it was stopped for
    sought: SoughtDetail | None
    override: OverrideDetail | None
    after: str  # the agent whose place it took
    successor: str


def detail(agent: Agent, now: float, agents: Mapping[str, Agent]) -> Detail:
    fired, sought, over = agent.trigger, agent.sought, agent.override
    if over is not None and (over.until <= now or agent.status in DEAD):
        over = None
    return Detail(
        agent=row(agent, now),
        model=agent.model,
        instructions=agent.instructions,
        options=dict(agent.options),
        possible=list(STATUS[agent.status]),
        crashes=agent.crashes,
        limits=agent.limits,
        rest_until=agent.rest_until,
        questions=[_question(each) for each in agent.questions],
        session=SessionDetail(*agent.session) if agent.session else None,
        turn=TurnDetail(agent.turn.number, agent.turn.started_at, _message(agent.turn.message)) if agent.turn else None,
        queue=[_message(each) for each in agent.queue],
        metrics=_metrics(agent.metrics),
        trigger=TriggerDetail(fired.trigger, fired.rule, fired.evidence, dict(fired.numbers), fired.turn, fired.at)
        if fired
        else None,
        sought=SoughtDetail(sought.judge, sought.until, sought.otherwise) if sought else None,
        override=OverrideDetail(over.trigger, over.by, over.until) if over else None,
        after=agent.after,
        successor=successor_of(agent.name, agents),
    )


def successor_of(name: str, agents: Mapping[str, Agent]) -> str:
    """Who took its place."""
    return next((each.name for each in agents.values() if each.after == name), "")


def _message(message: Message) -> MessageDetail:
    return MessageDetail(message.id, message.sender, message.author, message.text, message.at, message.attempts)


def _question(question: Question) -> QuestionDetail:
    return QuestionDetail(
        id=question.id,
        tool=question.tool,
        arguments=question.arguments,
        paths=list(question.paths),
        title=question.title,
        asked_at=question.asked_at,
        allow=question.allow,
        why=question.why,
        answered_by=question.answered_by,
    )


def _metrics(metrics: Metrics) -> MetricsDetail:
    return MetricsDetail(
        input_tokens=metrics.input_tokens,
        output_tokens=metrics.output_tokens,
        cache_read_tokens=metrics.cache_read_tokens,
        cache_creation_tokens=metrics.cache_creation_tokens,
        context_tokens=metrics.context_tokens,
        context_window=metrics.context_window,
        turn_cost_usd=metrics.turn_cost_nanousd * NANO,
        total_cost_usd=metrics.total_cost_nanousd * NANO,
        cumulative_cost_usd=cost_usd(metrics.cumulative_cost_nanousd, metrics),
        unpriced_calls=metrics.unpriced_calls,
        updated_at=metrics.updated_at,
    )


# --- as text ---


def detail_text(shown: Detail) -> str:
    pairs = [*_identity(shown), *_stopped(shown), *_work(shown), *_tokens(shown.metrics), *_words(shown)]
    return _table(pairs)


def verdict_text(shown: Detail) -> str:
    """What is asked about it, and how to answer."""
    name, fired = shown.agent.name, shown.trigger
    ways = [
        ("", ""),
        ("reap", f"remuda verdict {name} reap"),
        ("restart", f"remuda verdict {name} restart -m TEXT --model MODEL --backend BACKEND --tokens N"),
        ("continue", f"remuda verdict {name} continue --for 30m"),
    ]
    at = [("since", moment(fired.at))] if fired else []
    task = [("task", shown.agent.task)] if shown.agent.task else []
    return _table([("agent", name), *_stopped(shown), *at, *task, *ways])


def _table(pairs: list[tuple[str, str]]) -> str:
    room = max(columns(label) for label, _ in pairs)
    return "".join(f"{label:<{room}}  {neutral(value)}".rstrip() + "\n" for label, value in pairs)


def _stopped(shown: Detail) -> list[tuple[str, str]]:
    """Why it was stopped, and what follows; that it may go on; who came before it and after it."""
    pairs, name = [], shown.agent.name
    if shown.trigger:
        rule = f" ({shown.trigger.rule})" if shown.trigger.rule else ""
        pairs.append(("trigger", f"{shown.trigger.trigger}{rule}: {first_line(shown.trigger.evidence, 500)}"))
    if shown.sought:
        asked = shown.sought
        otherwise = f", else {asked.otherwise} at {moment(asked.until)}" if asked.until else ""
        pairs.append(("verdict", f"{asked.judge} is asked{otherwise}; see `remuda verdict {name}`"))
    if shown.override:
        over = shown.override
        pairs.append(("may go on", f"{over.by} says so: {over.trigger} does not fire before {moment(over.until)}"))
    return pairs + [pair for pair in (("after", shown.after), ("successor", shown.successor)) if pair[1]]


def _identity(shown: Detail) -> list[tuple[str, str]]:
    agent = shown.agent
    why = f" ({agent.why})" if agent.why else ""
    pairs = [
        ("name", agent.name),
        ("role", agent.role),
        ("backend", backend_label(agent.backend)),
        ("model", shown.model or "-"),
        ("status", agent.status + why),
        ("possible", ", ".join(shown.possible) or "nothing: it is dead"),
        ("parent", agent.parent or "-"),
        ("created", f"{moment(agent.created_at)} ({age(agent.age_seconds)})"),
        ("active", moment(agent.active_at)),
    ]
    return pairs if agent.alive else [*pairs, ("ended", moment(agent.ended_at))]


def _work(shown: Detail) -> list[tuple[str, str]]:
    agent, session, turn = shown.agent, shown.session, shown.turn
    pairs = [("phase", agent.phase or "-"), ("task", agent.task or "-")]
    where = f"{session.epoch}, {session.stage}" if session else "none yet"
    pairs.append(("session", where + (f", conversation {session.ref}" if session and session.ref else "")))
    pairs.append(("turns", f"{agent.turns} ended" + (f", {shown.crashes} crashes in a row" if shown.crashes else "")))
    if turn:
        pairs.append(("turn", f"{turn.number} since {moment(turn.started_at)}: {_mail(turn.message)}"))
    pairs += [("question", _asked(each)) for each in shown.questions]
    if shown.rest_until:
        pairs.append(("rests", f"until {moment(shown.rest_until)}: the model's service asks for patience"))
    pairs.append(("queue", f"{len(shown.queue)} waiting"))
    return pairs + [(f"  {number}.", _mail(each)) for number, each in enumerate(shown.queue, 1)]


def _asked(question: QuestionDetail) -> str:
    said = "waits for an answer; see `remuda answer`"
    if question.allow is not None:
        said = f"{'allowed' if question.allow else 'denied'} by {question.answered_by}"
    wish = first_line(question.arguments or ", ".join(question.paths) or question.title)
    return f"{question.id} may it use {question.tool}? {wish} ({said})"


def _mail(message: MessageDetail) -> str:
    again = f" (attempt {message.attempts + 1})" if message.attempts else ""
    return f"from {message.author}{again}: {first_line(message.text, 120)}"


def _tokens(metrics: MetricsDetail) -> list[tuple[str, str]]:
    known = not metrics.unpriced_calls
    unpriced = f" ({metrics.unpriced_calls} calls without a known price)" if metrics.unpriced_calls else ""
    return [
        ("input tokens", str(metrics.input_tokens)),
        ("output tokens", str(metrics.output_tokens)),
        ("cache read", str(metrics.cache_read_tokens)),
        ("cache creation", str(metrics.cache_creation_tokens)),
        ("context", f"{metrics.context_tokens} of {metrics.context_window or '?'}"),
        ("turn cost", usd(metrics.turn_cost_usd, complete=known)),
        ("session cost", usd(metrics.total_cost_usd, complete=known)),
        ("total cost", usd(metrics.cumulative_cost_usd, complete=known) + unpriced),
        ("counted", moment(metrics.updated_at)),
    ]


def _words(shown: Detail) -> list[tuple[str, str]]:
    pairs = [("option", f"{name}={value}") for name, value in shown.options.items()]
    return [*pairs, ("instructions", first_line(shown.instructions, 120) or "-")]
