"""Event streams over SSE and WebSocket.

`lithos.app` alone uses it.
Never here: what an event means.
"""

ROLE = "pages"
