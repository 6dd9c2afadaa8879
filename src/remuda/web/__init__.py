"""People and programs come in: the HTTP API on a Unix socket. Requests become commands, views become JSON."""
