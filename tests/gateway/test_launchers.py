"""Programs that npx and uvx have fetched are run without them."""

import asyncio
import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from remuda.gateway.launchers import direct, from_npx

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node on PATH")


def fetched(cache: Path, wanted: str, package: dict[str, Any], name: str = "") -> Path:
    """A package as npx keeps it."""
    folder = cache / "_npx" / str(abs(hash(wanted)))
    home = folder / "node_modules" / (name or package["name"])
    home.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"_npx": {"packages": [wanted]}}))
    (home / "package.json").write_text(json.dumps(package))
    (home / "main.js").write_text("console.log(process.argv.slice(2).join(' '))")
    return home


def found(cache: Path, *argv: str) -> list[str]:
    return from_npx(argv, {"npm_config_cache": str(cache)})


@needs_node
@pytest.mark.parametrize("wanted", ["@scope/tool", "@scope/tool@1.2.3", "tool@latest", "tool"])
def test_what_npx_has_fetched_is_run_by_node_itself(tmp_path: Path, wanted: str) -> None:
    name = wanted if wanted.rfind("@") < 1 else wanted[: wanted.rfind("@")]
    fetched(tmp_path, wanted, {"name": name, "bin": {"tool": "main.js"}})
    argv = found(tmp_path, "npx", "-y", wanted, "--port", "5")
    assert "npx" not in argv[0]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "--port 5\n"


@needs_node
@pytest.mark.parametrize(
    ("programs", "runs"),
    [
        ("main.js", True),
        ({"x": "main.js"}, True),
        ({"tool": "main.js", "x": "other.js"}, True),
        ({"x": "main.js", "y": "main.js"}, False),
        ({"x": "../../../../etc/passwd"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_the_program_is_the_one_that_npx_would_run(tmp_path: Path, programs: Any, runs: bool) -> None:
    home = fetched(tmp_path, "tool", {"name": "tool", "bin": programs})
    argv = found(tmp_path, "npx", "tool")
    assert (argv[-1] == str(home / "main.js")) is runs
    assert runs or argv == ["npx", "tool"]


@pytest.mark.parametrize(
    "argv", [("npx", "never-fetched"), ("npx",), ("npx", "-y"), ("npx", "-p", "a", "b"), ("npx", "--package=a", "b")]
)
def test_what_is_not_there_or_not_understood_is_left_to_npx(tmp_path: Path, argv: tuple[str, ...]) -> None:
    fetched(tmp_path, "b", {"name": "b", "bin": "main.js"})
    assert found(tmp_path, *argv) == list(argv)


def test_a_cache_that_is_broken_is_left_to_npx(tmp_path: Path) -> None:
    home = fetched(tmp_path, "tool", {"name": "tool", "bin": "main.js"})
    (home / "package.json").write_text("{")
    (tmp_path / "_npx" / "stray").mkdir()
    assert found(tmp_path, "npx", "tool") == ["npx", "tool"]


def test_other_programs_are_run_as_they_are() -> None:
    assert asyncio.run(direct(["python", "-m", "server"], {})) == ["python", "-m", "server"]


def stand_in(folder: Path, prefix: Path, code: int) -> str:
    """A uvx that says where its environment is, or that it has none."""
    program = folder / "uvx"
    program.write_text(f"#!/bin/sh\necho {prefix}\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize("wanted", ["mcp-server-git", "mcp-server-git@1.0", "mcp-server-git==1.0", "mcp-server-git[x]"])
def test_what_uvx_has_fetched_is_run_from_its_environment(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mcp-server-git").touch()
    uvx = stand_in(tmp_path, tmp_path, 0)
    assert asyncio.run(direct([uvx, wanted, "-v"], {})) == [str(tmp_path / "bin" / "mcp-server-git"), "-v"]


def test_what_uvx_has_not_fetched_is_left_to_it(tmp_path: Path) -> None:
    for uvx in (stand_in(tmp_path, tmp_path, 1), str(tmp_path / "no-such-uvx")):
        assert asyncio.run(direct([uvx, "mcp-server-git"], {})) == [uvx, "mcp-server-git"]
    assert asyncio.run(direct(["uvx", "--from", "a", "b"], {})) == ["uvx", "--from", "a", "b"]
