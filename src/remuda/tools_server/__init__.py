"""The tools by which agents speak to Remuda, served over MCP on loopback.

`tools` is the table: what each tool is called, what it takes, who may call it and which commands it comes to. Who is
calling is known from the token of the session alone; nothing that a model writes can make it somebody else.
"""
