"""MCP over streamable HTTP, SSE and stdio: sessions, tool calls and resources.

This package and the packages above it may use the MCP SDK. The work of a tool belongs to other packages.
"""

ROLE = "pages"
