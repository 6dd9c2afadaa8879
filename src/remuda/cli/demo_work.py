"""The piece of work that the demo does: a small repository, a goal, and what the scripted agents do about it."""

from typing import Any

GOAL = "Add a farewell to the greetings, with a test."

REPOSITORY = {
    "greetings.py": 'def hello(name: str) -> str:\n    return f"Hello, {name}!"\n',
    "README.md": "# Greetings\n\nA small library that is polite.\n",
}

FAREWELL = 'def farewell(name: str) -> str:\n    return f"Goodbye, {name}!"\n'

TEST = """\
import unittest

from farewell import farewell


class FarewellTest(unittest.TestCase):
    def test_it_names_whom_it_leaves(self) -> None:
        self.assertEqual(farewell("Ada"), "Goodbye, Ada!")


if __name__ == "__main__":
    unittest.main()
"""

# Commits once, when both parts are there and the tests pass; run again it finds nothing to do.
COMMIT = """\
if test -f farewell.py && test -f test_farewell.py; then
  python3 -m unittest -q && git add farewell.py test_farewell.py &&
  (git diff --cached --quiet || git commit -q -m "Add a farewell, with its test") && git log --oneline -1
else
  echo "not yet: one part is missing"
fi
"""

Steps = list[dict[str, Any]]


def _use(tokens: int) -> dict[str, Any]:
    cost = round(tokens * 3e-6, 9)
    return {"use": {"input": tokens, "output": tokens // 10, "cost_usd": cost, "context": tokens, "window": 200_000}}


def _worker(path: str, text: str, about: str) -> dict[str, Any]:
    finish: Steps = [
        {"say": f"{path} is written. I tell the coordinator.\n"},
        {"run": ["remuda", "send", "coordinator", f"{path} is ready"]},
        _use(1800),
    ]
    begin: Steps = [
        {"think": f"I should write {about}."},
        {"say": f"I write {path}.\n"},
        {"write": {"path": path, "text": text}},
        _use(2400),
    ]
    again: Steps = [
        {"say": f"This turn was cut off before. I look whether {path} is there.\n"},
        {"run": ["ls", "-l", path]},
    ]
    return {
        "turns": [
            {"when": "was given to you before", "do": [*again, *finish]},
            # Long enough for somebody to kill the runtime in the middle of it.
            {"do": [*begin, {"hang": 2.0}, *finish]},
        ]
    }


PLAYBOOKS: dict[str, dict[str, Any]] = {
    "coordinator": {
        "turns": [
            {
                "when": GOAL,
                "do": [
                    {"say": "Two parts that do not need each other. One worker for each.\n"},
                    _use(3000),
                    {"run": ["remuda", "send", "worker-1", "Write farewell.py"]},
                    {"run": ["remuda", "send", "worker-2", "Write test_farewell.py"]},
                ],
            },
            {"when": "is ready", "do": [{"run": ["sh", "-c", COMMIT]}, _use(900)]},
        ]
    },
    "worker-1": _worker("farewell.py", FAREWELL, "a function that says goodbye"),
    "worker-2": _worker("test_farewell.py", TEST, "the test before I see the code"),
}
