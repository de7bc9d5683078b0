"""The front's deadlines in seconds and sizes in bytes, in one place so that they can be weighed together."""

from __future__ import annotations

from typing import Final

STOP_GRACE: Final = 3.0
"""How long running calls may finish after the stop began."""

STOP_FLUSH: Final = 0.4
"""How long the last words of cancelled exchanges, and then of connections, may each take."""

FINAL_SEND: Final = 5.0
"""Bound of the shield around the end of a response, which a disconnect must not cut in half."""

SEND_PATIENCE: Final = 30.0
"""How long a client may take to accept one `SEND_PIECE`; then its connection is cut."""

SEND_PIECE: Final = 64 * 1024

PIECES_PATIENCE: Final = 0.1
"""How long a plain request's body may come behind its head; then h11 waits for it."""

BODY_PATIENCE: Final = 30.0
"""How long a request body may pause; then the request is answered 408."""

IDLE_PATIENCE: Final = 75.0
"""How long an idle kept-alive connection, or one in the middle of a request head, stays open."""

REFUSED_BODY_SECONDS: Final = 2.0
"""How long the body of a refused request is read and dropped, so that the refusal can be read."""

REFUSED_SECONDS: Final = 1.0
REFUSED_BYTES: Final = 1024 * 1024
"""How long, and how much, is read and dropped of what follows a request or frame that is none."""

PING_INTERVAL: Final = 15.0
"""How often a WebSocket is pinged; the pong has as long to come."""

MESSAGE_BYTES: Final = 64 * 1024
"""Largest message of a WebSocket client; above it the connection is closed with 1009."""

HEAD_BYTES: Final = 32 * 1024
"""Largest request head; above it the answer is 431."""

FORM_BYTES: Final = 512 * 1024
FORM_FIELDS: Final = 200
"""Largest form of the console: its longest text has 20,000 characters, of 12 bytes each at most."""

OAUTH_BYTES: Final = 64 * 1024
"""Largest request of a client that asks to be let in."""

IMPORT_VALUES: Final = 200_000
"""Most JSON values of a step of an import: of a record and those before it in its batch."""
