"""What people and programs look at: each page is a function of the state. The API serves them at these addresses; where
no runtime is up, the commands make the same pages from the log."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from remuda.domain.accounts import scopes
from remuda.domain.draft import find, find_task
from remuda.domain.state import State
from remuda.views import roster, tasks
from remuda.views.agent import detail, detail_text
from remuda.views.budget import AccountRow, budgets, budgets_text
from remuda.views.loops import Loop, loops_text, open_loops
from remuda.views.query import flag, number
from remuda.views.questions import QuestionRow, open_questions, questions_text

WIDEST = 10_000


@dataclass(frozen=True, slots=True)
class Look:
    """At what, and how it is to be shown."""

    state: State
    project: str
    now: float
    asked: Mapping[str, str]  # of the address: the names in its path, and what follows it

    @property
    def as_text(self) -> bool:
        return self.asked.get("format") == "text"

    @property
    def width(self) -> int | None:
        return number(self.asked, "width", 0, most=WIDEST) or None

    @property
    def colour(self) -> bool:
        return flag(self.asked, "color")


class Roster(msgspec.Struct, frozen=True):
    project: str
    seq: int
    agents: list[roster.Row]


class Tasks(msgspec.Struct, frozen=True):
    seq: int
    tasks: list[tasks.TaskRow] | list[tasks.TaskDetail]


class Budgets(msgspec.Struct, frozen=True):
    seq: int
    budgets: list[AccountRow]


class Questions(msgspec.Struct, frozen=True):
    questions: list[QuestionRow]


class Loops(msgspec.Struct, frozen=True):
    loops: list[Loop]


Page = Callable[[Look], object]  # a text is for people, anything else for programs


def rendered(page: object) -> bytes:
    return page.encode("utf-8", "replace") if isinstance(page, str) else msgspec.json.encode(page)


def page_at(path: str) -> tuple[Page, dict[str, str]]:
    """The page of an address, with the names that stand in its path."""
    for pattern, page in PAGES.items():
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", pattern), path)
        if found:
            return page, found.groupdict()
    raise LookupError(path)


def _agents(look: Look) -> object:
    found = roster.chosen(look.state.agents, dead=flag(look.asked, "all"))
    if look.as_text:
        return roster.roster_text(found, look.now, width=look.width, colour=look.colour)
    return Roster(look.project, look.state.seq, roster.roster(found, look.now))


def _agent(look: Look) -> object:
    agents = look.state.agents
    shown = detail(find(agents, look.asked["name"]), look.now, agents)
    return detail_text(shown) if look.as_text else shown


def _tasks(look: Look) -> object:
    known = look.state.tasks
    found = tasks.chosen(known, finished=flag(look.asked, "all"), only_ready=flag(look.asked, "ready"))
    if look.as_text:
        return tasks.tasks_text(tasks.task_rows(known, found), look.now, width=look.width, colour=look.colour)
    if flag(look.asked, "full"):
        return Tasks(look.state.seq, [tasks.task_detail(known, each) for each in found])
    return Tasks(look.state.seq, tasks.task_rows(known, found))


def _task(look: Look) -> object:
    shown = tasks.task_detail(look.state.tasks, find_task(look.state.tasks, look.asked["task"]))
    return tasks.task_text(shown) if look.as_text else shown


def _questions(look: Look) -> object:
    rows = open_questions(look.state.agents)
    return questions_text(rows, look.now, width=look.width) if look.as_text else Questions(rows)


def _budgets(look: Look) -> object:
    """All, or those that stand over one agent."""
    agent = look.asked.get("agent", "")
    rows = budgets(look.state, scopes(look.state, find(look.state.agents, agent)) if agent else None)
    return budgets_text(rows, width=look.width) if look.as_text else Budgets(look.state.seq, rows)


def _loops(look: Look) -> object:
    found = open_loops(look.state.agents, look.state.tasks)
    return loops_text(found, look.now, width=look.width) if look.as_text else Loops(found)


PAGES: Mapping[str, Page] = {
    "/v1/agents": _agents,
    "/v1/agents/{name}": _agent,
    "/v1/tasks": _tasks,
    "/v1/tasks/{task}": _task,
    "/v1/questions": _questions,
    "/v1/budget": _budgets,
    "/v1/loops": _loops,
}
