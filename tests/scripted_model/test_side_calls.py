"""What clients ask on their own account is told from what the script is about."""

import json
from typing import Any

import pytest

from remuda.scripted_model.conversation import Conversation, Said, Tool
from remuda.scripted_model.schema import sample
from remuda.scripted_model.side_calls import side_call

TOOLS = (Tool("Bash", {}),)


@pytest.mark.parametrize(
    ("name", "system", "prompt"),
    [
        ("title", "You are a title generator. You output ONLY a thread title.", "[[model: …]]"),
        ("title", "Generate a short title (four words or less) for this conversation.", "Hello"),
        ("title", "", "Generate a concise, sentence-case title for this session"),
        ("topic", "Analyze if this message is new. Format: JSON with 'isNewTopic' and 'title'", "Hello"),
        ("summary", "", "Please summarize this conversation."),
        ("no tools", "", "quota"),
    ],
)
def test_a_bare_call_is_known_by_its_words(name: str, system: str, prompt: str) -> None:
    found = side_call(Conversation("m", (Said("system", system), Said("user", prompt))), None)
    assert found is not None
    assert found.name == name
    assert found.answer


def test_the_same_words_in_a_session_with_tools_are_no_side_call() -> None:
    talk = Conversation("m", (Said("system", "You are a title generator."), Said("user", "Generate a title")), TOOLS)
    assert side_call(talk, True) is None


def test_a_compaction_is_a_side_call_though_it_offers_tools() -> None:
    asked = Said("user", "Your task is to create a detailed summary of the conversation so far, paying close attention")
    found = side_call(Conversation("m", (asked,), TOOLS), True)
    assert found is not None
    assert found.name == "compaction"


def test_a_call_without_tools_is_meant_if_its_script_needs_none() -> None:
    assert side_call(Conversation("m", (Said("user", "Hello"),)), False) is None


REVIEW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "risk_level": {"type": "string", "enum": ["critical", "high", "medium", "low"]},
        "outcome": {"type": "string", "enum": ["deny", "allow"]},
        "rationale": {"type": "string"},
    },
    "required": ["risk_level", "outcome", "rationale"],
}
NEXT = {
    "type": "OBJECT",
    "properties": {"reasoning": {"type": "STRING"}, "next_speaker": {"type": "STRING", "enum": ["model", "user"]}},
    "required": ["reasoning", "next_speaker"],
}
ROUTER = {
    "type": "OBJECT",
    "properties": {"complexity_reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER"}},
    "required": ["complexity_reasoning", "complexity_score"],
}


@pytest.mark.parametrize(
    ("schema", "tools", "expected"),
    [
        (REVIEW, (), {"risk_level": "low", "outcome": "allow", "rationale": "scripted"}),
        (REVIEW, TOOLS, {"risk_level": "low", "outcome": "allow", "rationale": "scripted"}),
        (NEXT, (), {"reasoning": "scripted", "next_speaker": "user"}),
        (ROUTER, (), {"complexity_reasoning": "scripted", "complexity_score": 0}),
        ({}, (), {}),
    ],
)
def test_a_demand_for_json_gets_json_that_lets_the_client_go_on(
    schema: dict[str, Any], tools: tuple[Tool, ...], expected: object
) -> None:
    found = side_call(Conversation("m", (Said("user", "Hello"),), tools, schema=schema), True)
    assert found is not None
    assert json.loads(found.answer) == expected


def test_a_session_that_wants_its_last_word_in_json_is_still_played() -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    assert side_call(Conversation("m", (Said("user", "Hello"),), TOOLS, schema=schema), True) is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 7}, 7),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [False, False]),
        ({"type": ["null", "string"]}, None),
        ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, 3),
        ({"properties": {"a": {"type": "number"}}, "required": ["a"]}, {"a": 0}),
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, Any], expected: object) -> None:
    assert sample(schema) == expected


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    endless: dict[str, Any] = {"type": "object", "required": ["again"]}
    endless["properties"] = {"again": endless}
    assert "again" in sample(endless)
