"""A project without a world, but with watches: what they ask for is decided in the same breath, as in the loop."""

from collections import deque
from collections.abc import Callable, Iterable

from domain.drive import Project
from remuda.domain.commands import Command, ReportToolCall
from remuda.domain.decide import decide
from remuda.domain.errors import Refused
from remuda.domain.events import Event, Recorded
from remuda.domain.spin import Limits
from remuda.domain.spin_reading import Step, read
from remuda.domain.state import State
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import FireTrigger
from remuda.watch.changeset import Wrong, changeset
from remuda.watch.gang import Wayward, gang
from remuda.watch.idle import idle
from remuda.watch.obituary import obituary
from remuda.watch.spin import spin
from remuda.watch.stall import stall
from remuda.watch.verdict import Patience, verdict

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
            verdict(lambda _role: patience),
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
