"""Time that passes only when there is nothing else to do: an event loop whose clock jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(AssertionError):
    """Everything waits for something that nothing will bring about."""


class JumpingSelector(selectors.SelectSelector):
    """Asked to wait, it moves the clock instead. The loop asks only when nothing is ready to run."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Stuck("nothing is ready, nothing is timed, and somebody still waits")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, _executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """At once: while a thread works the clock would jump, for nothing is ready to run."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)


async def time_passes(seconds: float) -> None:
    """In a story that is run virtually: it takes no time."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop), "here it would take as long as it says"
    await asyncio.sleep(seconds)
