"""The smallest tool server that the real programs accept: MCP over stdio with one tool, `echo`."""

import json
import os
import sys

TOOL = {
    "name": "echo",
    "description": "Says it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def reply(asked: dict[str, object]) -> object:
    params = asked.get("params")
    match asked["method"], params:
        case "initialize", {"protocolVersion": version}:
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "tools/list", _:
            return {"tools": [TOOL]}
        case "tools/call", {"arguments": {"text": text}}:
            return {"content": [{"type": "text", "text": f"{text} {os.environ.get('ECHO_TOKEN', '')}"}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": reply(request)}) + "\n")
        sys.stdout.flush()
