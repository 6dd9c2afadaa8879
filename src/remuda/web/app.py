"""The API as one application."""

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from remuda.domain.errors import RemudaError
from remuda.web import agents, budget, events, logs, pages, questions, runtime, tasks, triggers
from remuda.web.door import Door, ErrorAnswer, answer, refuse

PARTS = (runtime, pages, logs, agents, questions, tasks, budget, triggers, events)


def make_app(door: Door) -> Starlette:
    app = Starlette(
        routes=[route for part in PARTS for route in part.ROUTES],
        exception_handlers={
            RemudaError: _refused,
            HTTPException: _not_here,
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    app.router.redirect_slashes = False
    app.state.door = door
    return app


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RemudaError)
    return refuse(error)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = HTTPStatus(error.status_code).phrase.title().replace(" ", "")
    message = f"{request.method} {request.url.path[:100]} is not in this API"
    return answer(ErrorAnswer(name, message, (), 2), error.status_code)


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # to nobody: whoever asked hung up in the middle of it


async def _broken(_request: Request, _error: Exception) -> Response:
    message = "something broke inside Remuda; the runtime's log has the details, and a report of it is welcome"
    return answer(ErrorAnswer("InternalError", message, (), 1), 500)
