"""Event streams over SSE and WebSocket.

Only `events` imports this package. The package must not interpret events.
"""

ROLE = "pages"
