"""The shape of the code, as tests: sizes, names, imports, tables, settings. There is no list of exceptions."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from remuda.domain.events import AgentEvent, Event
from remuda.domain.lifecycle import PHASE, STATUS, Phase, Status
from remuda.domain.task_events import TaskAdded, TaskEvent
from remuda.runtime.config import RoleSettings, Settings, load_settings
from remuda.runtime.nearest import keys_of
from remuda.runtime.template import TEMPLATE
from remuda.store import codec

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "remuda"
WRITTEN = [
    path
    for folder in ("src", "tests", "bench", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".sql", ".js", ".css", ".html") and ".min." not in path.name
]
PYTHON = [path for path in WRITTEN if path.suffix == ".py"]
BANNED = ("Manager", "Handler", "Service", "Helper", "Util", "Common", "Base", "Impl", "V2")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


# --- sizes ---


def test_the_loop_fits_on_a_page_and_a_half() -> None:
    assert len((SOURCE / "runtime" / "loop.py").read_text().splitlines()) <= 150


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    long = {name_of(path): length for path in WRITTEN if (length := len(path.read_text().splitlines())) > 400}
    assert long == {}


# --- names ---


def words(name: str) -> list[str]:
    """A name taken apart: `HTTPHandlerV2` and `http_handler_v2` are made of the same words."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*", name)]


def test_no_class_or_file_has_a_name_that_says_nothing() -> None:
    banned = {word.lower() for word in BANNED} | {f"{word.lower()}s" for word in BANNED} | {"utilities"}
    names = [(name_of(path), path.stem) for path in WRITTEN]
    names += [
        (name_of(path), node.name)
        for path in PYTHON
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    ]
    assert [(where, name) for where, name in names if banned & set(words(name))] == []


@pytest.mark.parametrize("name", ["AgentManager", "http_utils", "HTTPHandler", "OrderV2", "BaseAgent", "common"])
def test_a_name_that_says_nothing_is_recognised(name: str) -> None:
    assert {word.lower().rstrip("s") for word in words(name)} & {word.lower() for word in BANNED}


# --- imports ---


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_domain_imports_itself_and_the_standard_library_only() -> None:
    found = {module for path in (SOURCE / "domain").glob("*.py") for module in imported(path)}
    others = {module for module in found if not module.startswith("remuda.domain")}
    assert {module.split(".")[0] for module in others} <= set(sys.stdlib_module_names)
    assert others <= {
        "collections.abc",
        "dataclasses",
        "enum",
        "fnmatch",
        "hashlib",
        "math",
        "posixpath",
        "re",
        "typing",
    }


def test_the_domain_never_waits() -> None:
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    for path in (SOURCE / "domain").glob("*.py"):
        assert not [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, waiting)], name_of(path)


def test_only_the_composition_names_concrete_adapters_in_the_runtime() -> None:
    adapters = {"remuda.store.sqlite", "remuda.store.memory", "remuda.agents.catalog", "remuda.agents.process"}
    naming = {
        path.name
        for path in (SOURCE / "runtime").glob("*.py")
        for module in imported(path)
        if any(module.startswith(adapter) for adapter in adapters)
    }
    assert naming <= {"compose.py"}


def test_importing_the_package_brings_nothing_heavy_and_does_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, threading; import remuda; "
        "heavy = {'asyncio', 'apsw', 'msgspec', 'click', 'starlette', 'uvicorn', 'uvloop', 'acp', 'mcp', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)), threading.active_count())"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("[] 1\n", "")
    assert list(tmp_path.iterdir()) == []


# --- tests ---


def sleeps(path: Path) -> Iterator[int]:
    """Lines that sleep for some time, but for those of a bounded wait for a condition, which is called `until`, and of
    what measures by ticking, which is called `heartbeat`."""
    tree = tree_of(path)
    allowed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in ("until", "heartbeat")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in allowed:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "sleep" and [getattr(each, "value", None) for each in node.args] != [0]:
                yield node.lineno


def test_no_test_sleeps() -> None:
    """Where time is virtual a sleep takes none, and a stand-in for an agent may do as badly as agents do."""
    elsewhere = {"test_silence.py", "faulty_agent.py"}
    mine = [
        path
        for path in PYTHON
        if path.is_relative_to(ROOT / "tests") and path.parent.name != "simulation" and path.name not in elsewhere
    ]
    assert {name_of(path): lines for path in mine if (lines := list(sleeps(path)))} == {}


def test_no_test_is_built_on_mocks() -> None:
    for path in PYTHON:
        if path.is_relative_to(ROOT / "tests"):
            assert not [module for module in imported(path) if "mock" in module], name_of(path)


# --- what belongs together ---


def test_every_event_can_be_kept() -> None:
    assert set(codec._DECODERS) == {kind.__name__ for kind in get_args(Event)}


def test_every_event_of_an_agent_says_which_and_every_event_is_in_the_union() -> None:
    assert set(get_args(AgentEvent)) < set(get_args(Event))
    assert all("agent" in kind.__dataclass_fields__ for kind in get_args(AgentEvent))
    of_tasks = (TaskAdded, *get_args(TaskEvent))
    assert all("task" in kind.__dataclass_fields__ and "agent" not in kind.__dataclass_fields__ for kind in of_tasks)
    classes = {
        node.name
        for file in ("events.py", "task_events.py", "trigger_events.py")
        for node in tree_of(SOURCE / "domain" / file).body
        if isinstance(node, ast.ClassDef)
    }
    assert classes == {kind.__name__ for kind in get_args(Event)} | {"Recorded"}


def test_every_setting_is_in_the_documentation_and_in_the_template() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [key for key in keys_of(Settings) if f"`{key}`" not in page] == []
    assert sorted(set(re.findall(r"^\| `([A-Za-z_.]+)`", page, re.MULTILINE))) == sorted(keys_of(Settings))
    assert [
        key for key in keys_of(Settings) if not re.search(rf"^# +{key.rpartition('.')[2]} =", TEMPLATE, re.MULTILINE)
    ] == []


def test_the_template_holds_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "remuda.toml"
    path.write_text(re.sub(r"^# (\w+ =)", r"\1", TEMPLATE, flags=re.MULTILINE))
    assert load_settings(path) == Settings(roles={"worker": RoleSettings()})


# The design's tables, written out once more by hand: a change of one must be a change of both.
DESIGN_STATUS = {
    "pending": "starting",
    "starting": "ready failed reaped",
    "ready": "working paused stopped hibernating retired failed reaped starting",
    "working": "ready paused stopped retired failed reaped",
    "paused": "ready stopped retired reaped",
    "stopped": "ready retired reaped",
    "hibernating": "starting retired reaped",
    "retired": "",
    "failed": "",
    "reaped": "",
}
DESIGN_PHASE = {
    "idle": "implementing reviewing",
    "implementing": "awaiting_review idle",
    "awaiting_review": "committing addressing_feedback idle",
    "reviewing": "idle",
    "addressing_feedback": "awaiting_review idle",
    "committing": "idle",
}


def test_the_tables_are_the_designs() -> None:
    assert {status: set(after) for status, after in STATUS.items()} == {
        Status(status): {Status(each) for each in after.split()} for status, after in DESIGN_STATUS.items()
    }
    assert {phase: set(after) for phase, after in PHASE.items()} == {
        Phase(phase): {Phase(each) for each in after.split()} for phase, after in DESIGN_PHASE.items()
    }
