"""Which step comes next is read off the conversation, never remembered.

A user prompt carries its script in a mark, `[[model: [steps]]]`. The script falls into moves, one for each model call:
a move ends with the step that calls a tool (its result comes with the next call) or with the end of a turn. The history
after the prompt tells how many moves have been answered, so retries, resumes, forks and parallel sessions all find
their place, also after the server was started anew.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remuda.scripted_model.conversation import Conversation, Item, Returned, Said
from remuda.scripted_model.reply import Call, Fault, Part, Refusal, Reply, Text, Thought, Usage
from remuda.scripted_model.steps import (
    Act,
    BadScript,
    Break,
    CallTool,
    End,
    Recall,
    Refuse,
    Say,
    Slow,
    Step,
    Think,
    Together,
    Use,
    parse,
)
from remuda.scripted_model.tools import call_for, missing

MARK = "[[model:"
OVER = "Nothing more is scripted."
_ESCAPED = re.compile(r"\[\s*\{\s*\\\"")  # `opencode run` puts prompts in quotes, and escapes those that are inside


@dataclass(frozen=True, slots=True)
class Script:
    source: str
    prompt: int  # which item of the conversation carries it
    ordinal: int  # how many scripted prompts there were before it


@dataclass(frozen=True, slots=True)
class Move:
    """The steps of one model call, each with its number in the script."""

    steps: tuple[tuple[int, Step], ...]
    pace: float

    @property
    def calls(self) -> int:
        return sum(_calls(step) for _, step in self.steps)


@dataclass(frozen=True, slots=True)
class Played:
    """What one move comes to, and which fault it met, so that the fault can be counted."""

    reply: Reply
    names: tuple[str, ...]
    broke: int | None = None


def find(items: Sequence[Item]) -> Script | None:
    """The last script that a user wrote."""
    found = None
    ordinal = 0
    for index, item in enumerate(items):
        if isinstance(item, Said) and item.by == "user":
            for source in sources(item.text):
                found = Script(source, index, ordinal)
                ordinal += 1
    return found


def sources(text: str) -> Iterable[str]:
    """Each marked script, as JSON text. What stands inside of one (for a subagent, say) belongs to it."""
    start = text.find(MARK)
    while start >= 0:
        rest = text[start + len(MARK) :].lstrip()
        if _ESCAPED.match(rest):
            rest = rest.replace('\\"', '"')
        end = _end_of_json(rest)
        yield rest[:end]
        text = rest[end:]
        start = text.find(MARK)


def _end_of_json(text: str) -> int:
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        line = text.find("\n")
        return line if line >= 0 else len(text)


def moves_of(source: str) -> tuple[Move, ...]:
    try:
        steps = parse(json.loads(source))
    except ValueError as error:
        what = str(error) if isinstance(error, BadScript) else f"not JSON: {error}"
        raise BadScript(f"the prompt's {MARK} …]] is wrong: {what}") from None
    moves: list[Move] = []
    at_hand: list[tuple[int, Step]] = []
    pace = 0.0
    for index, step in enumerate(steps):
        pace = step.seconds if isinstance(step, Slow) else pace
        at_hand.append((index, step))
        if isinstance(step, End | Refuse) or _calls(step):
            moves.append(Move(tuple(at_hand), pace))
            at_hand = []
    return (*moves, Move(tuple(at_hand), pace)) if at_hand else tuple(moves)


def position(moves: Sequence[Move], after: Iterable[Item]) -> int:
    """How many moves the history has answered.

    A move with calls is answered when as many results came back. One without is answered when the model has spoken and
    a user speaks after it.
    """
    index = results = 0
    spoke = False
    for item in after:
        if index == len(moves):
            break
        calls = moves[index].calls
        results += isinstance(item, Returned)
        spoke = spoke or (isinstance(item, Said) and item.by == "assistant")
        answered = spoke and not calls and isinstance(item, Said) and item.by == "user"
        if answered or (calls and results >= calls):
            index, results, spoke = index + 1, 0, False
    return index


def perform(move: Move, conversation: Conversation, played: Mapping[int, int], usage: Usage) -> Played:
    """`played` tells how often each fault of this move has happened already."""
    stage = _Stage(usage)
    for index, step in move.steps:
        if isinstance(step, Break) and step.times is not None and played.get(index, 0) >= step.times:
            continue
        stage.names.append(_name(step))
        if isinstance(step, Break):
            return Played(stage.reply(move.pace, step.fault), tuple(stage.names), index)
        if isinstance(step, Use):
            stage.usage = step.usage
        stage.parts += _parts(step, conversation)
    if not stage.parts:
        stage.parts.append(Text("Done."))
    return Played(stage.reply(move.pace, None), tuple(stage.names))


def over(usage: Usage) -> Played:
    return Played(Reply((Text(OVER),), usage), ("over",))


@dataclass(slots=True)
class _Stage:
    usage: Usage
    parts: list[Part] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def reply(self, pace: float, fault: Fault | None) -> Reply:
        return Reply(tuple(_merged(self.parts)), self.usage, pace, fault)


def _parts(step: Step, conversation: Conversation) -> list[Part]:
    match step:
        case Say():
            return [Text(step.text)]
        case Think():
            return [Thought(step.text)]
        case Refuse():
            return [Refusal(step.text)]
        case Recall():
            return [Text(_recollection(step, conversation))]
        case Act() | CallTool():
            return [_called(step, conversation)]
        case Together():
            return [_called(each, conversation) for each in step.calls]
        case _:
            return []


def _called(step: Act | CallTool, conversation: Conversation) -> Call | Text:
    return call_for(step, conversation) or Text(missing(step, conversation))


def _recollection(step: Recall, conversation: Conversation) -> str:
    if step.result:
        return conversation.last_result() or "(no result)"
    prompts = sum(
        len([*sources(each.text)]) for each in conversation.items if isinstance(each, Said) and each.by == "user"
    )
    results = sum(isinstance(each, Returned) for each in conversation.items)
    return f"I remember {prompts} scripted prompts and {results} tool results."


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Texts that follow each other are one text, as a model would have it."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Text) and isinstance(last, Text):
            merged[-1] = Text(last.text + part.text)
        elif isinstance(part, Thought) and isinstance(last, Thought):
            merged[-1] = Thought(last.text + part.text)
        else:
            merged.append(part)
    return merged


def _calls(step: Step) -> int:
    return len(step.calls) if isinstance(step, Together) else int(isinstance(step, Act | CallTool))


def _name(step: Step) -> str:
    match step:
        case Act():
            return step.action
        case CallTool():
            return f"tool {step.name}"
        case Break():
            return type(step.fault).__name__.lower()
        case _:
            return type(step).__name__.lower()
