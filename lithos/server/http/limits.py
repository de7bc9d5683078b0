"""The front's deadlines in seconds and sizes in bytes, in one place so that they can be weighed together."""

from __future__ import annotations

from typing import Final

#: How long running calls may finish after the stop began.
STOP_GRACE: Final = 3.0
#: How long the last words of cancelled exchanges, and then of connections, may each take.
STOP_FLUSH: Final = 0.4
#: Bound of the shield around the end of a response, which a disconnect must not cut in half.
FINAL_SEND: Final = 5.0
#: How long a client may take to accept one `SEND_PIECE`; then its connection is cut.
SEND_PATIENCE: Final = 30.0
SEND_PIECE: Final = 64 * 1024
#: How long a request body may pause; then the request is answered 408.
BODY_PATIENCE: Final = 30.0
#: How long an idle kept-alive connection, or one in the middle of a request head, stays open.
IDLE_PATIENCE: Final = 75.0
#: How long the body of a refused request is read and dropped, so that the refusal can be read.
REFUSED_BODY_SECONDS: Final = 2.0
#: Seconds, and bytes, that are still read and dropped after an invalid request or frame.
REFUSED_SECONDS: Final = 1.0
REFUSED_BYTES: Final = 1024 * 1024
#: How often a WebSocket is pinged; the pong has as long to come.
PING_INTERVAL: Final = 15.0
#: Largest message of a WebSocket client; above it the connection is closed with 1009.
MESSAGE_BYTES: Final = 64 * 1024
#: Largest request head; above it the answer is 431.
HEAD_BYTES: Final = 32 * 1024
#: Largest form of the console: its longest texts have 20,000 characters, of 12 bytes each at most, or 80,000
#: bytes, of 3 each.
FORM_BYTES: Final = 512 * 1024
FORM_FIELDS: Final = 200
#: Largest request of a client that asks to be let in.
OAUTH_BYTES: Final = 64 * 1024
#: Most JSON values of a step of an import: of a record and those before it in its batch.
IMPORT_VALUES: Final = 200_000
