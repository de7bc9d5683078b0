"""Deadlines in seconds and sizes in bytes of the HTTP front, in one place to keep them consistent."""

from __future__ import annotations

from typing import Final

#: Seconds that running calls may still take after the stop began.
STOP_GRACE: Final = 3.0
#: Seconds for the final messages of cancelled exchanges, and again for those of connections.
STOP_FLUSH: Final = 0.4
#: Maximum seconds of the shield around the end of a response, which a disconnect must not cut in half.
FINAL_SEND: Final = 5.0
#: Seconds that a client may take to accept one `SEND_PIECE`; then its connection is cut.
SEND_PATIENCE: Final = 30.0
SEND_PIECE: Final = 64 * 1024
#: Seconds that a request body may pause; then the request is answered with 408.
BODY_PATIENCE: Final = 30.0
#: Seconds that a connection stays open while it is idle or in the middle of a request head.
IDLE_PATIENCE: Final = 75.0
#: Seconds during which the body of a refused request is read and dropped, so that the client can read the
#: refusal.
REFUSED_BODY_SECONDS: Final = 2.0
#: Limits in seconds and bytes for the input that is read and dropped after an invalid request or frame.
REFUSED_SECONDS: Final = 1.0
REFUSED_BYTES: Final = 1024 * 1024
#: Seconds between two pings of a WebSocket, and the deadline of the pong.
PING_INTERVAL: Final = 15.0
#: Maximum size of a WebSocket client's message; a larger message closes the connection with 1009.
MESSAGE_BYTES: Final = 64 * 1024
#: Maximum size of a request head; a larger head is answered with 431.
HEAD_BYTES: Final = 32 * 1024
#: Maximum size of a console form. Its longest texts have 20,000 characters (at most 12 bytes each) or 80,000
#: bytes (encoded as 3 each).
FORM_BYTES: Final = 512 * 1024
FORM_FIELDS: Final = 200
#: Maximum size of a request by a client that asks for access.
OAUTH_BYTES: Final = 64 * 1024
#: Maximum number of JSON values in one import request: one record and the records before it in its batch.
IMPORT_VALUES: Final = 200_000
