"""Remuda: the lifecycle runtime for coding agents.

async with remuda.open(path) as runtime:
    await runtime.spawn(...)
"""

from remuda.version import __version__

TYPE_CHECKING = False  # as in `typing`, whose import every `remuda` command would wait for
if TYPE_CHECKING:
    from remuda.whole import open_project as open  # noqa: A004  (`remuda.open` is how it is read)

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> object:
    """`open` brings the whole runtime with it, so it is fetched when it is asked for."""
    if name == "open":
        from remuda.whole import open_project

        return open_project
    raise AttributeError(f"module 'remuda' has no attribute {name!r}")
