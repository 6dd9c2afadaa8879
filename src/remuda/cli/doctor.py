"""Check that all is well, and repair what is not."""

import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import click

from remuda.agents.catalog import CATALOG
from remuda.agents.ladder import rungs
from remuda.agents.presence import look
from remuda.cli.call import NotUp, colour, exchange
from remuda.cli.project import project
from remuda.cli.say import json_option, out, out_json
from remuda.domain.errors import Conflict, Invalid, RemudaError
from remuda.runtime.compose import rows
from remuda.runtime.config import load_settings
from remuda.runtime.place import Hold, Place, check_log, find_holder
from remuda.store.repair import examine, repair
from remuda.views.backends import summary

LITTLE_SPACE, NO_SPACE = 1 << 30, 64 << 20  # bytes

Level = Literal["ok", "warn", "bad"]
COLOURS: dict[Level, str] = {"ok": "32", "warn": "33", "bad": "1;31"}


class Finding(NamedTuple):
    check: str
    level: Level
    text: str
    next: str = ""  # what to do about it


@click.command()
@click.option("--repair", "mend", is_flag=True, help="Write a damaged log anew, with every event that can be saved.")
@json_option
def doctor(mend: bool, as_json: bool) -> int:
    """Check that all is well. With --repair, save what can be read of a damaged log; the damaged file is kept."""
    if mend:
        return _repair(project(), as_json)
    findings = list(examination())
    bad = any(each.level == "bad" for each in findings)
    if as_json:
        out_json({"healthy": not bad, "findings": [each._asdict() for each in findings]})
    else:
        for each in findings:
            out(_line(each))
    return int(bad)


def _line(finding: Finding) -> str:
    mark = f"{finding.level:<4}"
    if colour():
        mark = f"\x1b[{COLOURS[finding.level]}m{mark}\x1b[0m"
    return f"{mark}  {finding.check:<9}  {finding.text}" + (f"; {finding.next}" if finding.next else "")


def examination() -> Iterator[Finding]:
    yield _python()
    yield _git()
    yield _processes()
    try:
        place = project()
    except Invalid as error:
        yield Finding("project", "bad", error.message)
        return
    yield Finding("project", "ok", str(place.root))
    for check in PLACE_CHECKS:
        yield check(place)


# --- the machine ---


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()} in {sys.prefix}")


def _git() -> Finding:
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return Finding("git", "bad", "git was not found on PATH", "install git")
    return Finding("git", "ok", said.strip().removeprefix("git version "))


def _processes() -> Finding:
    """By which means an agent's whole process tree is ended: the first that holds is enough, the rest make it sure."""
    ladder = rungs()
    holding = ", ".join(rung.name for rung in ladder if rung.in_force)
    missing = "; ".join(f"{rung.name}: {rung.why_not}" for rung in ladder if not rung.in_force)
    sure = any(rung.in_force for rung in ladder if rung.name in ("cgroup", "mark"))
    return Finding("processes", "ok" if sure else "warn", f"trees are ended by {holding}", missing)


# --- the project ---


def _folder(place: Place) -> Finding:
    try:
        mode = stat.S_IMODE(place.state.stat().st_mode)
    except OSError:
        return Finding("folder", "warn", f"{place.state} is not there yet", "`remuda up` makes it")
    if mode != 0o700:
        return Finding("folder", "bad", f"{place.state} is open to others ({mode:o})", f"chmod 700 {place.state}")
    if not os.access(place.state, os.W_OK):
        return Finding("folder", "bad", f"{place.state} cannot be written", "give yourself the right to write there")
    return Finding("folder", "ok", f"{place.state}, for you alone")


def _settings(place: Place) -> Finding:
    try:
        load_settings(place.settings)
    except RemudaError as error:
        return Finding("settings", "bad", error.message, "correct the file")
    return Finding("settings", "ok", str(place.settings) if place.settings.exists() else "none; the defaults hold")


def _agents(place: Place) -> Finding:
    try:
        seen = look(rows(load_settings(place.settings)))
    except RemudaError:  # told above
        seen = look(CATALOG)
    real = any(each.path for each in seen if each.name != "scripted")
    advice = "" if real else "`remuda agents` tells how to install one"
    return Finding("agents", "ok" if real else "warn", summary(seen), advice)


def _log(place: Place) -> Finding:
    try:
        check_log(place)
        if not place.database.exists() or not place.database.stat().st_size:
            return Finding("log", "ok", "none yet")
        examined = examine(place.database)
    except RemudaError as error:
        return Finding("log", "bad", error.message)
    except OSError as error:
        return Finding("log", "bad", f"{place.database}: {error.strerror}")
    if examined.fault:
        return Finding(
            "log", "bad", f"{examined.events} events can be read, then: {examined.fault}", "`remuda doctor --repair`"
        )
    return Finding("log", "ok", f"{examined.events} events, every one readable")


def _runtime(place: Place) -> Finding:
    holder = find_holder(place)
    try:
        status, _ = exchange(str(place.state), "GET", "/v1/health")
    except NotUp:
        status = 0
    except OSError as error:
        return Finding("runtime", "bad", f"the socket cannot be reached: {error.strerror or error}", "`remuda down`")
    if holder is None:
        if place.socket.exists():
            return Finding("runtime", "warn", "down, and its socket is a leftover", "`remuda up` clears it away")
        return Finding("runtime", "ok", "down; `remuda up -d` starts it")
    who = f"process {holder.pid} since {holder.since}"
    if status != 200:
        return Finding("runtime", "bad", f"{who} holds the project and does not answer", "`remuda down`")
    return Finding("runtime", "ok", f"up: {who}")


def _space(place: Place) -> Finding:
    free = shutil.disk_usage(place.root).free
    text = f"{free / (1 << 30):.1f} GiB free"
    if free < NO_SPACE:
        return Finding("disk", "bad", text, "free some space: the runtime stops when the disk is full")
    return Finding("disk", "warn" if free < LITTLE_SPACE else "ok", text)


PLACE_CHECKS: tuple[Callable[[Place], Finding], ...] = (_folder, _settings, _agents, _log, _runtime, _space)


# --- repair ---


def _repair(place: Place, as_json: bool) -> int:
    holder = find_holder(place)
    if holder is not None:
        raise Conflict(f"a runtime is up (process {holder.pid}); `remuda down` first, then repair")
    if not place.database.exists():
        raise Invalid(f"there is no log in {place.state}; nothing to repair")
    with Hold(place):
        if _log(place).level == "ok":
            out_json({"repaired": False}) if as_json else out("the log is sound; nothing to repair")
            return 0
        done = repair(place.database)
    lost = f"{done.lost} events after them could not be saved" if done.lost else "no later event could be seen"
    if as_json:
        fields = {"saved": done.saved, "lost": done.lost, "why": done.why, "kept": str(done.kept)}
        out_json({"repaired": True, **fields})
    else:
        out(f"saved {done.saved} events; {lost}" + (f" ({done.why})" if done.why else ""))
        out(f"the damaged file is kept as {done.kept}")
    return 0
