"""A command in a real terminal: what is typed there reaches it as it would from a person's keyboard."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CTRL_C = b"\x03"
WITHIN = 60.0
# The command leads a session of its own, whose terminal this is: only so does the kernel turn Ctrl-C into a signal. And
# it heeds the signal, also where whoever runs the tests in the background does not.
LEAD = """
import fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    def __init__(self, screen: int, child: subprocess.Popen[bytes]) -> None:
        self.shown = ""
        self.pid = child.pid
        self._screen, self._child = screen, child

    def until(self, words: str) -> None:
        """Wait until they are on the screen."""
        end = time.monotonic() + WITHIN
        while words not in self.shown:
            assert self._look(end), f"{words!r} never came: {self.shown}"

    def press(self, keys: bytes) -> None:
        os.write(self._screen, keys)

    def ended(self) -> int:
        """Its exit code, when all that it says has been seen."""
        end = time.monotonic() + WITHIN
        while self._look(end):
            pass
        return self._child.wait(timeout=WITHIN)

    def _look(self, end: float) -> bool:
        """Whether there was more to see in time."""
        readable, _, _ = select.select([self._screen], [], [], max(0.0, end - time.monotonic()))
        if not readable:
            return False
        try:
            said = os.read(self._screen, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            return False
        self.shown += said.decode(errors="replace").replace("\r\n", "\n")
        return bool(said)


@contextmanager
def terminal(command: list[str], cwd: Path, env: dict[str, str]) -> Iterator[Terminal]:
    screen, inside = pty.openpty()
    argv = [sys.executable, "-I", "-S", "-c", LEAD, *command]
    child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=inside, stdout=inside, stderr=inside)
    os.close(inside)
    try:
        yield Terminal(screen, child)
    finally:
        os.close(screen)
        if child.poll() is None:
            child.kill()
        child.wait()
