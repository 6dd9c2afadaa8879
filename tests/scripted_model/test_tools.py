"""Steps become calls of the tools that real clients declare. The declarations are those that the clients sent."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from remuda.scripted_model.conversation import Conversation, Said, Tool
from remuda.scripted_model.reply import Call
from remuda.scripted_model.steps import Act, CallTool
from remuda.scripted_model.tools import call_for, missing, workplace

DECLARED: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "declared_tools.json").read_text())
WORDS = {
    "claude": " - Primary working directory: /home/ada/work\n",
    "codex": "<environment_context>\n  <cwd>/home/ada/work</cwd>\n",
    "codex code mode": "<environment_context>\n  <cwd>/home/ada/work</cwd>\n",
    "goose": "<working-directory>/home/ada/work</working-directory>\n",
    "gemini": "- **Workspace Directories:**\n  - /home/ada/work\n- **Directory Structure:**",
    "opencode": "<env>\n  Working directory: /home/ada/work\n",
}
WRITE = Act("write", {"path": "a.txt", "text": "one\ntwo\n"})
EDIT = Act("edit", {"path": "a.txt", "old": "one", "new": "three"})
READ = Act("read", {"path": "a.txt"})
ADDED = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n"
UPDATED = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+three\n*** End Patch\n"
HERE = "/home/ada/work/a.txt"


def conversation_of(client: str) -> Conversation:
    return Conversation("m", (Said("system", WORDS[client]),), tuple(Tool(**each) for each in DECLARED[client]))


def call(step: Act | CallTool, client: str) -> Call:
    made = call_for(step, conversation_of(client))
    assert made is not None
    return made


@pytest.mark.parametrize("client", WORDS)
def test_the_workplace_is_found_in_the_words_of_each_client(client: str) -> None:
    assert workplace(conversation_of(client)) == "/home/ada/work"


def test_the_workplace_is_found_at_the_end_of_a_very_long_prompt() -> None:
    long = Conversation("m", (Said("user", "x" * 10_000_000 + WORDS["goose"]),))
    assert workplace(long) == "/home/ada/work"


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude", Call("Bash", {"command": "ls", "description": "Scripted"})),
        ("codex", Call("exec_command", {"cmd": "ls", "yield_time_ms": 30_000})),
        ("goose", Call("shell", {"command": "ls"})),
        ("gemini", Call("run_shell_command", {"command": "ls", "is_background": False})),
        ("opencode", Call("bash", {"command": "ls"})),
    ],
)
def test_a_command_goes_to_the_shell_of_each_client(client: str, expected: Call) -> None:
    assert call(Act("shell", {"command": "ls"}), client) == expected


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude", Call("Write", {"file_path": HERE, "content": "one\ntwo\n"})),
        ("codex", Call("apply_patch", ADDED)),
        ("goose", Call("write", {"path": HERE, "content": "one\ntwo\n"})),
        ("gemini", Call("write_file", {"file_path": HERE, "content": "one\ntwo\n"})),
        ("opencode", Call("write", {"filePath": HERE, "content": "one\ntwo\n"})),
    ],
)
def test_a_file_is_written_by_the_tool_of_each_client(client: str, expected: Call) -> None:
    assert call(WRITE, client) == expected


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude", Call("Edit", {"file_path": HERE, "old_string": "one", "new_string": "three"})),
        ("codex", Call("apply_patch", UPDATED)),
        ("goose", Call("edit", {"path": HERE, "before": "one", "after": "three"})),
        (
            "gemini",
            Call(
                "replace",
                {"file_path": HERE, "instruction": "Scripted", "old_string": "one", "new_string": "three"},
            ),
        ),
        ("opencode", Call("edit", {"filePath": HERE, "oldString": "one", "newString": "three"})),
    ],
)
def test_a_file_is_edited_by_the_tool_of_each_client(client: str, expected: Call) -> None:
    assert call(EDIT, client) == expected


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude", Call("Read", {"file_path": HERE})),
        ("codex", Call("exec_command", {"cmd": "cat a.txt", "yield_time_ms": 30_000})),
        ("goose", Call("shell", {"command": "cat a.txt"})),
        ("gemini", Call("read_file", {"file_path": HERE})),
        ("opencode", Call("read", {"filePath": HERE})),
    ],
)
def test_a_file_is_read_by_the_tool_or_the_shell_of_each_client(client: str, expected: Call) -> None:
    assert call(READ, client) == expected


@pytest.mark.parametrize(
    ("step", "inside"),
    [
        (Act("shell", {"command": 'echo "hi"'}), r'"cmd": "echo \"hi\""'),
        (WRITE, json.dumps(ADDED)),
        (EDIT, json.dumps(UPDATED)),
        (CallTool("ping-me", {"text": "x"}), '"ping-me"'),
    ],
)
def test_in_code_mode_every_call_is_a_program(step: Act | CallTool, inside: str) -> None:
    made = call(step, "codex code mode")
    assert made.tool == "exec"
    assert isinstance(made.arguments, str)
    assert inside in made.arguments


def test_a_client_with_a_shell_only_writes_and_edits_by_commands(tmp_path: Path) -> None:
    shell = Conversation("m", (), (Tool("shell", {"properties": {"command": {"type": "string"}}}),))
    for step in (
        Act("write", {"path": str(tmp_path / "a b.txt"), "text": "it's\n50% 'old'\n"}),
        Act("edit", {"path": str(tmp_path / "a b.txt"), "old": "'old'", "new": "$new\\n"}),
    ):
        made = call_for(step, shell)
        assert made is not None
        assert isinstance(made.arguments, dict)
        run(made.arguments["command"])
    assert (tmp_path / "a b.txt").read_text() == "it's\n50% $new\\n\n"


def run(command: str) -> None:
    subprocess.run(["bash", "-c", command], check=True, timeout=20)


def test_the_same_name_with_other_arguments_is_another_tool() -> None:
    argv = Tool("shell", {"properties": {"command": {"type": "array"}}})
    made = call_for(Act("shell", {"command": "ls"}), Conversation("m", (), (argv,)))
    assert made == Call("shell", {"command": ["bash", "-lc", "ls"]})


def test_required_arguments_that_a_step_does_not_give_are_filled() -> None:
    schema = {
        "properties": {"command": {"type": "string"}, "why": {"type": "string"}, "level": {"enum": ["high", "low"]}},
        "required": ["command", "why", "level"],
    }
    made = call_for(Act("shell", {"command": "ls"}), Conversation("m", (), (Tool("bash", schema),)))
    assert made == Call("bash", {"command": "ls", "why": "scripted", "level": "low"})


def test_an_absolute_path_is_left_as_it_is() -> None:
    assert call(Act("read", {"path": "/etc/hosts"}), "claude") == Call("Read", {"file_path": "/etc/hosts"})


@pytest.mark.parametrize(
    "offered", ["ping-me", "mcp__tiny__ping-me", "tiny_ping-me", "mcp__tiny__ping_me", "a.ping-me"]
)
def test_a_tool_of_an_mcp_server_is_found_by_the_end_of_its_name(offered: str) -> None:
    tools = (Tool("xping-me", {}), Tool(offered, {}))
    assert call_for(CallTool("ping-me", {"a": 1}), Conversation("m", (), tools)) == Call(offered, {"a": 1})


def test_a_tool_in_a_namespace_is_called_with_it_and_found_by_both() -> None:
    tools = (Tool("ping_me", {}, namespace="mcp__tiny"),)
    for name in ("ping-me", "tiny_ping-me"):
        assert call_for(CallTool(name, {}), Conversation("m", (), tools)) == Call("ping_me", {}, "mcp__tiny")


def test_the_exact_name_wins_over_the_end_of_another() -> None:
    tools = (Tool("mcp__a__read", {}), Tool("read", {}))
    assert call_for(CallTool("read", {}), Conversation("m", (), tools)) == Call("read", {})


def test_a_tool_that_nobody_offers_is_called_all_the_same() -> None:
    assert call_for(CallTool("nothing", {"a": 1}), Conversation("m", ())) == Call("nothing", {"a": 1})


def test_an_action_that_no_tool_can_do_is_told_in_words() -> None:
    step = Act("shell", {"command": "ls"})
    conversation = Conversation("m", (), (Tool("look", {}),))
    assert call_for(step, conversation) is None
    assert missing(step, conversation) == "[no tool for shell; the client offers: look]"
