"""MCP over streamable HTTP, SSE and stdio: sessions, calls and resources.

Its own package and later ones use it.
Never here: the work of a tool.
"""

ROLE = "pages"
