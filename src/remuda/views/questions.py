"""The questions that wait for somebody."""

from collections.abc import Mapping

import msgspec

from remuda.domain.state import Agent
from remuda.views.table import Column, table
from remuda.views.text import age, first_line

COLUMNS = (
    Column("QUESTION"),
    Column("AGENT"),
    Column("MAY IT USE"),
    Column("FOR", elastic=True),
    Column("AGE", right=True),
)


class QuestionRow(msgspec.Struct, frozen=True):
    question: str
    agent: str
    tool: str
    arguments: str
    paths: list[str]
    title: str
    asked_at: float


def open_questions(agents: Mapping[str, Agent]) -> list[QuestionRow]:
    return [
        QuestionRow(each.id, agent.name, each.tool, each.arguments, list(each.paths), each.title, each.asked_at)
        for agent in agents.values()
        for each in agent.questions
        if each.allow is None
    ]


def questions_text(rows: list[QuestionRow], now: float, *, width: int | None = None) -> str:
    if not rows:
        return "no agent waits for an answer\n"
    cells = [(each.question, each.agent, each.tool, _wish(each), age(now - each.asked_at)) for each in rows]
    return table(COLUMNS, cells, width=width)


def _wish(row: QuestionRow) -> str:
    return first_line(row.arguments or ", ".join(row.paths) or row.title)
