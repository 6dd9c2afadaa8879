"""The pages over HTTP, of what is on the disk."""

import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from remuda.views.pages import PAGES, Look, Page, rendered
from remuda.web.door import caller_of, runtime_of


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def show(request: Request) -> Response:
        caller_of(request)
        runtime = runtime_of(request)
        asked = {**request.query_params, **request.path_params}
        made = page(Look(runtime.loop.shown.state, str(runtime.place.root), time.time(), asked))
        media = "text/plain; charset=utf-8" if isinstance(made, str) else "application/json"
        return Response(rendered(made), media_type=media)

    return show


ROUTES = [Route(path, _endpoint(page), methods=["GET"]) for path, page in PAGES.items()]
