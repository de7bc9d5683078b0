"""Event streams over SSE and WebSocket.

Only its own package uses it.
Never here: the meaning of an event.
"""

ROLE = "pages"
