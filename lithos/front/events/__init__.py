"""The endpoints `/events` (SSE), `/events/ws` (WebSocket), `/audit`, `/metrics` and `/health`.

Routed to by front/server.
Never here: the journal or positions (services/tasks).
"""
