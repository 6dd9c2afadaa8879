"""Put Remuda into the hooks of agents that are started by hand, and into git's. What is there already stays."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from remuda.cli import hook
from remuda.cli.say import note, out
from remuda.domain.errors import Invalid
from remuda.git import GitFailed, hooks_folder, line
from remuda.records.files import write_whole
from remuda.records.hooked import EVENTS

MARK = "remuda/cli/hook.py"
SECONDS = 60  # for the turn's end where the project has checks; without them it takes a tenth of a second
CHAINED = ".before-remuda"
GIT_HOOKS = ("prepare-commit-msg", "post-commit", "post-rewrite")
OF_TOOLS = ("PostToolUse", "PostToolUseFailure", "AfterTool")

# Where each program looks: in the project, and for the user.
PLACES: Mapping[str, tuple[str, str]] = {
    "claude": (".claude/settings.local.json", ".claude/settings.json"),
    "codex": (".codex/hooks.json", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
}
NEXT = {
    "codex": "Codex runs new hooks only after you trust them: start `codex`, type /hooks, and accept them",
    "gemini": "Gemini asks once whether it may run hooks that a project brings",
}


@click.group()
def hooks() -> None:
    """Let agents that you start by hand keep the same records, through their own hooks."""


@hooks.command()
@click.argument("program", type=click.Choice([*PLACES, "git"]))
@click.option("--user", is_flag=True, help="For all your projects, not only this one.")
def install(program: str, user: bool) -> None:
    """Add Remuda's hooks. It may be done again at any time; other hooks stay and run as before."""
    if program == "git":
        _change_git(_install_git, user)
        return
    path = _path(program, user)
    settings = _read(path)
    _write(path, with_hooks(settings, program))
    out(f"{path}: turns of {program} are recorded from now on")
    if program in NEXT:
        note(NEXT[program])


@hooks.command()
@click.argument("program", type=click.Choice([*PLACES, "git"]))
@click.option("--user", is_flag=True)
def remove(program: str, user: bool) -> None:
    """Take Remuda's hooks out again; what else is there stays."""
    if program == "git":
        _change_git(_remove_git, user)
        return
    path = _path(program, user)
    if path.exists():
        _write(path, without_hooks(_read(path)))
    out(f"{path}: turns of {program} are no longer recorded")


def _path(program: str, user: bool) -> Path:
    here, home = PLACES[program]
    return Path.home() / home if user else _top() / here


def _top() -> Path:
    try:
        return Path(line(Path.cwd(), "rev-parse", "--show-toplevel"))
    except GitFailed as error:
        raise Invalid(f"{Path.cwd()} is not in a git work tree; hooks for all projects: --user") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Invalid(f"{path} cannot be read, and is left alone: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("hooks", {}), dict):
        raise Invalid(f"{path} is not a settings file, and is left alone")
    return found


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(str(path.resolve()), (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode())


# --- settings, as values ---


def command(program: str) -> str:
    """Run by its path, and quiet when it is not there any more."""
    words = shlex.join([sys.executable, "-I", "-S", str(Path(hook.__file__).resolve()), program])
    return f"{words} || true"


def with_hooks(settings: dict[str, Any], program: str) -> dict[str, Any]:
    kept = without_hooks(settings)
    groups = dict(kept.get("hooks", {}))
    for event in EVENTS[program]:
        seconds = SECONDS * 1000 if program == "gemini" else SECONDS  # Gemini counts in milliseconds
        ours: dict[str, Any] = {"hooks": [{"type": "command", "command": command(program), "timeout": seconds}]}
        if event in OF_TOOLS:
            ours["matcher"] = "*" if program != "gemini" else ".*"
        groups[event] = [*groups.get(event, []), ours]
    return {**kept, "hooks": groups}


def without_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    groups = {
        event: [each for each in found if not _is_ours(each)] for event, found in settings.get("hooks", {}).items()
    }
    kept = {event: found for event, found in groups.items() if found}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, "hooks": kept} if kept else rest


def _is_ours(group: object) -> bool:
    return MARK in json.dumps(group)


# --- git ---


def _change_git(change: Callable[[Path], None], user: bool) -> None:
    if user:
        raise Invalid("git's hooks belong to one repository; run it there, without --user")
    folder = hooks_folder(_top())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        change(folder)
    except OSError as error:
        raise Invalid(f"{error.filename} cannot be changed: {error.strerror}") from error


def _install_git(folder: Path) -> None:
    for name in GIT_HOOKS:
        path, before = folder / name, folder / f"{name}{CHAINED}"
        if path.exists() and MARK not in path.read_text(errors="replace"):
            os.replace(path, before)
        write_whole(str(path), _script(name).encode())
        path.chmod(0o755)
    out(f"{folder}: commits that take up the work of turns say so from now on")


def _remove_git(folder: Path) -> None:
    for name in GIT_HOOKS:
        path, before = folder / name, folder / f"{name}{CHAINED}"
        if path.exists() and MARK in path.read_text(errors="replace"):
            path.unlink()
        if before.exists() and not path.exists():
            os.replace(before, path)
    out(f"{folder}: commits no longer name turns")


def _script(name: str) -> str:
    """What was there runs first, with its own arguments and input, and its refusal stands."""
    ours = shlex.join([sys.executable, "-I", "-S", str(Path(hook.__file__).resolve()), "git", name])
    ours = ours.replace(" -S ", " ", 1)  # this one needs what is installed
    return (
        "#!/bin/sh\n"
        "# Remuda's; the hook that was here before is beside it, and runs first.\n"
        f'before="$0{CHAINED}"\n'
        'input=""\n'
        f"{'input=$(cat)' if name == 'post-rewrite' else ':'}\n"
        'if [ -x "$before" ]; then printf \'%s\' "$input" | "$before" "$@" || exit $?; fi\n'
        f'printf \'%s\\n\' "$input" | {ours} "$@" >/dev/null 2>&1 || true\n'
    )
