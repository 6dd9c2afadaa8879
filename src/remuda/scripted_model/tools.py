"""The tools of the clients, as a table: which tool does an action, and in which words it takes its arguments.

A row fits when the client declares a tool of that name and all its arguments that depend on the step. Constants are
dropped where the client does not know them. A client that has no tool for files gets a command for its shell instead.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from remuda.scripted_model.conversation import Conversation, Said, Tool
from remuda.scripted_model.reply import Call
from remuda.scripted_model.schema import filled
from remuda.scripted_model.steps import Act, CallTool


@dataclass(frozen=True, slots=True)
class Row:
    clients: str
    action: str
    tool: str
    arguments: Mapping[str, Any] | str  # $name stands for a value of the step; a text is for a freeform tool


# $path is absolute where the client says where it works, because several refuse a relative one.
TABLE: tuple[Row, ...] = (
    Row("claude", "shell", "Bash", {"command": "$command", "description": "Scripted"}),
    Row("opencode, pi, vibe, mini", "shell", "bash", {"command": "$command", "description": "Scripted"}),
    Row("codex", "shell", "exec_command", {"cmd": "$command", "yield_time_ms": 30_000}),
    Row("codex", "shell", "shell_command", {"command": "$command"}),
    Row("codex", "shell", "shell", {"command": ["bash", "-lc", "$command"]}),
    Row("codex in code mode", "shell", "exec", "$js_shell"),
    Row("goose", "shell", "shell", {"command": "$command"}),
    Row("goose before 1.50", "shell", "developer__shell", {"command": "$command"}),
    Row("gemini, qwen", "shell", "run_shell_command", {"command": "$command", "is_background": False}),
    Row("cline", "shell", "execute_command", {"command": "$command", "requires_approval": False}),
    Row("cline", "shell", "run_commands", {"commands": ["$command"]}),
    Row("kimi", "shell", "Shell", {"command": "$command"}),
    Row("openhands", "shell", "terminal", {"command": "$command"}),
    Row("openhands", "shell", "execute_bash", {"command": "$command"}),
    Row("others", "shell", "execute", {"command": "$command"}),
    Row("others", "shell", "run_command", {"command": "$command"}),
    Row("others", "shell", "run_terminal_cmd", {"command": "$command", "is_background": False}),
    Row("claude", "write", "Write", {"file_path": "$path", "content": "$text"}),
    Row("opencode", "write", "write", {"filePath": "$path", "content": "$text"}),
    Row("goose, pi", "write", "write", {"path": "$path", "content": "$text"}),
    Row("codex", "write", "apply_patch", "$patch"),
    Row("opencode with an OpenAI model", "write", "apply_patch", {"patchText": "$patch"}),
    Row("codex before 0.50", "write", "apply_patch", {"input": "$patch"}),
    Row("codex in code mode", "write", "exec", "$js_patch"),
    Row("gemini, qwen", "write", "write_file", {"file_path": "$path", "content": "$text"}),
    Row("vibe", "write", "write_file", {"path": "$path", "content": "$text"}),
    Row("copilot", "write", "create", {"path": "$path", "file_text": "$text"}),
    Row("cline", "write", "write_to_file", {"path": "$path", "content": "$text"}),
    Row("kimi", "write", "WriteFile", {"path": "$path", "content": "$text"}),
    Row("openhands", "write", "file_editor", {"command": "create", "path": "$path", "file_text": "$text"}),
    Row("claude", "edit", "Edit", {"file_path": "$path", "old_string": "$old", "new_string": "$new"}),
    Row("opencode", "edit", "edit", {"filePath": "$path", "oldString": "$old", "newString": "$new"}),
    Row("goose", "edit", "edit", {"path": "$path", "before": "$old", "after": "$new"}),
    Row("copilot", "edit", "edit", {"path": "$path", "old_str": "$old", "new_str": "$new"}),
    Row("pi", "edit", "edit", {"path": "$path", "edits": [{"oldText": "$old", "newText": "$new"}]}),
    Row("codex", "edit", "apply_patch", "$patch"),
    Row("opencode with an OpenAI model", "edit", "apply_patch", {"patchText": "$patch"}),
    Row("codex before 0.50", "edit", "apply_patch", {"input": "$patch"}),
    Row("codex in code mode", "edit", "exec", "$js_patch"),
    Row(
        "gemini, qwen",
        "edit",
        "replace",
        {"file_path": "$path", "instruction": "Scripted", "old_string": "$old", "new_string": "$new"},
    ),
    Row("qwen", "edit", "edit", {"file_path": "$path", "old_string": "$old", "new_string": "$new"}),
    Row("cline", "edit", "replace_in_file", {"path": "$path", "diff": "$blocks"}),
    Row("vibe", "edit", "search_replace", {"file_path": "$path", "content": "$blocks"}),
    Row("kimi", "edit", "StrReplaceFile", {"path": "$path", "edit": {"old": "$old", "new": "$new"}}),
    Row(
        "openhands",
        "edit",
        "file_editor",
        {"command": "str_replace", "path": "$path", "old_str": "$old", "new_str": "$new"},
    ),
    Row("claude", "read", "Read", {"file_path": "$path"}),
    Row("opencode", "read", "read", {"filePath": "$path"}),
    Row("pi", "read", "read", {"path": "$path"}),
    Row("gemini", "read", "read_file", {"file_path": "$path"}),
    Row("qwen", "read", "read_file", {"absolute_path": "$path"}),
    Row("cline, vibe", "read", "read_file", {"path": "$path"}),
    Row("copilot", "read", "view", {"path": "$path"}),
    Row("kimi", "read", "ReadFile", {"path": "$path"}),
    Row("openhands", "read", "file_editor", {"command": "view", "path": "$path"}),
)

# How clients tell the model where they work, each in its own words.
WORKPLACE = re.compile(
    r"[Ww]orking [Dd]irectory(?: is)?:? *`?(?P<plain>/[^\s`<\",]+)"  # claude, opencode, goose before 1.50, pi, others
    r"|<cwd>(?P<cwd>/[^<]+)</cwd>"  # codex
    r"|<working-directory>(?P<tag>/[^<]+)</working-directory>"  # goose
    r"|Workspace Directories:\*\*\s+- (?P<listed>/\S+)"  # gemini
    r"|working in the directory: (?P<qwen>/\S+)"
)

NEAR = 100_000

# A shell can edit too, and exactly, if it does not have to quote: the texts go by argument.
EDIT_BY_SHELL = (
    "import sys; path, old, new = sys.argv[1:]; text = open(path).read(); "
    "sys.exit('not found: ' + old) if old not in text else open(path, 'w').write(text.replace(old, new, 1))"
)

# In code mode the tools are only known inside of the sandbox, so the name is looked up there.
JS_CALL = """\
const wanted = %s.replace(/[^A-Za-z0-9_]/g, "_");
const found = ALL_TOOLS.find((t) => t.name === wanted) || ALL_TOOLS.find((t) => t.name.endsWith("_" + wanted));
if (!found) throw new Error("no tool " + wanted);
text(await tools[found.name](%s));
"""


def call_for(step: Act | CallTool, conversation: Conversation) -> Call | None:
    """The call that this client understands, or None when it offers nothing for the action."""
    if isinstance(step, CallTool):
        return _named(step, conversation.tools)
    return _acted(step, conversation) or _by_shell(step, conversation)


def missing(step: Act | CallTool, conversation: Conversation) -> str:
    what = step.action if isinstance(step, Act) else step.name
    return f"[no tool for {what}; the client offers: {', '.join(each.name for each in conversation.tools) or 'none'}]"


def workplace(conversation: Conversation) -> str:
    """Where the client works, if it says so; "" otherwise. What comes last counts: a session can be moved."""
    found = ""
    for item in conversation.items:
        if isinstance(item, Said) and item.by != "assistant":
            for match in WORKPLACE.finditer(_ends(item.text)):
                found = str(match[match.lastgroup or 0]).rstrip(".")
    return found


def _ends(text: str) -> str:
    """Where a client would say it. Nobody should wait for a search through ten megabytes between them."""
    return text if len(text) <= 2 * NEAR else text[:NEAR] + text[-NEAR:]


def _acted(step: Act, conversation: Conversation) -> Call | None:
    for row in TABLE:
        if row.action != step.action:
            continue
        for tool in conversation.tools:
            if tool.name == row.tool and _fits(row, tool):
                return _filled_in(row, tool, _values(step, conversation))
    return None


def _fits(row: Row, tool: Tool) -> bool:
    if isinstance(row.arguments, str) or tool.freeform:
        return isinstance(row.arguments, str) and tool.freeform
    if not tool.properties:
        return True
    return all(_takes(tool.properties.get(name), value) for name, value in row.arguments.items() if _depends(value))


def _takes(declared: object, value: object) -> bool:
    """Whether a property can hold the value: the same name may be a text in one client and a list in another."""
    if not isinstance(declared, Mapping):
        return False
    kind = declared.get("type")
    kinds = [str(each).lower() for each in (kind if isinstance(kind, list) else [kind]) if each]
    wanted = "array" if isinstance(value, list) else "object" if isinstance(value, Mapping) else "string"
    return not kinds or wanted in kinds


def _depends(value: object) -> bool:
    return "$" in json.dumps(value)


def _filled_in(row: Row, tool: Tool, values: Mapping[str, str]) -> Call:
    if isinstance(row.arguments, str):
        return Call(tool.name, str(_put(row.arguments, values)), tool.namespace)
    known = {
        name: _put(value, values)
        for name, value in row.arguments.items()
        if _depends(value) or not tool.properties or name in tool.properties
    }
    return Call(tool.name, filled(tool.schema, known), tool.namespace)


def _put(template: Any, values: Mapping[str, str]) -> Any:
    if isinstance(template, Mapping):
        return {key: _put(each, values) for key, each in template.items()}
    if isinstance(template, list):
        return [_put(each, values) for each in template]
    return values.get(template[1:], "") if isinstance(template, str) and template.startswith("$") else template


def _values(step: Act, conversation: Conversation) -> dict[str, str]:
    values = dict(step.values)
    if step.action == "shell":
        return {**values, "js_shell": _js("exec_command", {"cmd": values["command"], "yield_time_ms": 30_000})}
    given = values["path"]
    values["path"] = given if given.startswith("/") else "/".join(filter(None, (workplace(conversation), given)))
    if step.action in ("write", "edit"):
        patch = _patch(given, values)
        values |= {"patch": patch, "js_patch": _js("apply_patch", patch)}
    if step.action == "edit":
        values["blocks"] = f"<<<<<<< SEARCH\n{values['old']}\n=======\n{values['new']}\n>>>>>>> REPLACE"
    return values


def _patch(path: str, values: Mapping[str, str]) -> str:
    """In the format of Codex. It knows whole lines only."""
    if "text" in values:
        lines = [f"*** Add File: {path}", *("+" + line for line in values["text"].removesuffix("\n").split("\n"))]
    else:
        lines = [f"*** Update File: {path}", "@@"]
        lines += ["-" + line for line in values["old"].removesuffix("\n").split("\n")]
        lines += ["+" + line for line in values["new"].removesuffix("\n").split("\n")]
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))


def _by_shell(step: Act, conversation: Conversation) -> Call | None:
    if step.action == "shell":
        return None
    path = shlex.quote(step.values["path"])
    match step.action:
        case "write":
            command = f"printf %s {shlex.quote(step.values['text'])} > {path}"
        case "edit":
            old, new = shlex.quote(step.values["old"]), shlex.quote(step.values["new"])
            command = f"python3 -c {shlex.quote(EDIT_BY_SHELL)} {path} {old} {new}"
        case _:
            command = f"cat {path}"
    return _acted(Act("shell", {"command": command}), conversation)


def _named(step: CallTool, tools: Iterable[Tool]) -> Call:
    """Clients prefix the tools of MCP servers and change signs in them, each in its own way: the end decides."""
    offered = sorted(tools, key=lambda each: len(each.name))
    wanted = _plain(step.name)
    exact = [tool for tool in offered if tool.name == step.name]
    ending = [tool for tool in offered if f"_{_plain(tool.namespace)}_{_plain(tool.name)}".endswith(f"_{wanted}")]
    for tool in (*exact, *ending):
        return Call(tool.name, _as_text(step.arguments) if tool.freeform else step.arguments, tool.namespace)
    for tool in offered:
        if tool.name == "exec" and tool.freeform:
            return Call(tool.name, _js(step.name, step.arguments), tool.namespace)
    return Call(step.name, step.arguments)  # a tool that does not exist: how the client takes that is worth a test


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _as_text(arguments: Mapping[str, Any]) -> str:
    """What a freeform tool is given when the script has an object: its one text, or all of it as JSON."""
    values = list(arguments.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(arguments)


def _js(tool: str, arguments: object) -> str:
    return JS_CALL % (json.dumps(tool), json.dumps(arguments))
