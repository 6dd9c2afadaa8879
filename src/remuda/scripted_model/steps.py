"""The steps of a script, as JSON in a prompt and as values here.

    say            text; with "repeat": n the text n times
    think          text
    shell          command
    write          {"path", "text"}
    edit           {"path", "old", "new"}
    read           path
    tool           {"name", "arguments"}
    together       [steps that call tools]: several calls in one message
    recall         true: say how many scripted prompts and tool results the conversation has; "result": repeat the last
    slow           seconds between pieces, from here on
    use            {"input", "cached", "output", "cache_write"}: tokens that this model call reports
    end            true: end the turn; what follows answers the next prompt that has no script of its own
    refuse         text: the API's own refusal
    error          HTTP status; with "message", "retry_after": seconds, "times": n
    context_exceeded, cut, hang    true; with "times": n
    garbage        text; with "times": n

A fault with `times` happens n times and is then left out; without, it happens whenever it is reached.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remuda.scripted_model.reply import Cut, Failure, Fault, Garbage, Hang, Usage


class BadScript(ValueError):
    """Says what is wrong where, for the author."""


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Act:
    """Use whatever the client has for this: shell, write, edit or read."""

    action: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CallTool:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Together:
    calls: tuple["Act | CallTool", ...]


@dataclass(frozen=True, slots=True)
class Recall:
    result: bool


@dataclass(frozen=True, slots=True)
class Slow:
    seconds: float


@dataclass(frozen=True, slots=True)
class Use:
    usage: Usage


@dataclass(frozen=True, slots=True)
class End:
    pass


@dataclass(frozen=True, slots=True)
class Refuse:
    text: str


@dataclass(frozen=True, slots=True)
class Break:
    fault: Fault
    times: int | None


Step = Say | Think | Act | CallTool | Together | Recall | Slow | Use | End | Refuse | Break

MAY_HAVE: Mapping[str, tuple[str, ...]] = {
    "say": ("repeat",),
    "error": ("message", "retry_after", "times"),
    **dict.fromkeys(("context_exceeded", "cut", "hang", "garbage"), ("times",)),
}
MOST_REPEATS = 100_000


def parse(steps: object, where: str = "steps") -> tuple[Step, ...]:
    if not isinstance(steps, list):
        raise BadScript(f"{where}: must be a list of steps")
    return tuple(_step(f"{where}[{index}]", each) for index, each in enumerate(steps))


def _step(where: str, given: object) -> Step:
    kinds = [key for key in given if key in KINDS] if isinstance(given, dict) else []
    if not isinstance(given, dict) or len(kinds) != 1:
        raise BadScript(f"{where}: must be an object with one of {', '.join(KINDS)}; it is {json.dumps(given)[:200]}")
    kind = kinds[0]
    for key in given:
        if key != kind and key not in MAY_HAVE.get(kind, ()):
            known = ", ".join((kind, *MAY_HAVE.get(kind, ())))
            raise BadScript(f"{where}: unknown key {key!r}; {kind} takes {known}")
    return KINDS[kind](f"{where}.{kind}", given[kind], given)


def _say(where: str, value: object, step: Mapping[str, Any]) -> Step:
    return Say(_text(where, value) * _whole(f"{where}: repeat", step.get("repeat", 1), most=MOST_REPEATS))


def _think(where: str, value: object, _: object) -> Step:
    return Think(_text(where, value))


def _shell(where: str, value: object, _: object) -> Step:
    return Act("shell", {"command": _text(where, value)})


def _read(where: str, value: object, _: object) -> Step:
    return Act("read", {"path": _text(where, value)})


def _write(where: str, value: object, _: object) -> Step:
    return Act("write", _texts(where, value, ("path", "text")))


def _edit(where: str, value: object, _: object) -> Step:
    return Act("edit", _texts(where, value, ("path", "old", "new")))


def _tool(where: str, value: object, _: object) -> Step:
    if not isinstance(value, dict) or not set(value) <= {"name", "arguments"}:
        raise BadScript(f'{where}: must be an object with "name" and, if any, "arguments"')
    arguments = value.get("arguments", {})
    if not isinstance(arguments, dict):
        raise BadScript(f"{where}.arguments: must be an object")
    return CallTool(_text(f"{where}.name", value.get("name")), arguments)


def _together(where: str, value: object, _: object) -> Step:
    calls = [each for each in parse(value, where) if isinstance(each, Act | CallTool)]
    if not calls or len(calls) != len(value):  # type: ignore[arg-type]  # parse has seen that it is a list
        raise BadScript(f"{where}: must be steps that call tools, at least one")
    return Together(tuple(calls))


def _recall(where: str, value: object, _: object) -> Step:
    if value is not True and value != "result":
        raise BadScript(f'{where}: must be true or "result"')
    return Recall(result=value == "result")


def _slow(where: str, value: object, _: object) -> Step:
    return Slow(_number(where, value))


def _use(where: str, value: object, _: object) -> Step:
    if not isinstance(value, dict) or not set(value) <= {"input", "cached", "output", "cache_write"}:
        raise BadScript(f"{where}: must be an object with any of input, cached, output, cache_write")
    numbers = {key: _whole(f"{where}.{key}", each) for key, each in value.items()}
    try:
        return Use(Usage(**{"input": 0, "cached": 0, "output": 0, **numbers}))
    except ValueError as error:
        raise BadScript(f"{where}: {error}") from None


def _end(where: str, value: object, _: object) -> Step:
    _true(where, value)
    return End()


def _refuse(where: str, value: object, _: object) -> Step:
    return Refuse(_text(where, value))


def _error(where: str, value: object, step: Mapping[str, Any]) -> Step:
    status = _whole(where, value, least=400, most=599)
    message = _text(f"{where}: message", step.get("message", f"the script says {status}"))
    after = step.get("retry_after")
    return Break(
        Failure(status, message, None if after is None else _number(f"{where}: retry_after", after)),
        _times(where, step),
    )


def _context_exceeded(where: str, value: object, step: Mapping[str, Any]) -> Step:
    _true(where, value)
    return Break(Failure(400, "", too_long=True), _times(where, step))  # each codec has its own words for it


def _cut(where: str, value: object, step: Mapping[str, Any]) -> Step:
    _true(where, value)
    return Break(Cut(), _times(where, step))


def _hang(where: str, value: object, step: Mapping[str, Any]) -> Step:
    _true(where, value)
    return Break(Hang(), _times(where, step))


def _garbage(where: str, value: object, step: Mapping[str, Any]) -> Step:
    return Break(Garbage(_text(where, value)), _times(where, step))


def _times(where: str, step: Mapping[str, Any]) -> int | None:
    return _whole(f"{where}: times", step["times"], least=1) if "times" in step else None


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadScript(f"{where}: must be a text; it is {json.dumps(value)[:200]}")
    return value


def _texts(where: str, value: object, keys: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise BadScript(f"{where}: must be an object with the texts {', '.join(keys)}")
    return {key: _text(f"{where}.{key}", value[key]) for key in keys}


def _number(where: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise BadScript(f"{where}: must be a number of seconds")
    return value


def _whole(where: str, value: object, least: int = 0, most: int = 10**12) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadScript(f"{where}: must be a whole number from {least} to {most}")
    return value


def _true(where: str, value: object) -> None:
    if value is not True:
        raise BadScript(f"{where}: must be true")


KINDS: Mapping[str, Callable[[str, object, Mapping[str, Any]], Step]] = {
    "say": _say,
    "think": _think,
    "shell": _shell,
    "write": _write,
    "edit": _edit,
    "read": _read,
    "tool": _tool,
    "together": _together,
    "recall": _recall,
    "slow": _slow,
    "use": _use,
    "end": _end,
    "refuse": _refuse,
    "error": _error,
    "context_exceeded": _context_exceeded,
    "cut": _cut,
    "hang": _hang,
    "garbage": _garbage,
}
