"""Who gets which task: the first route that fits it, by its labels or by the files it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from remuda.domain.ledger import Limits
from remuda.domain.state import Agent
from remuda.domain.task import Brief


@dataclass(frozen=True, slots=True)
class Route:
    """Without labels and paths it fits every task. What is empty on its right side may be anything."""

    labels: tuple[str, ...] = ()  # one of them is enough
    paths: tuple[str, ...] = ()  # patterns; one file that fits is enough
    role: str = "worker"
    backend: str = ""
    model: str = ""
    budget: Limits | None = None  # of those that are spawned for it; None: as for everyone


def route_for(routes: Sequence[Route], brief: Brief) -> Route:
    return next((route for route in routes if fits(route, brief)), Route())


def fits(route: Route, brief: Brief) -> bool:
    if not route.labels and not route.paths:
        return True
    labelled = any(label in brief.labels for label in route.labels)
    return labelled or any(fnmatchcase(path, pattern) for path in brief.paths for pattern in route.paths)


def suits(agent: Agent, route: Route) -> bool:
    wishes = ((route.role, agent.role), (route.backend, agent.backend), (route.model, agent.model))
    return all(not wish or wish == has for wish, has in wishes)
