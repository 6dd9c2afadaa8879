"""Keeps a server's tools again and again, until it is killed. Its argument is the folder."""

import sys
from pathlib import Path

from remuda.gateway.approvals import Approvals
from remuda.gateway.toollist import recall

approvals = Approvals(Path(sys.argv[1]))
lists = [
    recall("one", [{"name": f"tool{number}", "description": str(size) * 200} for number in range(size)])
    for size in (5, 400)
]
print("ready", flush=True)  # noqa: T201
while True:
    for tools in lists:
        approvals.check("one", tools, any_tools=True)
