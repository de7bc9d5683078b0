"""MCP over streamable HTTP, SSE and stdio: tool calls, sessions, resources, subscriptions.

Routed to by front/server; stdio is started by the command line.
Never here: tools themselves.
"""
