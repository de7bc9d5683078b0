"""Event streams over SSE and WebSocket.

Only the package `events` uses this package. The package must not interpret events.
"""

ROLE = "pages"
