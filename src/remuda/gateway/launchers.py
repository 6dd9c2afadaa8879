"""Programs that fetch a program and then run it, passed by once the program is there.

`npx` and `uvx` look for a newer version at every start, which takes seconds, and stay in memory for as long as the
server lives. What they have fetched lies in their cache: from the second start on it is run from there.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

UVX_SECONDS = 60.0
_PLAIN = {"-y", "--yes", "-q", "--quiet"}


async def direct(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The same program without its launcher where it has been fetched; else as it is."""
    launcher = Path(argv[0]).name
    if launcher == "npx":
        return await asyncio.to_thread(from_npx, argv, env)
    if launcher == "uvx":
        return await _from_uvx(argv, env)
    return list(argv)


def from_npx(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    words = list(argv[1:])
    while words and words[0] in _PLAIN:
        words.pop(0)
    if not words or words[0].startswith("-"):
        return list(argv)  # other options are npx's own affair
    wanted, *rest = words
    for folder in sorted(_npm_cache(env).glob("_npx/*"), key=_age):
        if _packages(folder) == [wanted] and (program := _npm_program(folder, wanted)):
            return [*program, *rest]
    return list(argv)


def _npm_cache(env: Mapping[str, str]) -> Path:
    named = env.get("npm_config_cache")
    return Path(named) if named else Path.home() / ".npm"


def _age(folder: Path) -> float:
    return -folder.stat().st_mtime


def _packages(folder: Path) -> list[str]:
    try:
        made_for = json.loads((folder / "package.json").read_bytes())["_npx"]["packages"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return made_for if isinstance(made_for, list) else []


def _npm_program(folder: Path, wanted: str) -> list[str]:
    """What npx would run: the package's only program, or the one that is called as the package is."""
    name = wanted if wanted.rfind("@") < 1 else wanted[: wanted.rfind("@")]
    package = folder / "node_modules" / name
    try:
        programs = json.loads((package / "package.json").read_bytes()).get("bin")
    except (OSError, ValueError, AttributeError):
        return []
    short = name.rpartition("/")[2]
    if isinstance(programs, str):
        programs = {short: programs}
    if not isinstance(programs, dict) or not programs:
        return []
    path = programs.get(short) if len(programs) > 1 else next(iter(programs.values()))
    node = shutil.which("node")
    program = (package / str(path)).resolve()
    inside = program.is_relative_to(folder.resolve()) and program.is_file()
    return [node, str(program)] if node and path and inside else []


async def _from_uvx(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """uvx says itself where it put the environment; that it has one is asked without a network."""
    words = list(argv[1:])
    if not words or words[0].startswith("-"):
        return list(argv)
    wanted, *rest = words
    name = wanted.partition("@")[0].partition("==")[0].partition("[")[0]
    ask = [argv[0], "--offline", "--from", wanted.replace("@", "=="), "python", "-c", "import sys; print(sys.prefix)"]
    try:
        process = await asyncio.create_subprocess_exec(
            *ask,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(UVX_SECONDS):
            said, _ = await process.communicate()
    except (OSError, TimeoutError):
        return list(argv)
    program = Path(said.decode(errors="replace").strip() or "/nowhere") / "bin" / name
    return [str(program), *rest] if process.returncode == 0 and program.is_file() else list(argv)
