"""The HTTP server on one port: connections, upgrades, gate with access control, start, graceful shutdown.

app/front starts it; the MCP and event endpoints hang in it.
Never here: MCP or event semantics.
"""
