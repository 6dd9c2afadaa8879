"""An agent that somebody started by hand, heard through its own hooks: the same record as of one that is supervised.

One call is one event, told on standard input. It must cost little, and whatever goes wrong with it must never reach
the person at the keyboard: the caller sees to that.
"""

import os
import sys
import time

from remuda.records.begin import Asked, begin, end, find_open, use_tool
from remuda.records.files import read
from remuda.records.journal import Already, OpenTurn, open_turns
from remuda.records.keeping import OFF, keeping_of
from remuda.records.moment import boot, process_start
from remuda.records.repository import NoRepository, Repository, find_repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Payload = dict[str, Any]

# What each program calls its events -> what it is to us.
EVENTS: "Mapping[str, Mapping[str, str]]" = {
    "claude": {
        "SessionStart": "recover", "UserPromptSubmit": "begin", "PostToolUse": "tool",
        "PostToolUseFailure": "failed tool", "Stop": "completed", "StopFailure": "failed", "SessionEnd": "interrupted",
    },
    "codex": {
        "SessionStart": "recover", "UserPromptSubmit": "begin", "PostToolUse": "tool", "Stop": "completed",
        "Interrupt": "interrupted", "SessionEnd": "interrupted",
    },
    "gemini": {
        "SessionStart": "recover", "BeforeAgent": "begin", "AfterTool": "tool", "AfterAgent": "completed",
        "SessionEnd": "interrupted",
    },
}  # fmt: skip
CHECKS = ("tests", "lint", "typecheck", "build", "scan", "headers", "versions", "branch_pattern", "commit_pattern")
TWICE = 5.0  # seconds within which the same prompt of one session is the same event, where it has no id
SHELLS = ("sh", "bash", "dash", "zsh", "env", "timeout")


def heard(agent: str, payload: "Payload") -> "Payload":
    """What the program is to be answered; nothing, but for a turn that may not be over yet."""
    kind = EVENTS[agent].get(str(payload.get("hook_event_name", "")), "")
    try:
        repository = find_repository(str(payload.get("cwd") or os.getcwd()))
    except NoRepository:
        return {}
    if not kind or (payload.get("agent_id") and "tool" not in kind):  # a subagent's end is not the turn's
        return {}
    if kind == "recover":
        if open_turns(repository):
            finish_later(repository)
    elif kind == "begin":
        _begin(repository, agent, payload)
    else:
        turn = find_open(repository, session=_session(payload), agent=agent)
        if turn is not None:
            return _during(repository, turn, agent, kind, payload)
    return {}


def _session(payload: "Payload") -> str:
    return str(payload.get("session_id") or "unknown")


def _begin(repository: Repository, agent: str, payload: "Payload") -> None:
    keeping = keeping_of(repository)
    if keeping.records == OFF:
        return
    asked = Asked(
        str(payload.get("prompt") or ""),
        agent,
        model=str(payload.get("model") or ""),
        session=_session(payload),
        key=str(payload.get("prompt_id") or payload.get("turn_id") or ""),
    )
    asked.owner = _owner()
    transcript = str(payload.get("transcript_path") or "")
    asked.more = {"transcript": transcript, "offset": _size(transcript), "key": asked.key}
    before = find_open(repository, session=asked.session, agent=agent)
    if before is not None:
        if _same(before, asked):
            return
        end(before, "interrupted", error="the next prompt came before this turn had ended")
    try:
        begin(repository, keeping, asked)
    except Already:
        return
    if len(open_turns(repository)) > 1:
        finish_later(repository)


def _same(before: OpenTurn, asked: Asked) -> bool:
    """One event that was told twice: hooks of several settings files run side by side."""
    begun = before.facts("begun") or {}
    if asked.key:
        return bool((begun.get("more") or {}).get("key") == asked.key)
    return bool(begun["prompt_length"] == len(asked.prompt) and time.time() - begun["start"]["wall"] < TWICE)


def _during(repository: Repository, turn: OpenTurn, agent: str, kind: str, payload: "Payload") -> "Payload":
    if kind in ("tool", "failed tool"):
        name, given = str(payload.get("tool_name") or "unknown"), payload.get("tool_input")
        given = given if isinstance(given, dict) else {}
        path = str(given.get("file_path") or given.get("absolute_path") or given.get("path") or "")
        command = given.get("command")
        shown = " ".join(map(str, command)) if isinstance(command, list) else str(command or path)
        reads = os.path.relpath(path, repository.top) if path and "read" in name.lower() else ""
        use_tool(turn, name, ok=kind == "tool", argument=shown, reads="" if reads.startswith("..") else reads)
        return {}
    told = str(payload.get("last_assistant_message") or payload.get("prompt_response") or "")
    error = str(payload.get("error") or payload.get("reason") or "") if kind != "completed" else ""
    said: Payload = {"summary": told if kind == "completed" else "", "error": error}
    if kind == "completed" and _checked(repository):
        import site  # the project wants tests run now: what else we import does not matter

        site.main()  # the hook was started without it
        from remuda.records.checked import check

        more, why = check(turn, again=bool(payload.get("stop_hook_active")))
        if why:
            return {"decision": "block", "reason": why}
        said |= more
    more = (turn.facts("begun") or {}).get("more") or {}
    if more.get("transcript"):
        from remuda.records.transcripts import used

        awaited = told if kind == "completed" and agent == "claude" else ""
        said |= used(str(more["transcript"]), int(more["offset"]), awaited)
    end(turn, kind, **said)
    finish_later(repository)
    return {}


def _checked(repository: Repository) -> bool:
    """Whether anything has to be checked before a turn is over. Cheap: most projects have no such setting."""
    data = read(f"{repository.top}/remuda.toml") or b""
    if b"[turns]" not in data:
        return False
    import tomllib

    turns = tomllib.loads(data.decode()).get("turns", {})
    return any(turns.get(name) for name in CHECKS)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size if path else 0
    except OSError:
        return 0


def _owner() -> "dict[str, Any]":
    """The agent's process: whoever started us, behind the shells between."""
    pid = os.getppid()
    for _ in range(5):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            return {}
        name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
        if name not in SHELLS:
            break
        pid = int(stat.rpartition(b")")[2].split()[1])
    return {"pid": pid, "start": process_start(pid), "boot": boot()} if pid > 1 else {}


def finish_later(repository: Repository) -> None:
    """The rest is done by a process of its own, so that nobody waits for it. Should it be killed, the journal holds all
    that is needed, and the next one does it."""
    null = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    arguments = [sys.executable, "-m", "remuda.records.finish", repository.top]
    try:
        os.posix_spawn(sys.executable, arguments, os.environ, file_actions=null, setsid=True)
    except NotImplementedError:  # this system cannot begin a session so; the child dies with its terminal, no more
        os.posix_spawn(sys.executable, arguments, os.environ, file_actions=null, setpgroup=0)
