"""Event streams over SSE and WebSocket.

Only the package `events` uses this package. It must not interpret events.
"""

ROLE = "pages"
