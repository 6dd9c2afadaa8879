"""The error body that both of OpenAI's APIs share."""

from remuda.scripted_model.conversation import Json
from remuda.scripted_model.reply import Failure

# status -> (type, code)
ERROR: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "server_is_overloaded"),
}


def code_of(what: Failure) -> str | None:
    return "context_length_exceeded" if what.too_long else _row(what)[1]


def failure(what: Failure) -> Json:
    param = "input" if what.too_long else None
    return {"error": {"message": what.message, "type": _row(what)[0], "param": param, "code": code_of(what)}}


def _row(what: Failure) -> tuple[str, str | None]:
    return ERROR.get(what.status, ("server_error", "server_error") if what.status >= 500 else ERROR[400])
