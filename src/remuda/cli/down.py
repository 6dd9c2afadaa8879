"""Stop the runtime."""

import os
import signal
import time
from contextlib import suppress

import click

from remuda.cli.call import Broken, NotUp, exchange
from remuda.cli.project import checked, project
from remuda.cli.say import out
from remuda.domain.errors import EffectFailed
from remuda.runtime.place import Holder, Place, find_holder

PATIENCE = 30.0  # seconds; agents are asked to end before they are made to
LOOK_EVERY = 0.05


@click.command()
def down() -> None:
    """Stop the runtime of this project, and every process of its agents. They go on at the next `up`."""
    place = project()
    holder = find_holder(place)
    if holder is None:
        out(f"no runtime is up for {place.root}; nothing to stop")
        return
    stop(place, holder)
    out(f"remuda is down for {place.root} (it was process {holder.pid})")


def stop(place: Place, holder: Holder) -> None:
    """Ask it to, and wait until it is gone."""
    _ask(place, holder)
    wait_for_end(place, holder)


def wait_for_end(place: Place, holder: Holder) -> None:
    until = time.monotonic() + PATIENCE
    while find_holder(place) is not None:
        if time.monotonic() > until:
            raise EffectFailed(
                f"process {holder.pid} has been asked to stop and has not yet; `kill -9 {holder.pid}` is safe: "
                "whatever was acknowledged is in the log"
            )
        time.sleep(LOOK_EVERY)


def _ask(place: Place, holder: Holder) -> None:
    """By its socket, or by a signal when it does not answer there."""
    try:
        checked(*exchange(str(place.state), "POST", "/v1/runtime/stop"))
    except (NotUp, Broken, TimeoutError) as error:
        if not holder.pid or holder.host != os.uname().nodename:
            raise EffectFailed(f"the runtime is held by a process that cannot be asked ({holder})") from error
        with suppress(ProcessLookupError):  # it has gone by itself
            os.kill(holder.pid, signal.SIGTERM)
