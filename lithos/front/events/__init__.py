"""The endpoints `/events` (SSE), `/events/ws` (WebSocket), `/audit` and `/metrics`.

Routed to by front/server.
Never here: the journal or positions (services/tasks).
"""
