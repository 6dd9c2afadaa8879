"""An agent that speaks ACP from a table, and breaks its rules where the table says so."""

import json
import sys

# An agent in a few lines: answers each request with what `replies` holds for its method, in order.
PUPPET = """
import json, sys
replies = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    for reply in replies.get(asked.get("method", "answer"), []):
        if isinstance(reply, dict) and reply.get("id") == "asked":
            reply = {**reply, "id": asked["id"]}
        print(reply if isinstance(reply, str) else json.dumps(reply), flush=True)
"""
WELCOME = {"id": "asked", "result": {"protocolVersion": 1, "agentCapabilities": {}}}
OPENED = {"id": "asked", "result": {"sessionId": "s1"}}
DONE = {"id": "asked", "result": {"stopReason": "end_turn"}}


def puppet(**replies: list[object]) -> list[str]:
    table = {"initialize": [WELCOME], "session/new": [OPENED], "session/prompt": [DONE]}
    table.update({name.replace("__", "/"): reply for name, reply in replies.items()})  # type: ignore[misc]
    return [sys.executable, "-I", "-S", "-c", PUPPET, json.dumps(table)]
