"""Look at something: as the runtime shows it, or as the log tells it where none is up."""

import time
from typing import Any

from remuda.cli.call import NotUp, colour, width, write_out
from remuda.cli.project import given, project, read
from remuda.runtime.place import Place


def show(path: str, query: dict[str, Any] | None = None, *, as_json: bool) -> None:
    """Print a page, for people or for programs."""
    how = {} if as_json else {"format": "text", "width": width(), "color": colour()}
    body = look(project(), path, {**(query or {}), **how})
    write_out(body + b"\n" if as_json else body)


def look(place: Place, path: str, query: dict[str, Any]) -> bytes:
    try:
        return read(place, path, query)
    except NotUp:
        from remuda.cli.offline import log_file  # the long way round: these take longer than the usual answer
        from remuda.views.pages import Look, page_at, rendered

        page, names = page_at(path)
        with log_file(place) as log:
            return rendered(page(Look(log.state(), str(place.root), time.time(), {**given(query), **names})))
