"""Who may find and call what. Pure; one question for search, listing and calls, so that none can leak what another
forbids."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from remuda.runtime.tool_servers import GatewaySettings, RoleTools, ServerSettings


class Allowed(NamedTuple):
    """What the agents of one role may use. Deny goes before allow."""

    role: RoleTools
    servers: Mapping[str, ServerSettings]

    def server(self, name: str) -> bool:
        """Whether any tool of it may be used. A rule for single tools forbids none of the others."""
        server = self.servers.get(name)
        if server is None or not server.enabled:
            return False
        if any("/" not in rule and fnmatchcase(name, rule) for rule in self.role.deny):
            return False
        return any(fnmatchcase(name, rule.partition("/")[0]) for rule in self.role.allow)

    def tool(self, name: str, tool: str) -> bool:
        if not self.server(name):
            return False
        server = self.servers[name]
        if any(fnmatchcase(tool, rule) for rule in server.deny) or not any(
            fnmatchcase(tool, rule) for rule in server.allow
        ):
            return False
        path = f"{name}/{tool}"
        return not any(_matches(rule, name, path) for rule in self.role.deny) and any(
            _matches(rule, name, path) for rule in self.role.allow
        )


def allowed(settings: GatewaySettings, servers: Mapping[str, ServerSettings], role: str = "") -> Allowed:
    return Allowed(settings.roles.get(role, RoleTools()), servers)


def _matches(rule: str, server: str, path: str) -> bool:
    return fnmatchcase(path, rule) if "/" in rule else fnmatchcase(server, rule)
