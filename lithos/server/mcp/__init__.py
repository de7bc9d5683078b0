"""MCP over streamable HTTP, SSE and stdio: sessions, calls and resources.

The packages after it in the order of docs/develop.md use it.
Never here: what a tool does.
"""

ROLE = "pages"
