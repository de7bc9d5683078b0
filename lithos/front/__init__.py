"""The edge: HTTP, MCP transports, event streams, the stdio bridge and access control.

app/front composes it; it calls tools and services.
Never here: composition of services, or storage.
"""
