"""Begin a turn, note what is used in it, end it. Hooks wait for these, so they do nothing that can wait."""

import hashlib
import os

from remuda.records.context import session_context
from remuda.records.files import write_whole
from remuda.records.journal import OpenTurn, claim, open_turns
from remuda.records.keeping import BRANCH, FILES, Keeping
from remuda.records.moment import now
from remuda.records.redact import redactor
from remuda.records.repository import Repository, head
from remuda.records.snapshot import SnapshotFailed, snapshot
from remuda.records.text import LONGEST_PROMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_ARGUMENT = 500  # characters of what a tool was asked


class Asked:
    """What is known of a prompt when it is given."""

    def __init__(self, prompt: str, agent: str, *, model: str = "", session: str = "", key: str = "") -> None:
        self.prompt, self.agent, self.model, self.session = prompt, agent, model, session
        self.key = (
            hashlib.sha256(f"{agent}\0{session}\0{key}".encode(errors="surrogateescape")).hexdigest() if key else ""
        )
        self.by = "hooks"  # or "runtime"
        self.owner: dict[str, Any] = {}  # the process whose death ends the turn
        self.contexts: list[str] = []
        self.skills: list[str] = []
        self.more: dict[str, Any] = {}  # of whoever asked, for whoever ends it: places in transcripts and the like


def begin(repository: Repository, keeping: Keeping, asked: Asked) -> OpenTurn:
    """Steps 1 to 4. Whatever fails here fails before anything is left behind."""
    before = snapshot(repository, keeping.folder)
    branch, commit = head(repository)
    redact = redactor(os.environ)
    exact = asked.prompt.encode(errors="surrogateescape")
    shown = redact(asked.prompt)

    def fill(folder: str, number: int, uuid: str) -> None:
        begun = {
            "uuid": uuid,
            "number": number,
            "by": asked.by,
            "start": now(),
            "top": repository.top,
            "records": keeping.records,
            "folder": keeping.folder,
            "directory": keeping.path(number, uuid),
            "agent": redact(asked.agent),
            "model": redact(asked.model),
            "session": redact(asked.session),
            "branch": redact(branch),
            "head": commit,
            "tree": before.tree,
            "unread": redact(before.unread),
            "prompt": shown[:LONGEST_PROMPT],
            "prompt_length": len(asked.prompt),
            "prompt_sha256": hashlib.sha256(exact).hexdigest(),
            "redacted": shown != asked.prompt,
            "shortened": len(shown) > LONGEST_PROMPT,
            "contexts": [redact(each) for each in asked.contexts],
            "skills": [redact(each) for each in asked.skills],
            "owner": asked.owner,
            "more": asked.more,
        }
        context = session_context(begun)
        write_whole(f"{folder}/session_context.md", context, 0o600, flush=False)
        turn = OpenTurn(repository, number)
        turn.folder = folder
        turn.keep("begun", begun)

    def taken(number: int) -> bool:
        return os.path.lexists(f"{repository.top}/{keeping.path(number, '')}")

    turn = claim(repository, asked.key, taken, fill)
    if keeping.records in (FILES, BRANCH):
        _make_directory(turn)
    return turn


def _make_directory(turn: OpenTurn) -> None:
    """In the work tree: its own, and nobody else's. It is made, never found."""
    begun = turn.facts("begun") or {}
    path = f"{begun['top']}/{begun['directory']}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path)
        write_whole(f"{path}/session_context.md", session_context(begun))
    except OSError:
        turn.close()
        raise


def use_tool(turn: OpenTurn, tool: str, *, ok: bool = True, argument: str = "", reads: str = "") -> None:
    """What was used, and which file it read. The argument is for people: redacted and short."""
    redact = redactor(os.environ)
    shown = redact(argument)[:LONGEST_ARGUMENT]
    turn.add("tools", {"tool": redact(tool)[:200], "ok": ok, "argument": shown, "reads": redact(reads)})


def end(turn: OpenTurn, outcome: str, **said: "Any") -> bool:
    """Step 6: the end, and what the work tree holds. Once; a second end changes nothing."""
    begun = turn.facts("begun")
    if begun is None or turn.facts("ended") is not None:
        return False
    redact = redactor(os.environ)
    repository = turn.repository
    try:
        after = snapshot(_at(repository, begun["top"]), begun["folder"])
        tree, unread = after.tree, after.unread
        branch, commit = head(_at(repository, begun["top"]))
    except (SnapshotFailed, OSError) as error:
        tree, unread, branch, commit = begun["tree"], f"the work tree could not be read: {error}", begun["branch"], ""
    ended = {
        "end": now(),
        "outcome": outcome,
        "error": redact(str(said.get("error", ""))),
        "summary": redact(str(said.get("summary", ""))),
        "model": redact(str(said.get("model", ""))),
        "tokens": said.get("tokens"),
        "validations": said.get("validations", []),
        "branch": redact(branch),
        "head": commit or begun["head"],
        "tree": tree,
        "unread": redact(unread),
        "transcript_sha256": said.get("transcript_sha256", ""),
    }
    turn.keep("ended", ended)
    return True


def _at(repository: Repository, top: str) -> Repository:
    """The work tree that the turn began in, which may be another one of the same repository than ours."""
    if top == repository.top:
        return repository
    from remuda.records.repository import NoRepository, find_repository

    try:
        return find_repository(top)
    except NoRepository as error:
        raise SnapshotFailed(str(error)) from error


def find_open(repository: Repository, *, session: str = "", agent: str = "", top: str = "") -> OpenTurn | None:
    """The newest turn of a session, of an agent or in a work tree that has not ended."""
    for turn in reversed(open_turns(repository)):
        begun = turn.facts("begun")
        if begun is None or turn.facts("ended") is not None:
            continue
        wanted = (("session", session), ("agent", agent), ("top", top))
        if all(not value or begun[name] == value for name, value in wanted):
            return turn
    return None
