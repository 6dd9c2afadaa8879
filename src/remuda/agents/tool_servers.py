"""Tool servers for programs that take them as configuration. Pure.

Their secrets (variables, headers) go into the agent's own environment, and the configuration only names them: a
command line can be read by everyone on the machine, and what we write to the agent is kept in its transcript.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remuda.agents import McpServer
from remuda.domain.errors import Invalid


def environment(servers: Sequence[McpServer], name: Callable[[McpServer, str], str]) -> dict[str, str]:
    """The values that the configurations below refer to, under the names that `name` gives them."""
    values: dict[str, str] = {}
    for server in servers:
        for key, value in (*server.env, *server.headers):
            alias = name(server, key)
            if values.setdefault(alias, value) != value:
                raise Invalid(f"two tool servers want {key} with different values, which this agent cannot do")
    return values


def alias(server: McpServer, key: str) -> str:
    """A name of its own for each server's value, so that two may differ."""
    return "REMUDA_" + "".join(each if each.isalnum() else "_" for each in f"{server.name}_{key}").upper()


def own_name(server: McpServer, key: str) -> str:
    """A variable keeps its name where the program can only pass variables on; a header has none to keep."""
    return key if key in dict(server.env) else alias(server, key)


def claude_config(servers: Sequence[McpServer]) -> Mapping[str, Any]:
    return {"mcpServers": {server.name: _claude_server(server) for server in servers}}


def codex_config(servers: Sequence[McpServer]) -> Mapping[str, Any]:
    return {server.name: _codex_server(server) for server in servers}


def _claude_server(server: McpServer) -> Mapping[str, Any]:
    if server.url:
        headers = {key: f"${{{alias(server, key)}}}" for key, _ in server.headers}
        return {"type": "http", "url": server.url, "headers": headers}
    env = {key: f"${{{alias(server, key)}}}" for key, _ in server.env}
    return {"type": "stdio", "command": server.command[0], "args": list(server.command[1:]), "env": env}


def _codex_server(server: McpServer) -> Mapping[str, Any]:
    if server.url:
        return {"url": server.url, "env_http_headers": {key: alias(server, key) for key, _ in server.headers}}
    variables = [key for key, _ in server.env]
    return {"command": server.command[0], "args": list(server.command[1:]), "env_vars": variables}
