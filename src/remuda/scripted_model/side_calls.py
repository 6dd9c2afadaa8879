"""Calls that clients make on their own account, and answers that let them go on.

Titles, summaries, routers, reviews: the user's prompt is quoted in most of them, script and all, so they must be told
from the call that is meant. Three signs: they demand JSON and offer no tools; they use words that a row below knows; or
they offer no tools although the script needs some (or there is no script).
"""

import re
from dataclasses import dataclass

from remuda.scripted_model.codec import compact
from remuda.scripted_model.conversation import Conversation
from remuda.scripted_model.schema import sample


@dataclass(frozen=True, slots=True)
class Sign:
    name: str
    words: re.Pattern[str]
    answer: str
    bare: bool = True  # only when no tools are offered


TITLE = "Scripted session"
SUMMARY = "<summary>\nThe session follows a script.\n</summary>"
REVIEW = frozenset({"outcome", "risk_level"})  # what Codex asks of the model that approves a tool call

SIGNS: tuple[Sign, ...] = (
    Sign("topic", re.compile(r"isNewTopic"), '{"isNewTopic": false, "title": null}'),
    Sign(
        "title",
        re.compile(
            r"[Yy]ou are a title generator"  # opencode
            r"|[Gg]enerate (?:a|an) [^.\n]{0,40}title"  # claude, goose, opencode, qwen
            r"|concise description of this session"  # goose before 1.50
        ),
        TITLE,
    ),
    Sign("summary", re.compile(r"[Ss]ummari[sz]e (?:this|the|our) (?:coding )?(?:conversation|session)"), SUMMARY),
    Sign(
        "compaction",
        re.compile(
            r"Your task is to create a detailed summary of (?:the|this|our) conversation"  # claude
            r"|CONTEXT CHECKPOINT COMPACTION"  # codex
            r"|<state_snapshot>"  # gemini, qwen
        ),
        SUMMARY,
        bare=False,
    ),
)


@dataclass(frozen=True, slots=True)
class SideCall:
    name: str
    answer: str


def side_call(conversation: Conversation, wants_tools: bool | None) -> SideCall | None:
    """`wants_tools`: whether the script calls tools; None when there is no script."""
    schema = conversation.schema
    if schema is not None and (not conversation.tools or set(schema.get("properties") or ()) & REVIEW):
        return SideCall("json", compact(sample({"type": "object", **schema})))
    asked = conversation.last_prompt()
    for sign in SIGNS:
        if sign.bare and conversation.tools:
            continue
        # Only a bare call may be told by its system prompt: the one of a real session has every word in it.
        if sign.words.search(asked) or (sign.bare and sign.words.search(conversation.system())):
            return SideCall(sign.name, sign.answer)
    if not conversation.tools and wants_tools is not False:
        return SideCall("no tools", TITLE)
    return None
