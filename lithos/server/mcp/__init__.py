"""MCP over streamable HTTP, SSE and stdio: sessions, tool calls and resources.

Importers: the server package and packages above it.
Never here: the work of a tool.
"""

ROLE = "pages"
