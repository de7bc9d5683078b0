"""The edge: HTTP, MCP transports and access control."""
