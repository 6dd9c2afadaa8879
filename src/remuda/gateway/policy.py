"""Who may find and call what. Pure; one question for search, listing and calls, so that none can leak what another
forbids."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from remuda.runtime.tool_servers import GatewaySettings, RoleTools, ServerSettings

MOST_KNOWN = 50_000


class Allowed:
    """What the agents of one role may use. Deny goes before allow. An answer is worked out once: it is asked for at
    every call."""

    def __init__(self, role: RoleTools, servers: Mapping[str, ServerSettings]) -> None:
        self._role, self._servers = role, servers
        self._known: dict[tuple[str, str], bool] = {}

    def server(self, name: str) -> bool:
        """Whether any tool of it may be used. A rule for single tools forbids none of the others."""
        return self._remember(name, "", self._server)

    def tool(self, name: str, tool: str) -> bool:
        return self.server(name) and self._remember(name, tool, self._tool)

    def _remember(self, name: str, tool: str, work_out: Callable[[str, str], bool]) -> bool:
        known = self._known.get((name, tool))
        if known is None:
            if len(self._known) > MOST_KNOWN:  # names come from the model, who may make them up for ever
                self._known.clear()
            known = self._known[name, tool] = work_out(name, tool)
        return known

    def _server(self, name: str, _tool: str) -> bool:
        server = self._servers.get(name)
        if server is None or not server.enabled:
            return False
        if any("/" not in rule and fnmatchcase(name, rule) for rule in self._role.deny):
            return False
        return any(fnmatchcase(name, rule.partition("/")[0]) for rule in self._role.allow)

    def _tool(self, name: str, tool: str) -> bool:
        server, path = self._servers[name], f"{name}/{tool}"
        if any(fnmatchcase(tool, rule) for rule in server.deny):
            return False
        if any(_matches(rule, name, path) for rule in self._role.deny):
            return False
        its_own = any(fnmatchcase(tool, rule) for rule in server.allow)
        return its_own and any(_matches(rule, name, path) for rule in self._role.allow)


def allowed(settings: GatewaySettings, servers: Mapping[str, ServerSettings], role: str = "") -> Allowed:
    return Allowed(settings.roles.get(role, RoleTools()), servers)


def _matches(rule: str, server: str, path: str) -> bool:
    return fnmatchcase(path, rule) if "/" in rule else fnmatchcase(server, rule)
