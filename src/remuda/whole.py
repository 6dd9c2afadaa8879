"""A project that is up with everything that it serves to its agents: what `remuda up` runs and `remuda.open` gives."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from remuda.meter.serve import serve_meter
from remuda.runtime.compose import open_runtime
from remuda.runtime.runtime import Runtime
from remuda.tools_server.serve import serve_tools

BESIDE = (serve_tools, serve_meter)


def open_project(folder: Path) -> AbstractAsyncContextManager[Runtime]:
    return open_runtime(folder, BESIDE)
