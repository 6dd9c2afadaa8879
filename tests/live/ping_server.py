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


def reply(asked: dict[str, object]) -> dict[str, object] | None:
    """What to say to a message; nothing to one that asks nothing."""
    params = asked.get("params")
    if "id" not in asked or "method" not in asked:
        return None
    result = answer(str(asked["method"]), params if isinstance(params, dict) else {})
    told = {"error": UNKNOWN} if result is None else {"result": result}
    return {"jsonrpc": "2.0", "id": asked["id"], **told}


if __name__ == "__main__":
    for line in sys.stdin:
        if said := reply(json.loads(line)):
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
