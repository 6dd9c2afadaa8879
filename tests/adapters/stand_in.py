"""A program in the place of a real one: it answers each line that it is told from a table, and breaks rules on demand.

The table says, for a line's `type` or `method`, which lines to write. Of those, `{"then": [...]}` waits until the next
line of that kind, `{"exit": n, "with": text}` writes half a line and dies, and "asked" stands for the question's id.
"""

import json
import os
import sys
from pathlib import Path

PROGRAM = """#!{python} -IS
import json, os, sys
table = json.loads({table!r})
print(os.getpid(), file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    key = asked.get("method") or asked.get("type") or "answer"
    if key == "control_response":
        key = "control_request"
    waiting = table.get(key, [])
    while waiting:
        reply = waiting.pop(0)
        if isinstance(reply, dict) and "then" in reply:
            waiting[:0] = reply["then"]
            break
        if isinstance(reply, dict) and "exit" in reply:
            sys.stdout.write(reply["with"])
            sys.stdout.flush()
            os._exit(reply["exit"])
        if not isinstance(reply, str):
            reply = json.dumps(reply, ensure_ascii=False)
        for name in ("uuid", "id"):
            if name in asked:
                reply = reply.replace('"asked"', json.dumps(asked[name]))
        print(reply, flush=True)
"""


def stand_in(folder: Path, name: str, table: dict[str, list[object]]) -> dict[str, str]:
    """Write the program, and give the environment in which it is found first."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    program = place / name
    program.write_text(PROGRAM.format(python=sys.executable, table=json.dumps(table)))
    program.chmod(0o755)
    return {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
