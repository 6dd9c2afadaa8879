"""The smallest tool server there is: one tool that answers. In plain Python, so that any agent can start it."""

import json
import sys

TOOL = {
    "name": "ping",
    "description": "Answers with the text that it is given.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


UNKNOWN = {"code": -32601, "message": "unknown method"}  # newer clients first ask in a newer way, and mind this answer


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "pinger", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            arguments = params.get("arguments")
            text = arguments.get("text") if isinstance(arguments, dict) else None
            return {"content": [{"type": "text", "text": f"pong: {text}"}]}
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        result = answer(asked["method"], asked.get("params") or {})
        told = {"error": UNKNOWN} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}) + "\n")
        sys.stdout.flush()
