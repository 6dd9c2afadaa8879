"""Start the runtime."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from remuda.cli.call import Broken, NotUp, exchange
from remuda.cli.init import init_place
from remuda.cli.project import project
from remuda.cli.say import note, out
from remuda.domain.errors import Conflict, Invalid, RemudaError, StoreFailed
from remuda.runtime.place import Place, find_holder, make_place, repository_of

PATIENCE = 15.0  # seconds for a runtime in the background to answer
LOOK_EVERY = 0.05
LEAVING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option("-d", "--detach", is_flag=True, help="In the background, with its output in .remuda/runtime.log.")
def up(detach: bool) -> None:
    """Start the runtime of this project. In a git repository that is not a project yet, makes it one first."""
    place = place_here()
    if detach:
        out(f"remuda is up for {place.root} (process {start(place)}); `remuda down` stops it")
        return
    gc.disable()  # see entry.py
    from remuda.cli.foreground import run  # the whole runtime: not for the one that only starts another process

    gc.freeze()
    gc.enable()
    run(place)


def place_here() -> Place:
    try:
        return project()
    except Invalid:
        root = None if os.environ.get("REMUDA_PROJECT") else repository_of(Path.cwd())
        if root is None:
            raise
    place = init_place(root)
    note(f"{place.root} was not a Remuda project yet; it is one now")
    return place


# --- in the background ---


def start(place: Place) -> int:
    """Its process id, when it answers."""
    make_place(place.root)
    holder = find_holder(place)
    if holder is not None:
        raise Conflict(f"a runtime is up for {place.root} already (process {holder.pid} since {holder.since})")
    try:
        log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreFailed(f"{place.log} cannot be written: {error.strerror}") from error
    begin = os.fstat(log).st_size
    with _held_back() as interrupted:
        # -P: the project's own files must never be taken for Python modules.
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "remuda.cli.entry", "up"],
            cwd=place.root,
            env={**os.environ, "REMUDA_PROJECT": str(place.root)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(log)
    try:
        if interrupted:
            raise KeyboardInterrupt
        if _answers(place, child):
            return child.pid
    except KeyboardInterrupt:  # whoever asked for it wants it no more
        with suppress(ProcessLookupError):  # the same key may have ended it
            os.killpg(child.pid, signal.SIGTERM)
        raise
    code = child.poll()
    if code is None:
        os.killpg(child.pid, signal.SIGTERM)
        raise DidNotStart(f"the runtime did not answer within {PATIENCE:.0f} s{_tail(place, begin)}")
    raise DidNotStart(f"the runtime did not start{_tail(place, begin)}", code)


@contextmanager
def _held_back() -> Iterator[list[int]]:
    """The signals of a person who wants to leave: in the middle of starting a process they would leave one behind that
    nobody knows of."""
    came: list[int] = []
    ours = [each for each in LEAVING if signal.getsignal(each) is signal.default_int_handler]
    for each in ours:
        signal.signal(each, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        for each in ours:
            signal.signal(each, signal.default_int_handler)


class DidNotStart(RemudaError):
    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = code if code in (1, 2, 3) else 1  # type: ignore[misc]  # what the runtime itself ended with


def _answers(place: Place, child: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and child.poll() is None:
        try:
            return exchange(str(place.state), "GET", "/v1/health")[0] == 200
        except (NotUp, Broken, OSError):
            time.sleep(LOOK_EVERY)
    return False


def _tail(place: Place, begin: int) -> str:
    """What it said last, for the reader who would look into the log next."""
    with place.log.open("rb") as file:
        file.seek(begin)
        lines = file.read()[-4000:].decode(errors="replace").splitlines()
    said = [line.removeprefix("remuda: ") for line in lines if line.strip()]
    if len(said) == 1:
        return f": {said[0]}"
    return "; its log ends:\n  " + "\n  ".join(said[-8:]) if said else f"; see {place.log}"
