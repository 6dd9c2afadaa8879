"""Lists of models, for clients that ask what there is. Any other name is accepted just the same."""

from remuda.scripted_model.conversation import Json

NAMES = ("scripted", "scripted-small")
WINDOW = 200_000


def models(path: str) -> Json:
    """One answer for two APIs that share the path: each client reads the fields of its own."""
    name = path.partition("/models/")[2]
    if name:
        return _model(name)
    listed = [_model(each) for each in NAMES]
    return {"object": "list", "data": listed, "has_more": False, "first_id": NAMES[0], "last_id": NAMES[-1]}


def gemini_models(path: str) -> Json:
    name = path.partition("/models/")[2]
    return _gemini_model(name) if name else {"models": [_gemini_model(each) for each in NAMES]}


def _model(name: str) -> Json:
    openai = {"object": "model", "created": 1_700_000_000, "owned_by": "remuda", "context_length": WINDOW}
    return {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z", **openai}


def _gemini_model(name: str) -> Json:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
