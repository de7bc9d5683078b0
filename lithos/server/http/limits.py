"""Time limits in seconds and size limits in bytes of the HTTP front.

All limits of the HTTP front are in one module to keep them consistent.
"""

from __future__ import annotations

from typing import Final

#: Seconds for which running calls may continue after the shutdown has begun.
STOP_GRACE: Final = 3.0
#: Seconds to send the final messages of cancelled exchanges. The connections then get the same time again.
STOP_FLUSH: Final = 0.4
#: Maximum seconds for which the end of a response is shielded, so that a disconnect does not cut it.
FINAL_SEND: Final = 5.0
#: Seconds for a client to accept one `SEND_PIECE`. After that, the connection is closed.
SEND_PATIENCE: Final = 30.0
SEND_PIECE: Final = 64 * 1024
#: Maximum pause in a request body, in seconds. A longer pause is answered with status 408.
BODY_PATIENCE: Final = 30.0
#: Seconds after which an idle connection is closed. The limit also applies in the middle of a request head.
IDLE_PATIENCE: Final = 75.0
#: Seconds during which the body of a refused request is read and discarded, so that the client can read the
#: refusal.
REFUSED_BODY_SECONDS: Final = 2.0
#: Limits in seconds and bytes for the input that is read and discarded after an invalid request or frame.
REFUSED_SECONDS: Final = 1.0
REFUSED_BYTES: Final = 1024 * 1024
#: Seconds between two pings of a WebSocket. The pong must arrive within the same time.
PING_INTERVAL: Final = 15.0
#: Maximum size of a message from a WebSocket client. A larger message closes the connection with code 1009.
MESSAGE_BYTES: Final = 64 * 1024
#: Maximum size of a request head. A larger head is answered with status 431.
HEAD_BYTES: Final = 32 * 1024
#: Maximum size of a console form. Its longest texts have 20,000 characters (at most 12 bytes each when
#: encoded) or 80,000 bytes (3 bytes each when encoded).
FORM_BYTES: Final = 512 * 1024
FORM_FIELDS: Final = 200
#: Maximum size of a request from an OAuth client that asks for access.
OAUTH_BYTES: Final = 64 * 1024
#: Maximum number of JSON values in one import request, which contains a record and the earlier records of its
#: batch.
IMPORT_VALUES: Final = 200_000
