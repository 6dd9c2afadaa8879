"""MCP tool servers that come when they are needed and leave when they are not. Usable without a runtime."""
