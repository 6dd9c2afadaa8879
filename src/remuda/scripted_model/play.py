"""From a conversation to what is answered: the one decision of the server, pure."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from remuda.scripted_model.codec import Codec
from remuda.scripted_model.conversation import Conversation
from remuda.scripted_model.reply import NOTHING, USUAL, Failure, Reply, Text, Usage
from remuda.scripted_model.script import Move, Script, find, moves_of, over, perform, position
from remuda.scripted_model.side_calls import side_call
from remuda.scripted_model.steps import BadScript
from remuda.scripted_model.tools import workplace

UNSCRIPTED = "This prompt carries no script."


class Kind(StrEnum):
    SCRIPTED = "scripted"  # a step of a script
    UNSCRIPTED = "unscripted"  # a session without a script; it is answered, and its tokens count
    SIDE = "side"  # the client's own affair
    REFUSED = "refused"  # the request or its script is wrong


@dataclass(frozen=True, slots=True)
class Tokens:
    scripted: Usage = USUAL
    side: Usage = NOTHING


@dataclass(frozen=True, slots=True)
class Plan:
    kind: Kind
    reply: Reply
    names: tuple[str, ...]
    move: int | None = None
    broke: tuple[str, int] | None = None  # the fault to count: whose, and which


# How often each fault of a move has happened: the one thing that no conversation tells.
History = Callable[[str], Mapping[int, int]]


def plan(conversation: Conversation, who: str, history: History, tokens: Tokens, codec: Codec) -> Plan:
    """`who` tells clients apart whose conversations look the same."""
    script = find(conversation.items)
    try:
        moves = moves_of(script.source) if script else ()
    except BadScript as error:
        wrong = Plan(Kind.REFUSED, Reply(fault=Failure(400, str(error))), ("bad script",))
        return _aside(conversation, False, tokens) or wrong
    wants_tools = any(move.calls for move in moves) if script else None
    aside = _aside(conversation, wants_tools, tokens)
    if aside:
        return aside
    return (
        _scripted(conversation, script, moves, _Asked(who, history, tokens, codec)) if script else _unscripted(tokens)
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    who: str
    history: History
    tokens: Tokens
    codec: Codec


def _scripted(conversation: Conversation, script: Script, moves: tuple[Move, ...], asked: _Asked) -> Plan:
    index = position(moves, conversation.items[script.prompt + 1 :])
    if index >= len(moves):
        last = over(asked.tokens.scripted)
        return Plan(Kind.SCRIPTED, last.reply, last.names, index)
    key = _key(asked.who, workplace(conversation), script.source, str(script.ordinal))
    played = perform(moves[index], conversation, asked.history(key), asked.tokens.scripted)
    fault = played.reply.fault
    reply = played.reply
    if isinstance(fault, Failure) and fault.too_long:
        reply = replace(reply, fault=replace(fault, message=asked.codec.too_long))
    broke = None if played.broke is None else (key, played.broke)
    return Plan(Kind.SCRIPTED, reply, played.names, index, broke)


def _aside(conversation: Conversation, wants_tools: bool | None, tokens: Tokens) -> Plan | None:
    found = side_call(conversation, wants_tools)
    return Plan(Kind.SIDE, Reply((Text(found.answer),), tokens.side), (found.name,)) if found else None


def _unscripted(tokens: Tokens) -> Plan:
    return Plan(Kind.UNSCRIPTED, Reply((Text(UNSCRIPTED),), tokens.scripted), ("unscripted",))


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
