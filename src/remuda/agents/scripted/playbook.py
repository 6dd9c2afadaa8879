"""Playbooks: what the scripted agent does, as JSON.

    {"turns": [{"when": "text the prompt contains", "once": true, "do": [step, ...]}, ...], "otherwise": [step, ...]}

For each prompt the first entry of `turns` that fits is followed. `when` left out fits every prompt; an entry with
`once` serves one prompt of a conversation, also over restarts. A line `playbook: [step, ...]` in the prompt itself
wins over all. A step is an object with one of these keys:

    say, think          a text
    run                 a command, as a list; its output and exit code are the result of a tool call
    spawn               the same, but left behind in a session of its own
    write               {"path", "text"}: a file below the working directory
    tool                {"name", "arguments", "result"}: a tool call that only pretends
    call                {"name", "arguments", "server"}: a call to a tool server that the agent was given, Remuda's own
                        if none is named
    use                 tokens and money of one model call, any of USE
    hang                seconds, or true for ever; with "deaf": true beside it not even SIGTERM helps
    crash               an exit code, or the name of a signal
    ask                 {"tool", "arguments", "paths"}: asks for permission first; the lists "do" and "otherwise"
                        beside it are followed when it is given or not
    fail                the prompt is answered with this error; or {"message", "kind", "retry_after"}
    garbage             a line that is no JSON
    recall              say how many prompts the conversation has seen
    loop                {"times", "do"}
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # as in `typing`, whose import would cost a tenth of the time to start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Json = Any
    Steps = list[dict[str, Any]]

MARKER = "playbook:"
BESIDE = {"hang": ("deaf",), "ask": ("do", "otherwise")}  # keys that may stand beside a step's own
USE = ("input", "output", "cache_read", "cache_creation", "context", "window", "cost_usd")


class BadPlaybook(ValueError):
    """Says what is wrong where, for the author."""


def load(path: str) -> dict[str, Json]:
    try:
        with open(path, encoding="utf-8") as file:
            return check(json.load(file))
    except OSError as error:
        raise BadPlaybook(f"playbook {path}: {error.strerror}") from None
    except BadPlaybook as error:
        raise BadPlaybook(f"playbook {path}: {error}") from None
    except ValueError as error:
        raise BadPlaybook(f"playbook {path}: not JSON: {error}") from None


def check(book: Json) -> dict[str, Json]:
    if not isinstance(book, dict):
        raise BadPlaybook('must be an object such as {"turns": [...], "otherwise": [...]}')
    _known_keys("the playbook", book, ("turns", "otherwise"))
    turns = book.get("turns", [])
    if not isinstance(turns, list):
        raise BadPlaybook("turns: must be a list")
    for index, turn in enumerate(turns):
        _check_turn(f"turns[{index}]", turn)
    if "otherwise" in book:
        check_steps("otherwise", book["otherwise"])
    return book


def steps_in(prompt: str) -> Steps | None:
    """The steps that a prompt carries itself."""
    for line in prompt.splitlines():
        if line.strip().startswith(MARKER):
            try:
                steps = json.loads(line.strip()[len(MARKER) :])
            except ValueError as error:
                raise BadPlaybook(f"the prompt's {MARKER} line is not JSON: {error}") from None
            return check_steps("the prompt", steps)
    return None


def choose(book: Mapping[str, Json], prompt: str, used: set[int]) -> tuple[int | None, Steps | None]:
    """The steps for a prompt, and the number of the entry if it must not serve again."""
    for index, turn in enumerate(book.get("turns", ())):
        if index not in used and turn.get("when", "") in prompt:
            return (index if turn.get("once") else None), turn["do"]
    return None, book.get("otherwise")


def check_steps(where: str, steps: Json) -> Steps:
    if not isinstance(steps, list):
        raise BadPlaybook(f"{where}: must be a list of steps")
    for index, step in enumerate(steps):
        _check_step(f"{where}[{index}]", step)
    return steps


def _check_turn(where: str, turn: Json) -> None:
    if not isinstance(turn, dict) or "do" not in turn:
        raise BadPlaybook(f'{where}: must be an object with "do", a list of steps')
    _known_keys(where, turn, ("when", "once", "do"))
    if not isinstance(turn.get("when", ""), str):
        raise BadPlaybook(f"{where}.when: must be a text")
    check_steps(f"{where}.do", turn["do"])


def _check_step(where: str, step: Json) -> None:
    kinds = [key for key in step if key in STEPS] if isinstance(step, dict) else []
    if len(kinds) != 1:
        raise BadPlaybook(f"{where}: must be an object with one of {', '.join(STEPS)}; it is {json.dumps(step)}")
    kind = kinds[0]
    _known_keys(where, step, (kind, *BESIDE.get(kind, ())))
    wanted, fits = STEPS[kind]
    if not fits(step[kind]):
        raise BadPlaybook(f"{where}.{kind}: must be {wanted}; it is {json.dumps(step[kind])}")
    if kind == "loop":
        check_steps(f"{where}.loop.do", step["loop"]["do"])
    if kind == "ask":
        check_steps(f"{where}.do", step.get("do", []))
        check_steps(f"{where}.otherwise", step.get("otherwise", []))


def _known_keys(where: str, given: Mapping[str, Json], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise BadPlaybook(f"{where}: unknown key {key!r}; known: {', '.join(known)}")


def _text(value: Json) -> bool:
    return isinstance(value, str)


def _number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _command(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _file(value: Json) -> bool:
    return isinstance(value, dict) and set(value) == {"path", "text"} and all(map(_text, value.values()))


def _tool(value: Json) -> bool:
    return isinstance(value, dict) and _text(value.get("name")) and set(value) <= {"name", "arguments", "result"}


def _call(value: Json) -> bool:
    known = {"name", "arguments", "server"}
    named = isinstance(value, dict) and _text(value.get("name")) and _text(value.get("server", ""))
    return named and set(value) <= known and isinstance(value.get("arguments", {}), dict)


def _ask(value: Json) -> bool:
    return isinstance(value, dict) and _text(value.get("tool")) and set(value) <= {"tool", "arguments", "paths"}


def _fail(value: Json) -> bool:
    known = {"message", "kind", "retry_after"}
    return _text(value) or (isinstance(value, dict) and _text(value.get("message")) and set(value) <= known)


def _use(value: Json) -> bool:
    return isinstance(value, dict) and set(value) <= set(USE) and all(map(_number, value.values()))


def _hang(value: Json) -> bool:
    return value is True or _number(value)


def _crash(value: Json) -> bool:
    return isinstance(value, int) if not _text(value) else value.startswith("SIG")


def _true(value: Json) -> bool:
    return value is True


def _loop(value: Json) -> bool:
    return isinstance(value, dict) and set(value) == {"times", "do"} and isinstance(value["times"], int)


# What the value of each kind of step must be, in words for the author, and the test of it.
STEPS: Mapping[str, tuple[str, Callable[[Json], bool]]] = {
    "say": ("a text", _text),
    "think": ("a text", _text),
    "run": ("a command as a list of texts", _command),
    "spawn": ("a command as a list of texts", _command),
    "write": ("an object with the texts path and text", _file),
    "tool": ("an object with a name, and arguments and result if any", _tool),
    "call": ("an object with a name, and arguments and server if any", _call),
    "use": (f"an object with numbers for any of {', '.join(USE)}", _use),
    "hang": ("a number of seconds, or true for ever", _hang),
    "crash": ("an exit code, or the name of a signal such as SIGKILL", _crash),
    "ask": ("an object with a tool, and arguments and paths if any", _ask),
    "fail": ("a text, the error, or an object with a message, and kind and retry_after if any", _fail),
    "garbage": ("a text", _text),
    "recall": ("true", _true),
    "loop": ("an object with a whole number of times and a list do", _loop),
}
