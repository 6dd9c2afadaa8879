"""Record what real agents say over ACP, for tests that have none at hand; record.py does it for the other protocols.

    make agents && .venv/bin/python tests/transcripts/record_acp.py [NAME ...]

Each agent plays two scenes against the scripted model, in a home of its own. What is kept is every line both ways, with
this machine's paths and all ids replaced, so that recording twice gives the same file but for what the agent changed.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from adapters.agent_kit import Recorder  # noqa: E402
from live.kit import PINGER, Stage, script  # noqa: E402
from live.test_live_agents import FAULTS, FIVE_CALLS, FULL  # noqa: E402
from remuda.agents import Wire  # noqa: E402
from remuda.scripted_model import ScriptedModel  # noqa: E402

SCENES: Mapping[str, tuple[str, ...]] = {
    "work": (FIVE_CALLS,),
    "faults": tuple(script(fault) for fault, _ in (*FAULTS, FULL)),
}
AGENTS = ("opencode", "goose", "gemini")

# Long lists that say nothing about a turn: which commands, models and providers there are.
BULKY = ("availableCommands", "availableModels", "options")
CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "uuid"),
    (re.compile(r"\b(?:ses|msg|prt)_[0-9A-Za-z]{20,}"), "id"),
    (re.compile(r"(?<![0-9a-z])call_[0-9a-f]{10,}"), "call"),
    (re.compile(r"\b2\d{7}_\d+\b"), "session"),
    (re.compile(r"(?<!\d)1[789]\d{11}(?!\d)"), "time"),
    (re.compile(r"chatcmpl-[0-9a-z]+"), "message"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "http://model"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)"), "date"),
)


class Disguise:
    """Gives every path and id of this run a name that is the same in the next."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def line(self, line: str) -> str:
        try:
            return json.dumps(self._value(json.loads(line)), ensure_ascii=False, separators=(",", ":"))
        except ValueError:
            return self._text(line)

    def _value(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: [] if key in BULKY and _bulk(each) else self._value(each) for key, each in value.items()}
            case list():
                return [self._value(each) for each in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _text(self, text: str) -> str:
        for path, name in self._paths.items():
            text = text.replace(path, name).replace(path.lstrip("/"), name.lstrip("/"))
        for pattern, kind in CHANGING:
            text = pattern.sub(lambda found, kind=kind: self._name(kind, found[0]), text)  # type: ignore[misc]
        return text

    def _name(self, kind: str, found: str) -> str:
        if found not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[found] = f"{kind}-{self._counts[kind]}"
        return self._names[found]


def _bulk(value: object) -> bool:
    """Options of a permission are few and matter; those of a setting are many and do not."""
    return isinstance(value, list) and not any(isinstance(each, dict) and "kind" in each for each in value)


async def record(name: str, scene: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        heard = Recorder()
        async with ScriptedModel() as model:
            stage = Stage(name, Path(folder), model)
            async with stage.session(heard, mcp_servers=(PINGER,) if scene == "work" else ()) as session:
                for prompt in SCENES[scene]:
                    await session.prompt(prompt)
        paths = {
            str(stage.work): "/home/ada/project",
            str(stage.home): "/home/ada",
            str(HERE.parent): "/tests",
            sys.executable: "/usr/bin/python3",
        }
        disguise = Disguise(paths)
        lines = [(each.side, disguise.line(each.line)) for each in heard.updates if isinstance(each, Wire)]
        text = "".join(json.dumps({"side": side, "line": line}) + "\n" for side, line in lines if side != "stderr")
        (HERE / f"acp.{name}-{scene}.jsonl").write_text(text)


if __name__ == "__main__":
    for agent in sys.argv[1:] or AGENTS:
        for each in SCENES:
            asyncio.run(record(agent, each))
            print(f"recorded {agent}: {each}")  # noqa: T201
