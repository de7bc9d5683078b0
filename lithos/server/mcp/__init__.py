"""MCP over streamable HTTP, SSE and stdio: sessions, tool calls and resources.

Only the server package and packages in higher layers import this package. Never here: the work of a tool.
"""

ROLE = "pages"
