"""Who wants to hear when a resource changes, and which server tells it. Pure bookkeeping; others do the asking."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from remuda.mcp import Client


@dataclass(slots=True)
class _Watch:
    server: str
    clients: list[Client] = field(default_factory=list)


class Watched:
    """A server is asked once, however many clients want it, and told to stop when the last of them no longer does."""

    def __init__(self) -> None:
        self._watches: dict[str, _Watch] = {}  # by the resource's uri

    def __contains__(self, uri: str) -> bool:
        return uri in self._watches

    def of(self, client: Client) -> set[str]:
        return {uri for uri, watch in self._watches.items() if client in watch.clients}

    def servers(self) -> frozenset[str]:
        """Those of which somebody wants to hear."""
        return frozenset(watch.server for watch in self._watches.values())

    def at(self, server: str) -> list[str]:
        return [uri for uri, watch in self._watches.items() if watch.server == server]

    def add(self, uri: str, server: str, client: Client) -> None:
        watch = self._watches.setdefault(uri, _Watch(server))
        if client not in watch.clients:
            watch.clients.append(client)

    def drop(self, uri: str, client: Client) -> str:
        """The server of which nobody wants to hear it any more, if that is so."""
        watch = self._watches.get(uri)
        if watch is None or client not in watch.clients:
            return ""
        watch.clients.remove(client)
        if watch.clients:
            return ""
        del self._watches[uri]
        return watch.server

    def told(self, server: str, uri: str) -> Iterator[Client]:
        """Whom a change concerns: a server may tell it of a part of what was asked for."""
        seen: list[Client] = []
        for wanted, watch in self._watches.items():
            if watch.server == server and (uri == wanted or uri.startswith(wanted.rstrip("/") + "/")):
                seen += [client for client in watch.clients if client not in seen]
        return iter(seen)
