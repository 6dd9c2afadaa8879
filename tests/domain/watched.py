"""A project without a world, but with watches: what they ask for is decided in the same breath, as in the loop."""

from collections import deque
from collections.abc import Callable, Iterable

from domain.drive import WORKER, Project
from remuda.domain.commands import Command, ReportToolCall
from remuda.domain.decide import decide
from remuda.domain.errors import Refused
from remuda.domain.events import Event, Recorded
from remuda.domain.spin import Limits
from remuda.domain.spin_reading import Step, read
from remuda.domain.state import State
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import FireTrigger, GiveVerdict, ReportVerdictOverdue
from remuda.watch.changeset import Wrong, changeset
from remuda.watch.gang import Wayward, gang
from remuda.watch.idle import idle
from remuda.watch.obituary import obituary
from remuda.watch.spin import spin
from remuda.watch.stall import stall
from remuda.watch.verdict import Patience
from remuda.watch.verdict import verdict as asking

Watch = Callable[[State, Event], Iterable[Command]]
PATIENCE = Patience(600.0, Course.REAP, most=2, within=3600.0)


class Watched(Project):
    def __init__(
        self,
        patience: Patience = PATIENCE,
        wayward: Wayward = Wayward(),  # noqa: B008 - frozen
        wrong: Wrong = Wrong(outside=True, files=3),  # noqa: B008 - frozen
    ) -> None:
        super().__init__()
        self.watches: tuple[Watch, ...] = (
            obituary,
            spin(Limits()),
            stall(2),
            changeset(wrong),
            gang(wayward),
            asking(lambda _role: patience),
            idle,
        )

    def do(self, command: Command, *, order: str = "") -> tuple[Event, ...]:
        events = super().do(command, order=order)
        self._watch(events)
        return events

    def _watch(self, events: Iterable[Event]) -> None:
        unseen = deque(events)
        while unseen:
            event = unseen.popleft()
            for watch in self.watches:
                for command in tuple(watch(self.state, event)):
                    try:
                        more = decide(self.state, command, self.now)
                    except Refused:
                        continue
                    for each in more:
                        self.apply(Recorded(self.state.seq + 1, self.now, "", each))
                    unseen.extend(more)

    def do_spawn(self, role: str, name: str, parent: str) -> None:
        """A new agent below another, whose session has started."""
        self.spawn(role, name, parent=parent)
        self.started(name)

    def fires(self, name: str, trigger: Trigger = Trigger.CHANGESET, evidence: str = "a person says so") -> None:
        self.do(FireTrigger(name, trigger, evidence))

    def uses(self, name: str, tool: str, arguments: str = "{}", result: str = "", *, ok: bool = True) -> None:
        reading = read(Step(tool, arguments, result, ok))
        place = (name, self.epoch(name), self.turn(name))
        self.do(ReportToolCall(*place, f"c{self.state.seq}", tool, ok, 0.1, arguments, result, reading))


def family(patience: Patience = PATIENCE) -> Watched:
    """A coordinator, its child `boss`, and a worker of the boss's, at work."""
    project = Watched(patience)
    project.ready("coordinator")
    project.do_spawn("crew", "boss", "coordinator")
    project.do_spawn("worker", WORKER, "boss")
    project.send("do it")
    return project


def at_work() -> Watched:
    project = Watched()
    project.ready()
    project.send("do it")
    return project


def verdict(project: Project, course: Course, name: str = WORKER, **more: object) -> None:
    project.do(GiveVerdict(name, course, "user", **more))  # type: ignore[arg-type]


def nobody_answers(project: Watched, name: str = WORKER) -> None:
    sought = project.agent(name).sought
    assert sought is not None
    project.now = sought.until
    project.do(ReportVerdictOverdue(name, project.epoch(name), sought.until))
